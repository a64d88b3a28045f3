/** @file inner/loops/winograd_transforms.h
 * Winograd's transforms of one square (inner/loops/winograd_loops.h), for the loops over images and
 * over filters: inlined into them, for each type and number of lanes that they have.
 *
 * Private to inner/loops/winograd_*.c. Pure. Threads: any. */
#ifndef BPT_INNER_WINOGRAD_TRANSFORMS_H
#define BPT_INNER_WINOGRAD_TRANSFORMS_H

#include "inner/loops/winograd_loops.h"

#include <string.h>

/* Of floats; a side of bfloat16 is two less. */
enum { MAX_PATCH = 4, MAX_WINDOW = 6, FILTER = 3, MAX_LANES = BPT_WINOGRAD_MAX_LANES };

/* The loops are made for a constant type and number of lanes each, in every clone. */
#define INLINE              static inline __attribute__((always_inline))
#define FOR_LANES(l, lanes) _Pragma("omp simd") for (int l = 0; l < (lanes); l++)

/* ---- one dimension: value i of x lies at i * xs, of y at i * ys, each a vector of lanes ---- */

/* -- F(4x4, 3x3) -- */

/* y = B' x */
INLINE void transform_window(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                             int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l];
        const float x4 = x[4 * xs + l], x5 = x[5 * xs + l];
        const float a = x4 - 4.0f * x2, b = x3 - 4.0f * x1, c = x4 - x2, d = 2.0f * (x3 - x1);
        y[l] = 4.0f * x0 - 5.0f * x2 + x4;
        y[ys + l] = a + b;
        y[2 * ys + l] = a - b;
        y[3 * ys + l] = c + d;
        y[4 * ys + l] = c - d;
        y[5 * ys + l] = 4.0f * x1 - 5.0f * x3 + x5;
    }
}

/* y = A' x */
INLINE void transform_products(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                               int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l], x4 = x[4 * xs + l];
        const float a = x1 + x2, b = x1 - x2, c = x3 + x4, d = x3 - x4;
        y[l] = x[l] + a + c;
        y[ys + l] = b + 2.0f * d;
        y[2 * ys + l] = a + 4.0f * c;
        y[3 * ys + l] = b + 8.0f * d + x[5 * xs + l];
    }
}

/* y = A x */
INLINE void transform_gradients(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                                int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l];
        const float a = x0 + x2, b = x1 + x3, c = x0 + 4.0f * x2, d = 2.0f * x1 + 8.0f * x3;
        y[l] = x0;
        y[ys + l] = a + b;
        y[2 * ys + l] = a - b;
        y[3 * ys + l] = c + d;
        y[4 * ys + l] = c - d;
        y[5 * ys + l] = x3;
    }
}

/* y = G x */
INLINE void transform_filter(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                             int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l], x2 = x[2 * xs + l];
        const float a = (x0 + x2) * (-1.0f / 6), b = x1 * (1.0f / 6);
        const float c = x0 * (1.0f / 24) + x2 * (1.0f / 6), d = x1 * (1.0f / 12);
        y[l] = 0.25f * x0;
        y[ys + l] = a - b;
        y[2 * ys + l] = a + b;
        y[3 * ys + l] = c + d;
        y[4 * ys + l] = c - d;
        y[5 * ys + l] = x2;
    }
}

/* y = G' x */
INLINE void transform_filter_gradient(int lanes, const float *restrict x, int64_t xs,
                                      float *restrict y, int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l], x4 = x[4 * xs + l];
        const float a = (x1 + x2) * (1.0f / 6), b = x3 + x4;
        y[l] = 0.25f * x[l] - a + b * (1.0f / 24);
        y[ys + l] = (x2 - x1) * (1.0f / 6) + (x3 - x4) * (1.0f / 12);
        y[2 * ys + l] = b * (1.0f / 6) - a + x[5 * xs + l];
    }
}

/* -- F(2x2, 3x3) -- */

/* y = B' x */
INLINE void transform_small_window(int lanes, const float *restrict x, int64_t xs,
                                   float *restrict y, int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x1 = x[xs + l], x2 = x[2 * xs + l];
        y[l] = x[l] - x2;
        y[ys + l] = x1 + x2;
        y[2 * ys + l] = x2 - x1;
        y[3 * ys + l] = x1 - x[3 * xs + l];
    }
}

/* y = A' x */
INLINE void transform_small_products(int lanes, const float *restrict x, int64_t xs,
                                     float *restrict y, int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x1 = x[xs + l], x2 = x[2 * xs + l];
        y[l] = x[l] + x1 + x2;
        y[ys + l] = x1 - x2 - x[3 * xs + l];
    }
}

/* y = A x */
INLINE void transform_small_gradients(int lanes, const float *restrict x, int64_t xs,
                                      float *restrict y, int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l];
        y[l] = x0;
        y[ys + l] = x0 + x1;
        y[2 * ys + l] = x0 - x1;
        y[3 * ys + l] = -x1;
    }
}

/* y = G x */
INLINE void transform_small_filter(int lanes, const float *restrict x, int64_t xs,
                                   float *restrict y, int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l], x2 = x[2 * xs + l];
        y[l] = x0;
        y[ys + l] = 0.5f * (x0 + x2 + x1);
        y[2 * ys + l] = 0.5f * (x0 + x2 - x1);
        y[3 * ys + l] = x2;
    }
}

/* y = G' x */
INLINE void transform_small_filter_gradient(int lanes, const float *restrict x, int64_t xs,
                                            float *restrict y, int64_t ys) {
    FOR_LANES(l, lanes) {
        const float a = 0.5f * (x[xs + l] + x[2 * xs + l]);
        y[l] = x[l] + a;
        y[ys + l] = 0.5f * (x[xs + l] - x[2 * xs + l]);
        y[2 * ys + l] = a + x[3 * xs + l];
    }
}

/* ---- both dimensions ---- */

typedef void transform(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                       int64_t ys);

/* From m x m vectors, (i, j) at i * row + j * column of x, to k x k, at (i * k + j) * ys of y. */
INLINE void in_both(transform *one, int lanes, int m, int k, const float *restrict x, int64_t row,
                    int64_t column, float *restrict y, int64_t ys) {
    float half[MAX_WINDOW * MAX_WINDOW * MAX_LANES];
    /* Whole, so that what of half is in registers need not go through memory. */
#pragma GCC unroll 6
    for (int j = 0; j < m; j++) one(lanes, x + j * column, row, half + j * lanes, m * lanes);
#pragma GCC unroll 6
    for (int i = 0; i < k; i++) one(lanes, half + i * m * lanes, lanes, y + i * k * ys, ys);
}

/* ---- to memory ---- */

/* Writes n floats in the type of an activation. */
INLINE void put(bpt_value_type type, const float *restrict x, int64_t n, void *restrict out) {
    if (type == BPT_F32)
        memcpy(out, x, (size_t)n * sizeof *x);
    else
        for (int64_t i = 0; i < n; i++) ((bpt_bf16 *)out)[i] = bpt_to_bf16(x[i]);
}

#endif
