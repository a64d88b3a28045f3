/** @file storage/images/frame.h
 * Which part of an image is taken, the size that it gets, and what is kept of that: from "short
 * side 256, then the middle 224 by 224" to numbers.
 *
 * Threads: pure functions. */
#ifndef BPT_STORAGE_IMAGES_FRAME_H
#define BPT_STORAGE_IMAGES_FRAME_H

#include "base/status.h"

#include <stdint.h>

/** What the user asks for. All zero: the image as it is. */
typedef struct bpt_image_fit {
    uint32_t
        short_side; /* the shorter side gets this length, the ratio is kept; 0: not asked for */
    uint32_t H, W;  /* both or none. Without short_side: the image is stretched to this size.
                       With it: this much of the middle is kept; each at most short_side */
} bpt_image_fit;

/** The numbers for one image. All in pixels of the upright image. */
typedef struct bpt_image_frame {
    uint32_t y, x, h, w;           /* the part of the image that is taken */
    uint32_t scaled_h, scaled_w;   /* the size that this part is resized to */
    uint32_t crop_y, crop_x, H, W; /* the part of that which is kept: the result is [C,H,W] */
} bpt_image_frame;

/** @param a, b, c sides, 1 to BPT_IMAGE_MAX_SIDE
 * @return round(a * b / c), half up, 1 to BPT_IMAGE_MAX_SIDE */
uint32_t bpt_image_side(uint32_t a, uint32_t b, uint32_t c);

/** @return BPT_OK, BPT_EUSAGE (only one of H and W; a side above BPT_IMAGE_MAX_SIDE; H or W above
 *         short_side) */
bpt_status bpt_image_fit_check(const bpt_image_fit *fit);

/** The frame that fits an image. Of a kept ratio the longer side is round(long * short_side /
 * short), half up, at least 1 and at most BPT_IMAGE_MAX_SIDE (a ratio beyond that is not kept). The
 * middle begins at (scaled - kept) / 2, rounded down.
 * @param fit  as bpt_image_fit_check() allows
 * @param H, W of the upright image, at least 1 */
bpt_image_frame bpt_image_fit_frame(const bpt_image_fit *fit, uint32_t H, uint32_t W);

/** @return BPT_OK, BPT_EUSAGE (a part of length 0 or beyond its whole, a side above
 *         BPT_IMAGE_MAX_SIDE)
 * @param H, W of the upright image */
bpt_status bpt_image_frame_check(const bpt_image_frame *frame, uint32_t H, uint32_t W);

#endif
