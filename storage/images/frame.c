#include "storage/images/frame.h"

#include "storage/images/image.h"

bpt_status bpt_image_fit_check(const bpt_image_fit *fit) {
    if (!fit->H != !fit->W)
        return bpt_fail(BPT_EUSAGE, "images of %u x %u pixels: both sides or none", fit->H, fit->W);
    if (fit->H > BPT_IMAGE_MAX_SIDE || fit->W > BPT_IMAGE_MAX_SIDE ||
        fit->short_side > BPT_IMAGE_MAX_SIDE)
        return bpt_fail(BPT_EUSAGE, "a side of %u pixels; the longest is %d",
                        fit->short_side > fit->H
                            ? fit->short_side > fit->W ? fit->short_side : fit->W
                        : fit->H > fit->W ? fit->H
                                          : fit->W,
                        BPT_IMAGE_MAX_SIDE);
    if (fit->short_side && (fit->H > fit->short_side || fit->W > fit->short_side)) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "the middle %u x %u of images whose short side is %u", fit->H,
                     fit->W, fit->short_side);
        bpt_hint("a short side of at least %u, or a smaller middle",
                 fit->H > fit->W ? fit->H : fit->W);
        return status;
    }
    return BPT_OK;
}

uint32_t bpt_image_side(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t side = ((uint64_t)a * b * 2 + c) / ((uint64_t)c * 2);
    if (side > BPT_IMAGE_MAX_SIDE) return BPT_IMAGE_MAX_SIDE;
    return side == 0 ? 1 : (uint32_t)side;
}

bpt_image_frame bpt_image_fit_frame(const bpt_image_fit *fit, uint32_t H, uint32_t W) {
    bpt_image_frame frame = {.h = H, .w = W, .scaled_h = H, .scaled_w = W};
    if (fit->short_side) {
        frame.scaled_h = H <= W ? fit->short_side : bpt_image_side(H, fit->short_side, W);
        frame.scaled_w = W <= H ? fit->short_side : bpt_image_side(W, fit->short_side, H);
    } else if (fit->H) {
        frame.scaled_h = fit->H;
        frame.scaled_w = fit->W;
    }
    frame.H = fit->H ? fit->H : frame.scaled_h;
    frame.W = fit->W ? fit->W : frame.scaled_w;
    frame.crop_y = (frame.scaled_h - frame.H) / 2;
    frame.crop_x = (frame.scaled_w - frame.W) / 2;
    return frame;
}

/* Whether [from, from + length) is a part, not empty, of [0, whole). */
static int is_part(uint32_t from, uint32_t length, uint32_t whole) {
    return length > 0 && length <= whole && from <= whole - length;
}

bpt_status bpt_image_frame_check(const bpt_image_frame *f, uint32_t H, uint32_t W) {
    if (!is_part(f->y, f->h, H) || !is_part(f->x, f->w, W))
        return bpt_fail(BPT_EUSAGE, "rows %u + %u, columns %u + %u of an image of %u x %u", f->y,
                        f->h, f->x, f->w, H, W);
    if (H > BPT_IMAGE_MAX_SIDE || W > BPT_IMAGE_MAX_SIDE || f->scaled_h > BPT_IMAGE_MAX_SIDE ||
        f->scaled_w > BPT_IMAGE_MAX_SIDE)
        return bpt_fail(BPT_EUSAGE, "%u x %u to %u x %u: a side has at most %d pixels", H, W,
                        f->scaled_h, f->scaled_w, BPT_IMAGE_MAX_SIDE);
    if (!is_part(f->crop_y, f->H, f->scaled_h) || !is_part(f->crop_x, f->W, f->scaled_w))
        return bpt_fail(BPT_EUSAGE, "rows %u + %u, columns %u + %u of %u x %u", f->crop_y, f->H,
                        f->crop_x, f->W, f->scaled_h, f->scaled_w);
    return BPT_OK;
}
