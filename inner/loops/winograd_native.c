#include "inner/loops/winograd_native.h"

#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
#include <assert.h>
#include <immintrin.h>

/* Features, no arch=: that takes away what -march= has more, and intrinsics cannot be inlined. */
#define NATIVE                                                                                     \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,fma,"                       \
               "prefer-vector-width=512")))
#define INLINE NATIVE static inline __attribute__((always_inline))

enum { LANES = 16, PATCH = 2, WINDOW = PATCH + 2 };

/* ---- vectors ---- */

INLINE __m512 widened(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

INLINE void put(__m512 x, bpt_bf16 *out) {
    _mm256_storeu_si256((void *)out, (__m256i)_mm512_cvtneps_pbh(x));
}

/* ---- in ---- */

/* Where a square begins, which may be outside of the image, and what of it is inside. */
typedef struct {
    int64_t row, column;
    bool rows[WINDOW], columns[WINDOW];
    bool whole;
} square;

INLINE square square_at(const bpt_winograd_image *m, int side, int64_t row, int64_t column) {
    square s = {.row = row, .column = column, .whole = true};
    for (int k = 0; k < side; k++) {
        s.rows[k] = row + k >= 0 && row + k < m->h;
        s.columns[k] = column + k >= 0 && column + k < m->w;
        s.whole = s.whole && s.rows[k] && s.columns[k];
    }
    return s;
}

/* @param block of channels of a sample; @param whole the square is inside */
INLINE void load(const bpt_winograd_image *m, const square *s, int side, bool whole,
                 const bpt_bf16 *block, __m512 d[WINDOW][WINDOW]) {
#pragma GCC unroll 4
    for (int i = 0; i < side; i++)
#pragma GCC unroll 4
        for (int j = 0; j < side; j++) {
            const bool there = whole || (s->rows[i] && s->columns[j]);
            const int64_t at = there ? ((s->row + i) * m->w + s->column + j) * LANES : 0;
            const __m256i x = _mm256_loadu_si256((const void *)(block + at));
            d[i][j] = there ? widened(x) : _mm512_setzero_ps();
        }
}

/* v = B' d B */
INLINE void window_in(__m512 d[WINDOW][WINDOW], bpt_bf16 *restrict v, int64_t plane) {
    __m512 t[WINDOW][WINDOW];
#pragma GCC unroll 4
    for (int j = 0; j < WINDOW; j++) {
        t[0][j] = d[0][j] - d[2][j];
        t[1][j] = d[1][j] + d[2][j];
        t[2][j] = d[2][j] - d[1][j];
        t[3][j] = d[1][j] - d[3][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < WINDOW; i++, v += WINDOW * plane) {
        put(t[i][0] - t[i][2], v);
        put(t[i][1] + t[i][2], v + plane);
        put(t[i][2] - t[i][1], v + 2 * plane);
        put(t[i][1] - t[i][3], v + 3 * plane);
    }
}

/* z = A d A' */
INLINE void patch_in(__m512 d[WINDOW][WINDOW], bpt_bf16 *restrict z, int64_t plane) {
    __m512 t[WINDOW][PATCH];
#pragma GCC unroll 2
    for (int j = 0; j < PATCH; j++) {
        t[0][j] = d[0][j];
        t[1][j] = d[0][j] + d[1][j];
        t[2][j] = d[0][j] - d[1][j];
        t[3][j] = -d[1][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < WINDOW; i++, z += WINDOW * plane) {
        put(t[i][0], z);
        put(t[i][0] + t[i][1], z + plane);
        put(t[i][0] - t[i][1], z + 2 * plane);
        put(-t[i][1], z + 3 * plane);
    }
}

/* A square's blocks of channels, one after the other.
 * @param x the sample; @param v the square's values of the first matrix */
INLINE void blocks_in(const bpt_winograd_image *m, const square *s, int side, bool whole,
                      const bpt_bf16 *restrict x, bpt_bf16 *restrict v, int64_t plane) {
    for (int64_t b = 0; b < m->blocks; b++, x += m->h * m->w * LANES, v += LANES) {
        __m512 d[WINDOW][WINDOW];
        load(m, s, side, whole, x, d);
        if (side == WINDOW)
            window_in(d, v, plane);
        else
            patch_in(d, v, plane);
    }
}

/* @param side of the squares: a window, or a patch */
INLINE void squares_in(const bpt_winograd_image *m, int side, const bpt_bf16 *restrict x,
                       bpt_bf16 *restrict v) {
    const int64_t plane = bpt_winograd_plane(BPT_BF16, bpt_winograd_matrix(m));
    assert(m->lanes == LANES);
    const int64_t up = side == WINDOW ? m->pad[0] : 0, left = side == WINDOW ? m->pad[1] : 0;
    for (int64_t n = 0; n < m->there; n++, x += m->blocks * m->h * m->w * LANES)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->columns; j++, v += m->blocks * LANES) {
                const square s = square_at(m, side, i * PATCH - up, j * PATCH - left);
                if (s.whole)
                    blocks_in(m, &s, side, true, x, v, plane);
                else
                    blocks_in(m, &s, side, false, x, v, plane);
            }
}

NATIVE static void windows(const bpt_winograd_image *m, const void *restrict x, void *restrict v) {
    squares_in(m, WINDOW, x, v);
}

NATIVE static void gradients(const bpt_winograd_image *m, const void *restrict dy,
                             void *restrict z) {
    squares_in(m, PATCH, dy, z);
}

/* ---- out ---- */

/* y = A' x A */
INLINE void patch_out(const float *restrict v, int64_t plane, __m512 y[PATCH][PATCH]) {
    __m512 x[WINDOW][WINDOW], t[PATCH][WINDOW];
#pragma GCC unroll 4
    for (int i = 0; i < WINDOW; i++)
#pragma GCC unroll 4
        for (int j = 0; j < WINDOW; j++) x[i][j] = _mm512_loadu_ps(v + (i * WINDOW + j) * plane);
#pragma GCC unroll 4
    for (int j = 0; j < WINDOW; j++) {
        t[0][j] = x[0][j] + x[1][j] + x[2][j];
        t[1][j] = x[1][j] - x[2][j] - x[3][j];
    }
#pragma GCC unroll 2
    for (int i = 0; i < PATCH; i++) {
        y[i][0] = t[i][0] + t[i][1] + t[i][2];
        y[i][1] = t[i][1] - t[i][2] - t[i][3];
    }
}

/* Rectified, what is not a number stays so: the second operand is what max() gives then. */
INLINE __m512 finished(__m512 y, __m512 bias, bool relu) {
    const __m512 sum = _mm512_add_ps(y, bias);
    return relu ? _mm512_max_ps(_mm512_setzero_ps(), sum) : sum;
}

INLINE void squares_out(const bpt_winograd_image *m, bool relu, const float *restrict v,
                        const float *bias, int64_t n_bias, bpt_bf16 *restrict y) {
    const int64_t plane = bpt_winograd_plane(BPT_F32, bpt_winograd_matrix(m));
    assert(m->lanes == LANES);
    for (int64_t n = 0; n < m->there; n++)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->columns; j++)
                for (int64_t b = 0; b < m->blocks; b++, v += LANES) {
                    const int64_t left = bias ? n_bias - b * LANES : 0;
                    const __mmask16 given = left >= LANES ? 0xffff : (__mmask16)((1 << left) - 1);
                    const __m512 of_block =
                        _mm512_maskz_loadu_ps(given, bias ? bias + b * LANES : v);
                    bpt_bf16 *block = y + (n * m->blocks + b) * m->h * m->w * LANES;
                    __m512 patch[PATCH][PATCH];
                    patch_out(v, plane, patch);
#pragma GCC unroll 2
                    for (int r = 0; r < PATCH; r++)
#pragma GCC unroll 2
                        for (int c = 0; c < PATCH; c++)
                            if (i * PATCH + r < m->h && j * PATCH + c < m->w)
                                put(finished(patch[r][c], of_block, relu),
                                    block + ((i * PATCH + r) * m->w + j * PATCH + c) * LANES);
                }
}

NATIVE static void results(const bpt_winograd_image *m, const float *restrict v, const float *bias,
                           int64_t n_bias, bool relu, void *restrict y) {
    if (relu)
        squares_out(m, true, v, bias, n_bias, y);
    else
        squares_out(m, false, v, bias, n_bias, y);
}

const bpt__winograd_transforms *bpt__winograd_native(void) {
    static const bpt__winograd_transforms native = {windows, gradients, results};
    const bool there = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("x86-64-v4");
    return there ? &native : NULL;
}

#else

const bpt__winograd_transforms *bpt__winograd_native(void) {
    return NULL;
}

#endif
