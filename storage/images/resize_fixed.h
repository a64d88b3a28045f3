/** @file storage/images/resize_fixed.h
 * Weights and products of 16 bits, of which a vector holds twice as many as of 32. For this folder
 * only.
 *
 * Values in between are 256 times those of pixels, at most 65280. A weight becomes a share of 2^16,
 * rounded, which is at most half a unit of such a value, and a product with it loses its lower
 * half, which is less than one. Of up to four products, half their number is added again, rounded
 * down. So a sum is less than 4 off, and after rows and columns a pixel less than 8 / 256 of a grey
 * level.
 *
 * The shares of a pixel sum to at most 2^16 + 1. White is at most 65280 + 1 + 2 after rows, then,
 * and 65283 + 1 + 2 after columns, with 128 more to be rounded by: 16 bits hold every sum.
 *
 * Threads: pure functions. */
#ifndef BPT_STORAGE_IMAGES_RESIZE_FIXED_H
#define BPT_STORAGE_IMAGES_RESIZE_FIXED_H

#include <stdint.h>

/** @param weight at most @p whole
 * @param whole   1 to 2^15
 * @return weight / whole in units of 2^-16, rounded; of all of it one unit too little */
static inline uint16_t bpt__share(uint32_t weight, uint32_t whole) {
    const uint32_t share = ((weight << 16) + whole / 2) / whole;
    return share > UINT16_MAX ? UINT16_MAX : (uint16_t)share;
}

/** @return value * share / 2^16, rounded down */
static inline uint16_t bpt__mul_high(uint16_t value, uint16_t share) {
    return (uint16_t)((uint32_t)value * share >> 16);
}

#endif
