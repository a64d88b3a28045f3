/** @file base/images.h
 * A batch of images in the bytes that they are stored in, and what is left to do to them before a
 * network sees them: to move their pixels, and to normalise them. So whoever loads images can leave
 * both to whoever computes with them, and a quarter of the bytes has to travel there.
 *
 * Threads: plain values. */
#ifndef BPT_BASE_IMAGES_H
#define BPT_BASE_IMAGES_H

#include <stdint.h>

/** Where the pixels of a side (a row, or a column) come from: pixel i, if it is at least begin and
 * below end, from pixel first + step * i; the others are black. */
typedef struct bpt_side_move {
    int32_t first; /* may be beside the image */
    int32_t step;  /* 1 or -1 */
    int32_t begin, end;
} bpt_side_move;

/** Pixel (y, x) comes from (y's, x's), and is black if one of both has none. */
typedef struct bpt_image_move {
    bpt_side_move y, x;
} bpt_image_move;

/** A batch of them, borrowed from whoever loaded it. */
typedef struct bpt_images {
    const uint8_t *pixels;       /* shape [n,C,H,W] */
    const bpt_image_move *moves; /* shape [n]; NULL: none is moved */
    const float *scale, *shift; /* shape [C]: a pixel becomes pixel * scale + shift, the product and
                                 * the sum each rounded to a float */
    uint32_t n;                 /* images that are there; the rest of the batch becomes 0 */
} bpt_images;

#endif
