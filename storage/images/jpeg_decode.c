#include "base/memory.h"
#include "storage/images/jpeg_read.h"

#include <string.h>

struct bpt__jpeg {
    uint8_t *copy; /* of a file that is mended */
    size_t capacity;
};

bpt_status bpt__jpeg_open(bpt__jpeg **out) {
    return BPT_NEW("JPEG decoder", 1, out);
}

void bpt__jpeg_close(bpt__jpeg *jpeg) {
    if (!jpeg) return;
    bpt_free(jpeg->copy);
    bpt_free(jpeg);
}

/* Some cameras write the spectral range of a sequential scan as 0 to 0 or the like, which decoders
 * ignore; but libjpeg's warning of it would hide those that come later. */
static bpt_status mend(bpt__jpeg *jpeg, const bpt_image_info *info, const uint8_t **data,
                       size_t size) {
    static const uint8_t sequential[3] = {0, 63, 0};
    if (info->progressive) return BPT_OK;
    const size_t scan = bpt__jpeg_scan_offset(*data, size); /* 0xFF, SOS, length, number, ... */
    if (scan + 5 > size) return BPT_OK;
    const size_t range = scan + 5 + 2 * (size_t)(*data)[scan + 4];
    if (range + 3 > size || memcmp(*data + range, sequential, 3) == 0) return BPT_OK;
    if (size > jpeg->capacity) {
        bpt_free(jpeg->copy);
        jpeg->copy = NULL;
        jpeg->capacity = 0;
        BPT_TRY(BPT_NEW("copy of a JPEG", size, &jpeg->copy));
        jpeg->capacity = size;
    }
    memcpy(jpeg->copy, *data, size);
    memcpy(jpeg->copy + range, sequential, 3);
    *data = jpeg->copy;
    return BPT_OK;
}

/* Each scan of a progressive image, however short, costs a visit to every pixel. libjpeg-turbo
 * allows 500, which of a large image take minutes; encoders make about ten. */
static const uint64_t most_visits = UINT64_C(1) << 31;
enum { MOST_SCANS = 500 };

static bpt_status check_scans(const char *name, const uint8_t *data, size_t size, uint32_t H,
                              uint32_t W) {
    const uint64_t pixels = (uint64_t)H * W;
    if (pixels * MOST_SCANS <= most_visits) return BPT_OK;
    const uint64_t n = bpt__jpeg_count_scans(data, size).n;
    if (n * pixels <= most_visits) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EDATA, "%s has %llu scans of %u x %u pixels", name,
                                       (unsigned long long)n, H, W);
    bpt_hint("encode it again, for example with ImageMagick: convert %s NEW.jpg", name);
    return status;
}

/* libjpeg keeps only the first of its warnings. Bytes that nothing explains before the marker of
 * the end are behind the last pixel, since that marker would otherwise be met within the pixels;
 * with restart markers it might be met in place of one of these. */
static bool leaves_pixels_whole(const char *warning, const uint8_t *data, size_t size) {
    return strstr(warning, "extraneous bytes before marker 0xd9") &&
           !bpt__jpeg_count_scans(data, size).restart;
}

static bpt_status refuse(const char *name, const char *reason, bool warned) {
    bpt_status status;
    if (strstr(reason, "Insufficient memory"))
        return bpt_fail(BPT_ENOMEM, "%s: libjpeg-turbo has no memory", name);
    if (warned && strstr(reason, "Premature end of JPEG file"))
        status = bpt_fail(BPT_EDATA, "%s is cut short: its pixels end early", name);
    else
        status = bpt_fail(BPT_EDATA, "%s is a damaged JPEG: %s", name, reason);
    bpt_hint("fetch the file again");
    return status;
}

bpt_status bpt__jpeg_decode(bpt__jpeg *jpeg, const char *name, const uint8_t *data, size_t size,
                            const bpt_image_info *info, uint32_t C, uint32_t divisor,
                            const bpt__region *region, bpt__packed *out) {
    const bool cmyk = info->colour == BPT_IMAGE_CMYK, sideways = info->orientation > 4;
    const bool grey = !cmyk && (info->colour == BPT_IMAGE_GREY || C == 1);
    const uint32_t H = sideways ? info->W : info->H, W = sideways ? info->H : info->W;
    BPT_TRY(check_scans(name, data, size, H, W));
    BPT_TRY(bpt__packed_reserve(out, (H + divisor - 1) / divisor, (W + divisor - 1) / divisor,
                                grey ? 1 : 4));
    BPT_TRY(mend(jpeg, info, &data, size));
    bpt__jpeg_report report;
    bpt__jpeg_read(data, size, divisor, region, out, &report);
    if (report.failed || (report.warned && !leaves_pixels_whole(report.reason, data, size)))
        return refuse(name, report.reason, !report.failed);
    if (cmyk) bpt__packed_cmyk_to_rgb(out, info->adobe);
    return BPT_OK;
}
