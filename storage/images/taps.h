/** @file storage/images/taps.h
 * Which pixels along a side one pixel of a resized image is made of, and how much of each. For this
 * folder only.
 *
 * Threads: pure functions. */
#ifndef BPT_STORAGE_IMAGES_TAPS_H
#define BPT_STORAGE_IMAGES_TAPS_H

#include <stdint.h>

/** n pixels from first on. Weights are whole numbers, their sum is bpt__taps_whole(). */
typedef struct bpt__taps {
    uint32_t first, n;
    uint32_t w_first, w_middle, w_last; /* w_last counts if n > 1 */
} bpt__taps;

/** Of a side that gets shorter the mean over an area, of one that gets longer linear
 * interpolation: see storage/images/resize.h.
 * @param i       pixel of the result, below @p out
 * @param in, out length of the side before and after, 1 to BPT_IMAGE_MAX_SIDE */
bpt__taps bpt__taps_of(uint32_t i, uint32_t in, uint32_t out);

/** @return weight of pixel t->first + @p k, k below t->n */
static inline uint32_t bpt__taps_weight(const bpt__taps *t, uint32_t k) {
    return k == 0 ? t->w_first : k + 1 < t->n ? t->w_middle : t->w_last;
}

/** @return sum of the weights of every pixel, 1 to 2^15 */
static inline uint32_t bpt__taps_whole(uint32_t in, uint32_t out) {
    return out > in ? 2 * out : in;
}

/** @return weight over @p whole in units of 2^-16; 2^-16 too little for all of it */
static inline uint16_t bpt__taps_share(uint32_t weight, uint32_t whole) {
    const uint32_t share = ((weight << 16) + whole / 2) / whole;
    return share > UINT16_MAX ? UINT16_MAX : (uint16_t)share;
}

#endif
