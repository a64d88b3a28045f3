/* Any bytes as an image: the header is read, the pixels decoded in two ways, and what libjpeg-turbo
 * takes the size of a JPEG to be is what bpt takes it to be. A PNG is tried a second time with
 * checksums that are right, or no altered one would come further than to them. */
#include "storage/images/image_decoder.h"

#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const bpt_image_limits limits = {.bytes = 1 << 20, .pixels = 1 << 16, .side = 4096};

/* Memory is bounded by the size that was checked, so that must be the size that is decoded. */
static void compare_sizes(const uint8_t *data, size_t size, const bpt_image_info *info) {
    int W = -1, H = -1, chroma, colours;
    const tjhandle handle = tjInitDecompress();
    tjDecompressHeader3(handle, data, size, &W, &H, &chroma, &colours);
    tjDestroy(handle);
    if (W < 0) return; /* it refuses what is looked at no further */
    const int sideways = info->orientation > 4;
    if ((uint32_t)W != (sideways ? info->H : info->W) ||
        (uint32_t)H != (sideways ? info->W : info->H))
        abort();
}

static void decode(bpt_image_decoder *decoder, const uint8_t *data, size_t size,
                   const bpt_image_info *info, bpt_image_fit fit, uint32_t C) {
    const bpt_image_wish wish = {.C = C, .frame = bpt_image_fit_frame(&fit, info->H, info->W)};
    uint8_t *pixels = malloc((size_t)C * wish.frame.H * wish.frame.W);
    if (!pixels) abort();
    const bpt_status status = bpt_image_decode(decoder, "fuzz", data, size, &wish, pixels);
    if (status != BPT_OK && status != BPT_EDATA) abort();
    free(pixels);
}

static void try_image(const uint8_t *data, size_t size) {
    static bpt_image_decoder *decoder;
    bpt_image_info info;
    if (!decoder && bpt_image_decoder_open(&limits, &decoder) != BPT_OK) abort();
    if (bpt_image_look("fuzz", data, size, &limits, &info) != BPT_OK) return;
    if (info.format == BPT_IMAGE_JPEG) compare_sizes(data, size, &info);
    decode(decoder, data, size, &info, (bpt_image_fit){0}, info.C);
    decode(decoder, data, size, &info, (bpt_image_fit){.short_side = 9, .H = 8, .W = 7},
           4 - info.C);
}

static void mend_checksums(uint8_t *png, size_t size) {
    size_t at = 8;
    while (size - at >= 12) {
        uint8_t *chunk = png + at;
        const size_t n = (size_t)chunk[0] << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
        if (n > size - at - 12) return;
        const uLong sum = crc32(0, chunk + 4, (uInt)n + 4);
        for (int i = 0; i < 4; i++) chunk[8 + n + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += 12 + n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_image(data, size);
    if (size < 8 || data[0] != 0x89) return 0;
    uint8_t *mended = malloc(size);
    if (!mended) abort();
    memcpy(mended, data, size);
    mend_checksums(mended, size);
    try_image(mended, size);
    free(mended);
    return 0;
}
