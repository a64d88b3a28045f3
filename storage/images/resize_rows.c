/* Few rows go in 16 bits. Many would lose too much by that: their sums are exact, in 32 bits, and
 * divided at the end. */
#include "storage/images/resize_rows.h"

#include "base/clones.h"
#include "storage/images/resize_fixed.h"

#include <stdbool.h>

/* ---- few rows ---- */

BPT_CLONES static void one_row(const uint8_t *restrict in, size_t n, uint16_t *restrict line) {
    for (size_t i = 0; i < n; i++) line[i] = (uint16_t)(in[i] << 8);
}

/* n_rows is a constant in the copies of this loop. */
static inline __attribute__((always_inline)) void loop(const uint8_t *restrict in, size_t pitch,
                                                       const uint16_t *restrict shares,
                                                       uint32_t n_rows, size_t n,
                                                       uint16_t *restrict line) {
    for (size_t i = 0; i < n; i++) {
        uint16_t sum = (uint16_t)(n_rows / 2);
        for (uint32_t k = 0; k < n_rows; k++) {
            const uint16_t value = (uint16_t)(in[k * pitch + i] << 8);
            sum = (uint16_t)(sum + bpt__mul_high(value, shares[k]));
        }
        line[i] = sum;
    }
}

BPT_CLONES static void few_rows(const uint8_t *in, size_t pitch, const uint16_t *shares,
                                uint32_t n_rows, size_t n, uint16_t *line) {
    switch (n_rows) {
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

/* ---- many rows: two at a time ---- */

BPT_CLONES static void set(uint32_t *restrict sums, const uint8_t *restrict a, uint32_t wa,
                           const uint8_t *restrict b, uint32_t wb, size_t n) {
    for (size_t i = 0; i < n; i++) sums[i] = wa * a[i] + wb * b[i];
}

BPT_CLONES static void add(uint32_t *restrict sums, const uint8_t *restrict a, uint32_t wa,
                           const uint8_t *restrict b, uint32_t wb, size_t n) {
    for (size_t i = 0; i < n; i++) sums[i] += wa * a[i] + wb * b[i];
}

/* A sum is below 2^22, which a float holds. */
BPT_CLONES static void divide(const uint32_t *restrict sums, float factor, size_t n,
                              uint16_t *restrict line) {
    for (size_t i = 0; i < n; i++)
        line[i] = (uint16_t)(int32_t)((float)(int32_t)sums[i] * factor + 0.5F);
}

static void many_rows(const uint8_t *in, size_t pitch, const bpt__taps *t, uint32_t whole, size_t n,
                      uint16_t *line, uint32_t *sums) {
    set(sums, in, t->w_first, in + pitch, bpt__taps_weight(t, 1), n);
    for (uint32_t k = 2; k < t->n; k += 2) {
        const bool two = k + 1 < t->n;
        const uint8_t *a = in + k * pitch;
        add(sums, a, bpt__taps_weight(t, k), two ? a + pitch : a,
            two ? bpt__taps_weight(t, k + 1) : 0, n);
    }
    divide(sums, 256.0F / (float)whole, n, line);
}

void bpt__resize_rows(const uint8_t *in, size_t pitch, const bpt__taps *t, uint32_t whole, size_t n,
                      uint16_t *line, uint32_t *sums) {
    in += t->first * pitch;
    if (t->n == 1) {
        one_row(in, n, line);
    } else if (t->n > BPT__FEW_TAPS) {
        many_rows(in, pitch, t, whole, n, line, sums);
    } else {
        uint16_t shares[BPT__FEW_TAPS];
        for (uint32_t k = 0; k < t->n; k++) shares[k] = bpt__share(bpt__taps_weight(t, k), whole);
        few_rows(in, pitch, shares, t->n, n, line);
    }
}
