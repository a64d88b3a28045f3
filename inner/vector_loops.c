#include "inner/vector_loops.h"

#include "base/clones.h"

void bpt_running_update(float *restrict w, const float *restrict g, size_t n, float part) {
    for (size_t i = 0; i < n; i++) w[i] -= part * g[i];
}

void bpt_sum_of(float *restrict sum, const float *restrict x, const float *restrict y, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] = x[i] + y[i];
}

void bpt_sum_add(float *restrict sum, const float *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += x[i];
}

BPT_CLONES void bpt_widen(float *restrict sum, const bpt_bf16 *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] = bpt_from_bf16(x[i]);
}

BPT_CLONES void bpt_widen_add(float *restrict sum, const bpt_bf16 *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += bpt_from_bf16(x[i]);
}

BPT_CLONES void bpt_narrow(bpt_bf16 *restrict out, const float *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = bpt_to_bf16(x[i]);
}

/* Lanes of their own, so that the loop can be one of vectors without changing any sum. */
double bpt_sum_of_squares(const float *x, size_t n) {
    enum { LANES = 16 };
    double lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) lanes[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; i < n; i++, j++) lanes[j] += (double)x[i] * (double)x[i];
    double sum = 0.0;
    for (size_t j = 0; j < LANES; j++) sum += lanes[j];
    return sum;
}
