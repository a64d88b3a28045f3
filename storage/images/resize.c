/* Rows first, then columns: a line is made of the rows that a row of the result takes, with 8 bits
 * more than pixels have, and from it the row. */
#include "storage/images/resize.h"

#include "base/memory.h"
#include "storage/images/packed.h"
#include "storage/images/resize_columns.h"
#include "storage/images/resize_rows.h"
#include "storage/images/scale.h"

#include <stdbool.h>
#include <string.h>

struct bpt_image_resizer {
    bpt__columns columns;
    uint16_t *line;  /* made of rows of the input, shape [width,lanes] */
    uint32_t *sums;  /* likewise */
    uint8_t *pixels; /* a row of the result, shape [W rounded to groups,lanes] */
    size_t line_capacity, sums_capacity, pixels_capacity;
};

bpt_status bpt_image_resizer_open(bpt_image_resizer **out) {
    return BPT_NEW("resizer", 1, out);
}

void bpt_image_resizer_close(bpt_image_resizer *r) {
    if (!r) return;
    bpt__columns_clear(&r->columns);
    bpt_free(r->line);
    bpt_free(r->sums);
    bpt_free(r->pixels);
    bpt_free(r);
}

/* Room for a line and a row of pixels. */
static bpt_status reserve(bpt_image_resizer *r) {
    const bpt__columns *c = &r->columns;
    const size_t n_line = (size_t)c->width * c->lanes;
    const size_t n_pixels = (size_t)bpt__columns_rounded(c->W) * c->lanes;
    BPT_TRY(BPT_GROW("line of a resizer", n_line, &r->line, &r->line_capacity));
    BPT_TRY(BPT_GROW("sums of a resizer", n_line, &r->sums, &r->sums_capacity));
    return BPT_GROW("pixels of a resizer", n_pixels, &r->pixels, &r->pixels_capacity);
}

bpt_status bpt__scale_packed(bpt_image_resizer *r, const bpt_image_frame *f, const uint8_t *in,
                             uint32_t lanes, uint32_t W, uint8_t *out) {
    const bpt__columns *c = &r->columns;
    BPT_TRY(bpt__columns_fill(&r->columns, lanes, f->crop_x, f->W, f->w, f->scaled_w));
    BPT_TRY(reserve(r));
    const size_t pitch = (size_t)W * lanes, plane = (size_t)f->H * f->W;
    const uint32_t whole = bpt__taps_whole(f->h, f->scaled_h);
    in += f->y * pitch + (f->x + (size_t)c->from) * lanes;
    for (uint32_t y = 0; y < f->H; y++) {
        const bpt__taps t = bpt__taps_of(f->crop_y + y, f->h, f->scaled_h);
        uint8_t *row = out + (size_t)y * f->W;
        bpt__resize_rows(in, pitch, &t, whole, (size_t)c->width * lanes, r->line, r->sums);
        bpt__resize_columns(c, r->line, lanes == 1 ? row : r->pixels);
        if (lanes == 4) bpt__split(r->pixels, f->W, row, row + plane, row + 2 * plane);
    }
    return BPT_OK;
}

static void cut(const bpt_image_frame *f, const uint8_t *in, uint32_t W, uint8_t *out) {
    in += (size_t)(f->y + f->crop_y) * W + f->x + f->crop_x;
    for (uint32_t y = 0; y < f->H; y++) memcpy(out + (size_t)y * f->W, in + (size_t)y * W, f->W);
}

bpt_status bpt_image_resize(bpt_image_resizer *r, const bpt_image_frame *f, const uint8_t *in,
                            uint32_t C, uint32_t H, uint32_t W, uint8_t *out) {
    BPT_TRY(bpt_image_frame_check(f, H, W));
    const bool same_size = f->h == f->scaled_h && f->w == f->scaled_w;
    for (uint32_t c = 0; c < C; c++) {
        const uint8_t *plane = in + (size_t)c * H * W;
        uint8_t *result = out + (size_t)c * f->H * f->W;
        if (same_size)
            cut(f, plane, W, result);
        else
            BPT_TRY(bpt__scale_packed(r, f, plane, 1, W, result));
    }
    return BPT_OK;
}
