#include "tests/ref/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double *ref_zeros(size_t n) {
    double *x = calloc(n ? n : 1, sizeof *x);
    if (!x) {
        perror("ref_zeros");
        abort();
    }
    return x;
}

double *ref_doubles(const float *x, size_t n) {
    double *y = ref_zeros(n);
    for (size_t i = 0; i < n; i++) y[i] = (double)x[i];
    return y;
}

double ref_error(const float *x, const double *ref, size_t n) {
    double largest = 0.0, error = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double difference = fabs((double)x[i] - ref[i]);
        if (isnan(difference)) return INFINITY;
        largest = fmax(largest, fabs(ref[i]));
        error = fmax(error, difference);
    }
    return error > 0.0 ? error / largest : 0.0;
}

/* ---- fully connected ---- */

void ref_fc_forward(const ref_fc *a, const double *x, const double *weight, const double *bias,
                    double *y) {
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t k = 0; k < a->k; k++) {
            double sum = bias ? bias[k] : 0.0;
            for (int64_t c = 0; c < a->c; c++) sum += x[n * a->c + c] * weight[k * a->c + c];
            y[n * a->k + k] = sum;
        }
}

void ref_fc_backward_data(const ref_fc *a, const double *dy, const double *weight, double *dx) {
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t c = 0; c < a->c; c++) {
            double sum = 0.0;
            for (int64_t k = 0; k < a->k; k++) sum += dy[n * a->k + k] * weight[k * a->c + c];
            dx[n * a->c + c] = sum;
        }
}

void ref_fc_backward_weight(const ref_fc *a, const double *x, const double *dy, double *dweight) {
    for (int64_t k = 0; k < a->k; k++)
        for (int64_t c = 0; c < a->c; c++) {
            double sum = 0.0;
            for (int64_t n = 0; n < a->n; n++) sum += dy[n * a->k + k] * x[n * a->c + c];
            dweight[k * a->c + c] = sum;
        }
}

void ref_fc_backward_bias(const ref_fc *a, const double *dy, double *dbias) {
    for (int64_t k = 0; k < a->k; k++) {
        dbias[k] = 0.0;
        for (int64_t n = 0; n < a->n; n++) dbias[k] += dy[n * a->k + k];
    }
}

/* ---- elementwise ---- */

void ref_relu_forward(size_t n, const double *x, double *y) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] > 0.0 ? x[i] : 0.0;
}

void ref_relu_backward(size_t n, const double *x, const double *dy, double *dx) {
    for (size_t i = 0; i < n; i++) dx[i] = x[i] > 0.0 ? dy[i] : 0.0;
}

/* ---- loss and update ---- */

static double log_sum_exp(const double *x, int64_t n) {
    double largest = x[0], sum = 0.0;
    for (int64_t i = 1; i < n; i++) largest = fmax(largest, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - largest);
    return largest + log(sum);
}

double ref_softmax_loss(int64_t n, int64_t classes, const double *logits, const int32_t *labels,
                        double denominator, double *dlogits) {
    double loss = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double *x = logits + i * classes;
        const double total = log_sum_exp(x, classes);
        const int32_t label = labels[i];
        if (label >= 0) loss += total - x[label];
        for (int64_t k = 0; dlogits && k < classes; k++) {
            const double gradient = exp(x[k] - total) - (k == label ? 1.0 : 0.0);
            dlogits[i * classes + k] = label >= 0 ? gradient / denominator : 0.0;
        }
    }
    return loss;
}

void ref_sgd_update(size_t n, double *w, double *v, const double *g, double rate, double momentum,
                    double decay) {
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (g[i] + decay * w[i]);
        w[i] -= rate * v[i];
    }
}
