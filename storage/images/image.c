#include "storage/images/image.h"

#include "storage/images/codecs.h"

#include <string.h>

/* First bytes of a format, at an offset. */
typedef struct mark {
    const char *format;
    size_t offset, length;
    const char *bytes;
} mark;

#define MARK(format, offset, bytes)                                                                \
    { format, offset, sizeof(bytes) - 1, bytes }

static const mark marks[] = {
    MARK("JPEG", 0, "\xFF\xD8\xFF"),
    MARK("PNG", 0, "\x89PNG\r\n\x1A\n"),
    MARK("GIF", 0, "GIF8"),
    MARK("WebP", 8, "WEBP"),
    MARK("BMP", 0, "BM"),
    MARK("TIFF", 0, "II*\0"),
    MARK("TIFF", 0, "MM\0*"),
    MARK("TIFF", 0, "II+\0"),
    MARK("TIFF", 0, "MM\0+"),
    MARK("AVIF", 4, "ftypavi"),
    MARK("HEIF", 4, "ftyphei"),
    MARK("HEIF", 4, "ftyphev"),
    MARK("HEIF", 4, "ftypmif1"),
    MARK("HEIF", 4, "ftypmsf1"),
    MARK("JPEG 2000", 4, "jP  \r\n\x87\n"),
    MARK("JPEG 2000", 0, "\xFF\x4F\xFF\x51"),
    MARK("JPEG XL", 0, "\xFF\x0A"),
    MARK("JPEG XL", 4, "JXL \r\n\x87\n"),
    MARK("PSD", 0, "8BPS"),
    MARK("ICO", 0, "\0\0\1\0"),
    MARK("SVG", 0, "<svg"),
};

/* "P1" to "P7" and white space. */
static int is_pnm(const uint8_t *data, size_t size) {
    return size >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7' &&
           memchr(" \t\r\n", data[2], 4);
}

/* As text of XML, behind whose first line it begins. */
static int is_svg(const uint8_t *data, size_t size) {
    enum { MOST_BEFORE = 1024 };
    return size >= 5 && memcmp(data, "<?xml", 5) == 0 &&
           memmem(data, size < MOST_BEFORE ? size : MOST_BEFORE, "<svg", 4);
}

/* The format by the first bytes; NULL: it is not known. */
static const char *format_name(const void *data, size_t size) {
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const mark *m = &marks[i];
        if (size >= m->offset + m->length &&
            memcmp((const uint8_t *)data + m->offset, m->bytes, m->length) == 0)
            return m->format;
    }
    if (is_svg(data, size)) return "SVG";
    return is_pnm(data, size) ? "PNM" : NULL;
}

static bpt_status refuse_format(const char *name, const void *data, size_t size) {
    if (size == 0) {
        const bpt_status status = bpt_fail(BPT_EDATA, "%s is empty", name);
        bpt_hint("fetch the file again");
        return status;
    }
    const char *format = format_name(data, size);
    if (!format) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "%s is no image of a known format; bpt reads JPEG and PNG", name);
        bpt_hint("what it is may be told by: file %s", name);
        return status;
    }
    const bpt_status status = bpt_fail(BPT_EDATA, "%s is %s %s image; bpt reads JPEG and PNG", name,
                                       strchr("AIS", format[0]) ? "an" : "a", format);
    bpt_hint("convert it, for example with ImageMagick: convert %s NEW.png", name);
    return status;
}

static bpt_status check_limits(const char *name, const bpt_image_limits *limits,
                               const bpt_image_info *info) {
    const uint32_t side = limits->side;
    if (info->H == 0 || info->W == 0)
        return bpt_fail(BPT_EDATA, "%s has %u x %u pixels", name, info->H, info->W);
    if (info->H <= side && info->W <= side && (uint64_t)info->H * info->W <= limits->pixels)
        return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s has %u x %u pixels; the limit is %u a side and %llu in all", name,
                 info->H, info->W, side, (unsigned long long)limits->pixels);
    bpt_hint("make it smaller, for example with ImageMagick: convert %s -resize 50%% NEW.png",
             name);
    return status;
}

bpt_status bpt_image_look(const char *name, const void *data, size_t size,
                          const bpt_image_limits *limits, bpt_image_info *out) {
    const bpt_image_limits standard = BPT_IMAGE_LIMITS_INIT;
    if (!limits) limits = &standard;
    if (size > limits->bytes)
        return bpt_fail(BPT_EDATA, "%s has %zu bytes; the limit is %llu", name, size,
                        (unsigned long long)limits->bytes);
    const char *format = format_name(data, size);
    bpt_image_info info = {0};
    if (format && strcmp(format, "JPEG") == 0)
        BPT_TRY(bpt__jpeg_look(name, data, size, &info));
    else if (format && strcmp(format, "PNG") == 0)
        BPT_TRY(bpt__png_look(name, data, size, &info));
    else
        return refuse_format(name, data, size);
    BPT_TRY(check_limits(name, limits, &info));
    if (info.orientation > 4) {
        const uint32_t H = info.H;
        info.H = info.W;
        info.W = H;
    }
    info.C = info.colour == BPT_IMAGE_GREY ? 1 : 3;
    *out = info;
    return BPT_OK;
}
