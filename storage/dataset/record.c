#include "storage/dataset/record.h"

#include "base/little_endian.h"
#include "storage/dataset/statistics.h"
#include "storage/images/image.h"

#include <string.h>

/* Little-endian: height, width, the sums of all channels, their squares, the file. */
enum { AT_H = 0, AT_W = 4, AT_SUMS = 8 };

static size_t header_bytes(uint32_t C) {
    return AT_SUMS + 2 * C * sizeof(uint64_t);
}

void bpt_record_measure(bpt_record *r, const uint8_t *pixels, uint32_t C) {
    const size_t plane = (size_t)r->H * r->W;
    for (uint32_t c = 0; c < C; c++) {
        r->sum[c] = r->square[c] = 0;
        bpt__statistics_sum(pixels + c * plane, plane, &r->sum[c], &r->square[c]);
    }
}

void bpt_record_widen(bpt_record *r) {
    for (uint32_t c = 1; c < BPT_RECORD_MAX_C; c++) {
        r->sum[c] = r->sum[0];
        r->square[c] = r->square[0];
    }
}

size_t bpt__record_bytes(const bpt_record *r, uint32_t C) {
    return header_bytes(C) + r->size;
}

void bpt__record_write(const bpt_record *r, uint32_t C, uint8_t *out) {
    out = bpt_put_u32(bpt_put_u32(out, r->H), r->W);
    for (uint32_t c = 0; c < C; c++) out = bpt_put_u64(out, r->sum[c]);
    for (uint32_t c = 0; c < C; c++) out = bpt_put_u64(out, r->square[c]);
    memcpy(out, r->data, r->size);
}

bool bpt__record_read(const uint8_t *bytes, size_t size, uint32_t C, bpt_record *record) {
    const bpt_image_limits limits = BPT_IMAGE_LIMITS_INIT;
    if (C == 0 || C > BPT_RECORD_MAX_C || size <= header_bytes(C)) return false;
    bpt_record r = {.data = bytes + header_bytes(C),
                    .size = size - header_bytes(C),
                    .H = bpt_get_u32(bytes + AT_H),
                    .W = bpt_get_u32(bytes + AT_W)};
    const uint64_t n_pixels = (uint64_t)r.H * r.W;
    if (n_pixels == 0 || r.H > limits.side || r.W > limits.side || n_pixels > limits.pixels ||
        r.size > limits.bytes)
        return false;
    for (uint32_t c = 0; c < C; c++) {
        r.sum[c] = bpt_get_u64(bytes + AT_SUMS + c * sizeof(uint64_t));
        r.square[c] = bpt_get_u64(bytes + AT_SUMS + (C + c) * sizeof(uint64_t));
        if (r.sum[c] > 255 * n_pixels || r.square[c] > 255 * r.sum[c]) return false;
    }
    *record = r;
    return true;
}
