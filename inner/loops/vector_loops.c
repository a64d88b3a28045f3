#include "inner/loops/vector_loops.h"

#include "base/clones.h"

BPT_CLONES void bpt_running_update(float *restrict w, const float *restrict g, size_t n,
                                   float part) {
    for (size_t i = 0; i < n; i++) w[i] -= part * g[i];
}

BPT_CLONES void bpt_sum_of(float *restrict sum, const float *restrict x, const float *restrict y,
                           size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] = x[i] + y[i];
}

BPT_CLONES void bpt_sum_add(float *restrict sum, const float *restrict x, size_t n) {
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

#define SUM_LANES(type, x, rows, stride, columns, lanes, sums)                                     \
    do {                                                                                           \
        for (int64_t i = 0; i < (rows); i++) {                                                     \
            const bpt_mem_##type *restrict from = (const bpt_mem_##type *)(x) + i * (stride);      \
            float of_row[BPT_MAX_SUM_LANES] = {0};                                                 \
            for (int64_t j = 0; j < (columns); j++, from += (lanes))                               \
                for (int64_t l = 0; l < (lanes); l++) of_row[l] += bpt_from_##type(from[l]);       \
            for (int64_t l = 0; l < (lanes); l++) (sums)[l] += (double)of_row[l];                  \
        }                                                                                          \
    } while (0)

BPT_CLONES void bpt_sum_lanes(bpt_value_type type, const void *restrict x, int64_t rows,
                              int64_t stride, int64_t columns, int64_t lanes,
                              double *restrict sums) {
    BPT_FOR_TYPE(type, SUM_LANES, x, rows, stride, columns, lanes, sums);
}

/* Lanes of their own, so that the loop can be one of vectors without changing any sum. Nor does it
 * change one where a product and its sum are rounded once: the square of a float is exact. */
BPT_CLONES double bpt_sum_of_squares(const float *x, size_t n) {
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
