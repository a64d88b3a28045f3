#include "inner/sgd.h"

void bpt_sgd_update(float *restrict w, float *restrict v, const float *restrict g, size_t n,
                    float rate, float momentum, float decay) {
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (g[i] + decay * w[i]);
        w[i] -= rate * v[i];
    }
}

void bpt_running_update(float *restrict w, const float *restrict g, size_t n, float part) {
    for (size_t i = 0; i < n; i++) w[i] -= part * g[i];
}

void bpt_sum_of(float *restrict sum, const float *restrict x, const float *restrict y, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] = x[i] + y[i];
}

void bpt_sum_add(float *restrict sum, const float *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += x[i];
}
