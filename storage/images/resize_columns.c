/* As with rows, few weights are shares in 16 bits, and of many the sums are in 32: 2^16 times at
 * most 2^15. */
#include "storage/images/resize_columns.h"

#include "base/clones.h"
#include "base/memory.h"
#include "storage/images/resize_fixed.h"
#include "storage/images/taps.h"

#include <stdbool.h>
#include <string.h>

/* A test has the plain loops as well. */
#if defined(__SSE2__) && !defined(BPT_PLAIN_LOOPS)
#define BPT_SSE2
#include <emmintrin.h>
#endif

enum { GROUP = BPT__COLUMNS_GROUP, LANES = 4, PAIR = 2 * LANES };

/* ---- the table ---- */

/* Where the share of pixel x for its pixel k is: of one lane in the order of weights, of four a
 * pair of pixels together for each k, every share four times. */
static size_t share_at(const bpt__columns *c, uint32_t x, uint32_t k) {
    if (c->lanes == 1) return (size_t)x * c->n + k;
    return ((size_t)(x / 2) * c->n + k) * PAIR + x % 2 * LANES;
}

static bpt_status fill_shares(bpt__columns *c) {
    const uint32_t copies = c->lanes;
    const size_t n_shares = (size_t)bpt__columns_rounded(c->W) * c->n * copies;
    BPT_TRY(BPT_GROW("shares of a resizer", n_shares, &c->shares, &c->shares_capacity));
    memset(c->shares, 0, n_shares * sizeof *c->shares);
    for (uint32_t x = 0; x < c->W; x++)
        for (uint32_t k = 0; k < c->n; k++) {
            const uint16_t share = bpt__share(c->weights[(size_t)x * c->n + k], c->whole);
            for (uint32_t l = 0; l < copies; l++) c->shares[share_at(c, x, k) + l] = share;
        }
    return BPT_OK;
}

static void fill_pixel(bpt__columns *c, uint32_t x, const bpt__taps *t) {
    const uint32_t first = t->first - c->from;
    c->first[x] = first + c->n > c->width ? c->width - c->n : first; /* none beyond the end */
    uint32_t *weights = c->weights + (size_t)x * c->n + (first - c->first[x]);
    for (uint32_t k = 0; k < t->n; k++) weights[k] = bpt__taps_weight(t, k);
}

bpt_status bpt__columns_fill(bpt__columns *c, uint32_t lanes, uint32_t crop, uint32_t W,
                             uint32_t in, uint32_t out) {
    bpt__taps_span(in, out, crop, W, &c->from, &c->width);
    c->lanes = lanes;
    c->W = W;
    c->whole = bpt__taps_whole(in, out);
    c->n = 1;
    for (uint32_t x = 0; x < W; x++) {
        const bpt__taps t = bpt__taps_of(crop + x, in, out);
        if (t.n > c->n) c->n = t.n;
    }
    const size_t n_weights = (size_t)W * c->n;
    BPT_TRY(
        BPT_GROW("columns of a resizer", bpt__columns_rounded(W), &c->first, &c->first_capacity));
    BPT_TRY(BPT_GROW("weights of a resizer", n_weights, &c->weights, &c->weights_capacity));
    memset(c->weights, 0, n_weights * sizeof *c->weights);
    for (uint32_t x = 0; x < W; x++) {
        const bpt__taps t = bpt__taps_of(crop + x, in, out);
        fill_pixel(c, x, &t);
    }
    for (uint32_t x = W; x < bpt__columns_rounded(W); x++) c->first[x] = c->first[W - 1];
    return c->n <= BPT__FEW_TAPS ? fill_shares(c) : BPT_OK;
}

void bpt__columns_clear(bpt__columns *c) {
    bpt_free(c->first);
    bpt_free(c->weights);
    bpt_free(c->shares);
    *c = (bpt__columns){0};
}

/* ---- few weights, one lane: n is a constant in the copies of this loop and of the next ---- */

static inline __attribute__((always_inline)) void
loop_of_one(const uint16_t *restrict line, const uint32_t *restrict first,
            const uint16_t *restrict shares, uint32_t n, uint32_t W, uint8_t *restrict pixels) {
    for (uint32_t x = 0; x < W; x++, shares += n) {
        const uint16_t *in = line + first[x];
        uint32_t sum = 128 + n / 2;
        for (uint32_t k = 0; k < n; k++) sum += bpt__mul_high(in[k], shares[k]);
        pixels[x] = (uint8_t)(sum >> 8);
    }
}

static void few_of_one(const bpt__columns *c, const uint16_t *line, uint8_t *pixels) {
    switch (c->n) {
    case 1:
        loop_of_one(line, c->first, c->shares, 1, c->W, pixels);
        break;
    case 2:
        loop_of_one(line, c->first, c->shares, 2, c->W, pixels);
        break;
    case 3:
        loop_of_one(line, c->first, c->shares, 3, c->W, pixels);
        break;
    default:
        loop_of_one(line, c->first, c->shares, BPT__FEW_TAPS, c->W, pixels);
    }
}

/* ---- few weights, four lanes ---- */

/* What compilers make of plain loops takes several times as long. */
#ifdef BPT_SSE2
typedef __m128i pair; /* two pixels */

static inline __attribute__((always_inline)) pair pair_of(uint16_t value) {
    return _mm_set1_epi16((short)value);
}

