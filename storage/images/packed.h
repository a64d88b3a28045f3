/** @file storage/images/packed.h
 * Pixels as codecs have them: all values of a pixel side by side. For this folder only.
 *
 * Threads: one at a time for each. */
#ifndef BPT_STORAGE_IMAGES_PACKED_H
#define BPT_STORAGE_IMAGES_PACKED_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Starts as all zero; keeps its memory from image to image; bpt__packed_clear() at the end. */
typedef struct bpt__packed {
    uint8_t *pixels; /* shape [H,W,lanes] */
    uint8_t *memory; /* that these are in */
    size_t capacity; /* bytes of pixels */
    uint32_t H, W;
    uint32_t lanes; /* 1: grey; 4: red, green, blue, and one that is not looked at */
} bpt__packed;

/** Makes room for an image; what was there is lost.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__packed_reserve(bpt__packed *packed, uint32_t H, uint32_t W, uint32_t lanes);
void bpt__packed_clear(bpt__packed *packed);

/* Colours, in place; rules in storage/images/image.h. All for 4 lanes. */

/** @param inverted lanes hold 255 minus cyan, magenta, yellow, black */
void bpt__packed_cmyk_to_rgb(bpt__packed *packed, bool inverted);
/** The fourth lane is alpha. */
void bpt__packed_over_white(bpt__packed *packed);
/** Leaves one lane. */
void bpt__packed_to_grey(bpt__packed *packed);

/** Turns an image upright.
 * @param orientation of Exif, 1 to 8
 * @param[in,out] packed changes places with @p other unless orientation is 1
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__packed_turn(bpt__packed *packed, uint32_t orientation, bpt__packed *other);

/** Copies a part of an image, without a change of size, to planes.
 * @param[out] out shape [C,H,W], C = 1 for 1 lane, 3 for 4 */
void bpt__packed_to_planes(const bpt__packed *packed, uint32_t y, uint32_t x, uint32_t H,
                           uint32_t W, uint8_t *out);

/** The same for n pixels of 4 lanes.
 * @param in shape [n,4]
 * @param[out] r, g, b shape [n]; none of the four overlap */
void bpt__split(const uint8_t *in, size_t n, uint8_t *r, uint8_t *g, uint8_t *b);

#endif
