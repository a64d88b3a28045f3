/** @file storage/images/resize_fixed.h
 * Products of 16 bits, of which there are four times as many to a vector as of 32 bits with twice
 * the length. For this folder only. */
#ifndef BPT_STORAGE_IMAGES_RESIZE_FIXED_H
#define BPT_STORAGE_IMAGES_RESIZE_FIXED_H

#include <stdint.h>

/** Up to so many weights a pixel are rounded to 16 bits. Between a half of its length and twice
 * that a side needs three. */
enum { BPT__FEW_TAPS = 4 };

/** @return a * b / 2^16, rounded down */
static inline uint16_t bpt__mul_high(uint16_t a, uint16_t b) {
    return (uint16_t)((uint32_t)a * b >> 16);
}

#endif
