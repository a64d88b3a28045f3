#include "inner/loops/weight_copies.h"

#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
#include "inner/loops/turn_square.h"

#include <immintrin.h>
#include <string.h>

/* Features, no arch=: that takes away what -march= has more, and intrinsics cannot be inlined. */
#define NATIVE                                                                                     \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,fma,"                       \
               "prefer-vector-width=512")))
#define INLINE NATIVE static inline __attribute__((always_inline))

enum { LANES = BPT_COPY_LANES, PAIRS = LANES / 2, BLOCK = LANES * LANES };

/* A row of inputs and the next: values of an output become neighbours. */
INLINE void copy_forward(const __m512 rows[LANES], bpt_bf16 *restrict out) {
    static const uint16_t by_turns[2 * LANES] __attribute__((aligned(64))) = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i places = _mm512_load_si512(by_turns);
#pragma GCC unroll 8
    for (int i = 0; i < PAIRS; i++) {
        const __m512i two = (__m512i)_mm512_cvtne2ps_pbh(rows[2 * i + 1], rows[2 * i]);
        _mm512_storeu_si512(out + i * 2 * LANES, _mm512_permutexvar_epi16(places, two));
    }
}

/* Neighbours of a row are a pair already; the pairs of eight rows are a square. */
INLINE void copy_backward(const __m512 rows[LANES], bpt_bf16 *restrict out) {
#pragma GCC unroll 2
    for (int first = 0; first < LANES; first += BPT_SQUARE) {
        bpt_square_f32 square[BPT_SQUARE], turned[BPT_SQUARE];
#pragma GCC unroll 8
        for (int i = 0; i < BPT_SQUARE; i++)
            square[i] = (bpt_square_f32)_mm512_cvtneps_pbh(rows[first + i]);
        BPT_TURN_SQUARE(square, turned);
#pragma GCC unroll 8
        for (int i = 0; i < PAIRS; i++)
            memcpy(out + (i * LANES + first) * 2, &turned[i], sizeof turned[i]);
    }
}

NATIVE static void copy(const bpt_weight_blocks *n, const float *restrict weights,
                        bpt_bf16 *restrict forward, bpt_bf16 *restrict backward) {
    for (int64_t k = 0; k < n->k; k++)
        for (int64_t c = 0; c < n->c; c++)
            for (int64_t tap = 0; tap < n->taps; tap++) {
                const int64_t at = (k * n->c + c) * n->taps + tap;
                const int64_t turned = n->inputs_first ? (c * n->k + k) * n->taps + tap : at;
                __m512 rows[LANES];
#pragma GCC unroll 16
                for (int i = 0; i < LANES; i++)
                    rows[i] = _mm512_loadu_ps(weights + at * BLOCK + i * LANES);
                if (forward) copy_forward(rows, forward + at * BLOCK);
                if (backward) copy_backward(rows, backward + turned * BLOCK);
            }
}

bpt_copy_weights *bpt_copy_weights_native(void) {
    const bool there = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("x86-64-v4");
    return there ? copy : NULL;
}

#else

bpt_copy_weights *bpt_copy_weights_native(void) {
    return NULL;
}

#endif
