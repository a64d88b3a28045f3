/** @file storage/augmentations/draws.h
 * Inside of storage/augmentations: how sizes and places are drawn, in whole numbers.
 *
 * Threads: any; a stream belongs to one thread. */
#ifndef BPT_STORAGE_AUGMENTATIONS_DRAWS_H
#define BPT_STORAGE_AUGMENTATIONS_DRAWS_H

#include "base/random.h"

#include <stdint.h>

/** A rectangle of pixels. */
typedef struct bpt__window {
    uint32_t y, x, h, w;
} bpt__window;

/** @return uniform in [low, high]; the range is below 2^32 - 1 */
uint32_t bpt__draw_between(bpt_random *random, uint32_t low, uint32_t high);

/** @return the root of a whole number, rounded down */
uint64_t bpt__root(uint64_t n);

/** Sides of a rectangle by its area and their ratio, rounded, halves up.
 * @param n_pixels of the image, at most 2^28
 * @param area     part of them, in 1 / BPT_AUGMENT_UNIT, at most 1
 * @param ratio    height / width, in 1 / BPT_AUGMENT_UNIT, 0.1 to 10
 * @param[out] h, w 0 where they round to it */
void bpt__sides(uint64_t n_pixels, uint32_t area, uint32_t ratio, uint32_t *h, uint32_t *w);

#endif
