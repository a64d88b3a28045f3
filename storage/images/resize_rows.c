/* Few rows go in 16 bits: each product is that of a pixel times 256 and a share of 2^16, without
 * its lower half. That cuts off less than 1 each, half of which is added again, and shares are
 * rounded to 2^-17 of a pixel, which is half a unit each. Many rows would lose too much by that:
 * their sums are exact, in 32 bits, and divided at the end. */
#include "storage/images/resize_rows.h"

#include "base/clones.h"
#include "storage/images/resize_fixed.h"

/* ---- few rows ---- */

/* n is a constant in the copies of this loop. */
static inline __attribute__((always_inline)) void loop(const uint8_t *restrict in, size_t pitch,
                                                       const uint16_t *restrict shares,
                                                       uint32_t n_rows, size_t n,
                                                       uint16_t *restrict line) {
    for (size_t i = 0; i < n; i++) {
        uint16_t sum = (uint16_t)(n_rows / 2);
        for (uint32_t k = 0; k < n_rows; k++)
            sum = (uint16_t)(sum + bpt__mul_high((uint16_t)(in[k * pitch + i] << 8), shares[k]));
        line[i] = sum;
    }
}

BPT_CLONES static void few_rows(const uint8_t *in, size_t pitch, const uint16_t *shares,
                                uint32_t n_rows, size_t n, uint16_t *line) {
    switch (n_rows) {
    case 1:
        loop(in, pitch, shares, 1, n, line);
        break;
    case 2:
        loop(in, pitch, shares, 2, n, line);
        break;
    case 3:
        loop(in, pitch, shares, 3, n, line);
        break;
    default:
        loop(in, pitch, shares, BPT__FEW_TAPS, n, line);
    }
}
_Static_assert(BPT__FEW_TAPS == 4, "a case for each number");

/* ---- many rows ---- */

BPT_CLONES static void set(uint32_t *restrict sums, const uint8_t *restrict row, uint32_t weight,
                           size_t n) {
    for (size_t i = 0; i < n; i++) sums[i] = weight * row[i];
}

BPT_CLONES static void add(uint32_t *restrict sums, const uint8_t *restrict row, uint32_t weight,
                           size_t n) {
    for (size_t i = 0; i < n; i++) sums[i] += weight * row[i];
}

/* A sum is below 2^22, which a float holds. */
BPT_CLONES static void divide(const uint32_t *restrict sums, float factor, size_t n,
                              uint16_t *restrict line) {
    for (size_t i = 0; i < n; i++)
        line[i] = (uint16_t)(int32_t)((float)(int32_t)sums[i] * factor + 0.5F);
}

static void many_rows(const uint8_t *in, size_t pitch, const bpt__taps *t, uint32_t whole, size_t n,
                      uint16_t *line, uint32_t *sums) {
    set(sums, in, t->w_first, n);
    for (uint32_t k = 1; k < t->n; k++) add(sums, in + k * pitch, bpt__taps_weight(t, k), n);
    divide(sums, 256.0F / (float)whole, n, line);
}

void bpt__resize_rows(const uint8_t *in, size_t pitch, const bpt__taps *t, uint32_t whole, size_t n,
                      uint16_t *line, uint32_t *sums) {
    in += t->first * pitch;
    if (t->n > BPT__FEW_TAPS) {
        many_rows(in, pitch, t, whole, n, line, sums);
        return;
    }
    uint16_t shares[BPT__FEW_TAPS] = {0};
    for (uint32_t k = 0; k < t->n; k++) shares[k] = bpt__taps_share(bpt__taps_weight(t, k), whole);
    few_rows(in, pitch, shares, t->n, n, line);
}