static inline __attribute__((always_inline)) pair
add_product(pair sum, const uint16_t *a, const uint16_t *b, const uint16_t *shares) {
    const __m128i in = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)a),
                                          _mm_loadl_epi64((const __m128i *)(const void *)b));
    const __m128i w = _mm_loadu_si128((const __m128i *)(const void *)shares);
    return _mm_add_epi16(sum, _mm_mulhi_epu16(in, w));
}

static inline __attribute__((always_inline)) void put_pairs(pair s, pair t, uint8_t *pixels) {
    _mm_storeu_si128((__m128i *)(void *)pixels,
                     _mm_packus_epi16(_mm_srli_epi16(s, 8), _mm_srli_epi16(t, 8)));
}
#else
typedef struct pair {
    uint16_t v[PAIR];
} pair;

static inline pair pair_of(uint16_t value) {
    pair p;
    for (int i = 0; i < PAIR; i++) p.v[i] = value;
    return p;
}

static inline pair add_product(pair sum, const uint16_t *a, const uint16_t *b,
                               const uint16_t *shares) {
    for (int i = 0; i < PAIR; i++) {
        const uint16_t in = i < LANES ? a[i] : b[i - LANES];
        sum.v[i] = (uint16_t)(sum.v[i] + bpt__mul_high(in, shares[i]));
    }
    return sum;
}

static inline void put_pairs(pair s, pair t, uint8_t *pixels) {
    for (int i = 0; i < PAIR; i++) {
        pixels[i] = (uint8_t)(s.v[i] >> 8);
        pixels[PAIR + i] = (uint8_t)(t.v[i] >> 8);
    }
}
#endif

static inline __attribute__((always_inline)) void
loop_of_four(const uint16_t *restrict line, const uint32_t *restrict first,
             const uint16_t *restrict shares, uint32_t n, uint32_t W, uint8_t *restrict pixels) {
    const pair start = pair_of((uint16_t)(128 + n / 2));
    for (uint32_t x = 0; x < W; x += GROUP, shares += 2 * n * PAIR) {
        const uint16_t *in[GROUP];
        for (int i = 0; i < GROUP; i++) in[i] = line + (size_t)first[x + i] * LANES;
        pair s = start, t = start;
        for (uint32_t k = 0; k < n; k++) {
            s = add_product(s, in[0] + k * LANES, in[1] + k * LANES, shares + k * PAIR);
            t = add_product(t, in[2] + k * LANES, in[3] + k * LANES, shares + (n + k) * PAIR);
        }
        put_pairs(s, t, pixels + (size_t)x * LANES);
    }
}

BPT_CLONES static void few_of_four(const bpt__columns *c, const uint16_t *line, uint8_t *pixels) {
    switch (c->n) {
    case 1:
        loop_of_four(line, c->first, c->shares, 1, c->W, pixels);
        break;
    case 2:
        loop_of_four(line, c->first, c->shares, 2, c->W, pixels);
        break;
    case 3:
        loop_of_four(line, c->first, c->shares, 3, c->W, pixels);
        break;
    default:
        loop_of_four(line, c->first, c->shares, BPT__FEW_TAPS, c->W, pixels);
    }
}
_Static_assert(BPT__FEW_TAPS == 4 && GROUP == 4, "a case for each number; two pairs");

/* ---- many weights ---- */

/* A sum is below 2^31. */
static uint8_t rounded(uint32_t sum, float factor) {
    return (uint8_t)(int32_t)((float)(int32_t)sum * factor + 0.5F);
}

static void many_of_one(const bpt__columns *c, const uint16_t *line, uint8_t *pixels) {
    const float factor = 1.0F / (256.0F * (float)c->whole);
    const uint32_t *weights = c->weights;
    for (uint32_t x = 0; x < c->W; x++, weights += c->n) {
        const uint16_t *in = line + c->first[x];
        uint32_t sum = 0;
        for (uint32_t k = 0; k < c->n; k++) sum += in[k] * weights[k];
        pixels[x] = rounded(sum, factor);
    }
}

typedef uint16_t short_lanes __attribute__((vector_size(LANES * sizeof(uint16_t))));
typedef uint32_t long_lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

BPT_CLONES static void many_of_four(const bpt__columns *c, const uint16_t *line, uint8_t *pixels) {
    const float factor = 1.0F / (256.0F * (float)c->whole);
    const uint32_t *weights = c->weights;
    for (uint32_t x = 0; x < c->W; x++, weights += c->n) {
        const uint16_t *in = line + (size_t)c->first[x] * LANES;
        long_lanes sum = {0};
        for (uint32_t k = 0; k < c->n; k++) {
            short_lanes values;
            memcpy(&values, in + (size_t)k * LANES, sizeof values);
            sum += __builtin_convertvector(values, long_lanes) * weights[k];
        }
        for (int l = 0; l < LANES; l++) pixels[(size_t)x * LANES + l] = rounded(sum[l], factor);
    }
}

void bpt__resize_columns(const bpt__columns *c, const uint16_t *line, uint8_t *pixels) {
    const bool few = c->n <= BPT__FEW_TAPS;
    if (c->lanes == 1)
        (few ? few_of_one : many_of_one)(c, line, pixels);
    else
        (few ? few_of_four : many_of_four)(c, line, pixels);
}
