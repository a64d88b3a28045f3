/** @file storage/images/taps.h
 * Which pixels along a side one pixel of a resized image is made of, and how much of each. For this
 * folder only.
 *
 * Threads: pure functions. */
#ifndef BPT_STORAGE_IMAGES_TAPS_H
#define BPT_STORAGE_IMAGES_TAPS_H

#include <stdint.h>

/** Up to so many weights a pixel go in 16 bits (storage/images/resize_fixed.h). A side that keeps a
 * third of its length needs no more, one that keeps half of it three. */
enum { BPT__FEW_TAPS = 4 };

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

/** Which of the pixels along a side are looked at.
 * @param in, out length of the side before and after
 * @param crop, n the pixels of the result that are kept: [crop, crop + n)
 * @param[out] first, n_taken */
void bpt__taps_span(uint32_t in, uint32_t out, uint32_t crop, uint32_t n, uint32_t *first,
                    uint32_t *n_taken);

#endif
