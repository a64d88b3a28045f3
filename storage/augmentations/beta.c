/* From 1 on a uniform number is kept as often as its density says; for an alpha of 100 one number
 * of eleven is kept. Below, the density has no bound, and Johnk's method (1964) takes at most two
 * draws on average: with u and v uniform, X = u^(1/alpha) and Y = v^(1/alpha), X / (X + Y) is such
 * a number where X + Y <= 1. Powers are taken by way of logarithms to the base 2, which do not
 * underflow. */
#include "storage/augmentations/beta.h"

#include <stdbool.h>

enum { FRACTION = 28, N_TERMS = 12 };

static const uint64_t one = (uint64_t)1 << 32;

/* Bit by bit: a square doubles the logarithm.
 * @param x from 1, in 1 / 2^32
 * @return -log2(x), in 1 / 2^FRACTION */
static uint64_t minus_log(uint32_t x) {
    const int n_zeros = __builtin_clz(x);
    uint64_t rest = (uint64_t)x << n_zeros; /* one / 2 to one */
    uint64_t log = (uint64_t)n_zeros;
    for (int i = 0; i < FRACTION; i++) {
        rest = rest * rest >> 32;
        const bool small = rest < one / 2;
        rest <<= small;
        log = log << 1 | small;
    }
    return log;
}

/* The series of exp(-y): what is left out is below 2^-39.
 * @param log in 1 / 2^FRACTION
 * @return 2^-log, in 1 / 2^32 */
static uint64_t power(uint64_t log) {
    const uint64_t ln2 = 2977044472, whole = log >> FRACTION; /* ln 2 in 1 / 2^32 */
    const uint64_t y = (log - (whole << FRACTION)) * ln2 >> FRACTION;
    uint64_t sum = one;
    for (uint64_t k = N_TERMS; k > 0; k--) sum = one - (y * sum >> 32) / k;
    return whole > 32 ? 0 : sum >> whole;
}

/* @return uniform, in 1 / 2^32; neither 0 nor 1 */
static uint32_t draw(bpt_random *random) {
    return bpt_random_u32(random) | 1;
}

static uint32_t draw_bounded(bpt_random *random, uint32_t alpha) {
    for (;;) {
        const uint32_t x = draw(random);
        const uint64_t kept = minus_log(draw(random)) * BPT_AUGMENT_UNIT;
        const uint32_t most = (uint32_t)((uint64_t)x * (one - x) >> 30); /* 4 x (1 - x) */
        if (kept >= minus_log(most) * (alpha - BPT_AUGMENT_UNIT))
            return (uint32_t)(((uint64_t)x + (1 << 15)) >> 16);
    }
}

static uint32_t draw_unbounded(bpt_random *random, uint32_t alpha) {
    for (;;) {
        const uint64_t x = minus_log(draw(random)) * BPT_AUGMENT_UNIT / alpha;
        const uint64_t y = minus_log(draw(random)) * BPT_AUGMENT_UNIT / alpha;
        if (power(x) + power(y) > one) continue;
        const uint64_t other = one + power(x < y ? y - x : x - y); /* over the larger one */
        const uint32_t larger = (uint32_t)(((one << 16) + other / 2) / other);
        return x < y ? larger : BPT__BETA_ONE - larger;
    }
}

uint32_t bpt__draw_beta(bpt_random *random, uint32_t alpha) {
    return alpha < BPT_AUGMENT_UNIT ? draw_unbounded(random, alpha) : draw_bounded(random, alpha);
}
