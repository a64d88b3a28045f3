#include "tests/ref/ref.h"

#include <math.h>
#include <string.h>

/* ---- batch normalisation ---- */

double ref_moments(int64_t n, int64_t c, int64_t m, const double *x, const int32_t *labels,
                   double *mean, double *var) {
    double count = 0.0;
    for (int64_t i = 0; i < n; i++) count += labels[i] < 0 ? 0.0 : (double)m;
    for (int64_t k = 0; k < c; k++) {
        mean[k] = var[k] = 0.0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t p = 0; p < m && labels[i] >= 0; p++)
                mean[k] += x[(i * c + k) * m + p] / count;
        for (int64_t i = 0; i < n; i++)
            for (int64_t p = 0; p < m && labels[i] >= 0; p++) {
                const double d = x[(i * c + k) * m + p] - mean[k];
                var[k] += d * d / count;
            }
    }
    return count;
}

void ref_batchnorm_forward(int64_t n, int64_t c, int64_t m, const double *x, const double *mean,
                           const double *var, double eps, const double *weight, const double *bias,
                           double *y) {
    for (int64_t i = 0; i < n * c * m; i++) {
        const int64_t k = i / m % c;
        y[i] = (x[i] - mean[k]) / sqrt(var[k] + eps) * weight[k] + bias[k];
    }
}

void ref_batchnorm_backward(int64_t n, int64_t c, int64_t m, const double *x, const int32_t *labels,
                            const double *mean, const double *var, double eps, const double *weight,
                            const double *dy, double *dx, double *dweight, double *dbias) {
    double count = 0.0;
    for (int64_t i = 0; i < n; i++) count += labels[i] < 0 ? 0.0 : (double)m;
    memset(dweight, 0, (size_t)c * sizeof *dweight);
    memset(dbias, 0, (size_t)c * sizeof *dbias);
    for (int64_t i = 0; i < n * c * m; i++) {
        const int64_t k = i / m % c;
        dweight[k] += dy[i] * (x[i] - mean[k]) / sqrt(var[k] + eps);
        dbias[k] += dy[i];
    }
    for (int64_t i = 0; i < n * c * m; i++) {
        const int64_t k = i / m % c;
        const double std = sqrt(var[k] + eps), normal = (x[i] - mean[k]) / std;
        dx[i] = 0.0;
        if (labels[i / m / c] >= 0)
            dx[i] = weight[k] / std * (dy[i] - dbias[k] / count - normal * dweight[k] / count);
    }
}

/* ---- local response normalisation ---- */

static double lrn_base(const ref_lrn *a, const double *x, int64_t n, int64_t c, int64_t p) {
    double sum = 0.0;
    for (int64_t i = c - a->size / 2; i <= c + a->size / 2; i++) {
        if (i < 0 || i >= a->c) continue;
        const double value = x[(n * a->c + i) * a->m + p];
        sum += value * value;
    }
    return a->k + a->alpha / (double)a->size * sum;
}

void ref_lrn_forward(const ref_lrn *a, const double *x, double *y) {
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t c = 0; c < a->c; c++)
            for (int64_t p = 0; p < a->m; p++) {
                const int64_t i = (n * a->c + c) * a->m + p;
                y[i] = x[i] * pow(lrn_base(a, x, n, c, p), -a->beta);
            }
}

void ref_lrn_backward(const ref_lrn *a, const double *x, const double *dy, double *dx) {
    memset(dx, 0, (size_t)(a->n * a->c * a->m) * sizeof *dx);
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t c = 0; c < a->c; c++)
            for (int64_t p = 0; p < a->m; p++) {
                const int64_t at = (n * a->c + c) * a->m + p;
                const double base = lrn_base(a, x, n, c, p);
                dx[at] += dy[at] * pow(base, -a->beta);
                const double slope = -2.0 * a->beta * a->alpha / (double)a->size * dy[at] * x[at] *
                                     pow(base, -a->beta - 1.0);
                for (int64_t i = c - a->size / 2; i <= c + a->size / 2; i++)
                    if (i >= 0 && i < a->c)
                        dx[(n * a->c + i) * a->m + p] += slope * x[(n * a->c + i) * a->m + p];
            }
}
