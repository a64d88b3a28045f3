#include "inner/batchnorm_loops.h"

#include "base/clones.h"
#include "inner/rectify.h"

#include <string.h>

/* Values are taken in chunks that stay in the first-level cache: summed in float there, then added
 * to the whole in double. A chunk is some rows of LANES values that lie side by side. Where lanes
 * are channels, each of the row's sums is a channel's; in the plain order they are sums of pixels
 * 0, 16, 32.. and 1, 17, 33.. of one channel. */
enum { ROWS = 64, LANES = 16 };

/* ---- moments ---- */

static void add_moments(double n, double mean, double dev, double *count, double *into_mean,
                        double *into_dev) {
    const double all = *count + n, delta = mean - *into_mean;
    if (n == 0.0) return;
    *into_mean += delta * (n / all);
    *into_dev += dev + delta * delta * (*count * (n / all));
    *count = all;
}

/* Loops over lanes are compiled for the usual numbers of them. */
#define FOR_LANES(n, call)                                                                         \
    do {                                                                                           \
        if ((n) == 16) {                                                                           \
            call(16);                                                                              \
        } else if ((n) == 8) {                                                                     \
            call(8);                                                                               \
        } else {                                                                                   \
            call(n);                                                                               \
        }                                                                                          \
    } while (0)

/* Means and deviations of the columns of x, [rows, width] with @p stride floats a row. */
BPT_CLONES static void chunk_moments(const float *restrict x, int64_t rows, int64_t width,
                                     int64_t stride, float *restrict mean, float *restrict dev) {
    const float part = 1.0f / (float)rows;
#define MOMENTS(n)                                                                                 \
    do {                                                                                           \
        for (int64_t i = 0; i < (n); i++) mean[i] = dev[i] = 0.0f;                                 \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < (n); i++) mean[i] += x[r * stride + i];                        \
        for (int64_t i = 0; i < (n); i++) mean[i] *= part;                                         \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                const float d = x[r * stride + i] - mean[i];                                       \
                dev[i] += d * d;                                                                   \
            }                                                                                      \
    } while (0)
    FOR_LANES(width, MOMENTS);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* One block of one sample with channels side by side: counts[] are those of its lanes. */
static void block_moments(const float *x, int64_t n_pixels, int64_t lanes, double *count,
                          double *mean, double *dev) {
    float chunk_mean[LANES], chunk_dev[LANES];
    double n = *count;
    for (int64_t p = 0; p < n_pixels; p += ROWS) {
        const int64_t rows = smaller(ROWS, n_pixels - p);
        for (int64_t i = 0; i < lanes; i += LANES) {
            const int64_t width = smaller(LANES, lanes - i);
            chunk_moments(x + p * lanes + i, rows, width, lanes, chunk_mean, chunk_dev);
            for (int64_t j = 0; j < width; j++) {
                double before = n;
                add_moments((double)rows, (double)chunk_mean[j], (double)chunk_dev[j], &before,
                            &mean[i + j], &dev[i + j]);
            }
        }
        n += (double)rows;
    }
    *count = n;
}

/* One channel of one sample whose pixels lie side by side. */
static void plain_moments(const float *x, int64_t n_pixels, double *count, double *mean,
                          double *dev) {
    float chunk_mean[LANES], chunk_dev[LANES];
    int64_t p = 0;
    while (p < n_pixels) {
        const int64_t width = smaller(LANES, n_pixels - p);
        const int64_t rows = smaller(ROWS, (n_pixels - p) / width);
        chunk_moments(x + p, rows, width, width, chunk_mean, chunk_dev);
        for (int64_t j = 0; j < width; j++)
            add_moments((double)rows, (double)chunk_mean[j], (double)chunk_dev[j], count, mean,
                        dev);
        p += rows * width;
    }
}

void bpt_moments_of(const bpt_lanes *a, const float *x, const int32_t *labels, bpt_moments *out) {
    const size_t n_channels = bpt_lanes_channels(a);
    const int64_t block = a->n_pixels * a->lanes;
    memset(out->mean, 0, n_channels * sizeof *out->mean);
    memset(out->dev, 0, n_channels * sizeof *out->dev);
    out->count = 0.0;
    for (int64_t n = 0; n < a->n_samples; n++) {
        double count = out->count;
        if (labels[n] < 0) continue;
        for (int64_t k = 0; k < a->n_blocks; k++) {
            const float *values = x + (n * a->n_blocks + k) * block;
            double *mean = out->mean + k * a->lanes, *dev = out->dev + k * a->lanes;
            count = out->count;
            if (a->lanes == 1)
                plain_moments(values, a->n_pixels, &count, mean, dev);
            else
                block_moments(values, a->n_pixels, a->lanes, &count, mean, dev);
        }
        out->count = count;
    }
}

void bpt_moments_merge(size_t n_channels, bpt_moments *into, const bpt_moments *from) {
    double count = into->count;
    for (size_t c = 0; c < n_channels; c++) {
        count = into->count;
        add_moments(from->count, from->mean[c], from->dev[c], &count, &into->mean[c],
                    &into->dev[c]);
    }
    into->count = count;
}

/* ---- forward ---- */

static inline float rectified(float y, int relu) {
    return !relu || y > 0.0f ? y : 0.0f;
}

BPT_CLONES static void forward_block(const float *restrict x, const float *restrict z,
                                     int64_t n_pixels, int64_t lanes, const float *restrict mean,
                                     const float *restrict scale, const float *restrict bias,
                                     int relu, float *restrict y) {
#define FORWARD(n, addend)                                                                         \
    for (int64_t p = 0; p < n_pixels; p++)                                                         \
        for (int64_t i = 0; i < (n); i++) {                                                        \
            const int64_t at = p * (n) + i;                                                        \
            y[at] = rectified((x[at] - mean[i]) * scale[i] + bias[i] addend, relu);                \
        }
#define FORWARD_ADD(n)   FORWARD(n, +z[at])
#define FORWARD_ALONE(n) FORWARD(n, )
    if (z)
        FOR_LANES(lanes, FORWARD_ADD);
    else
        FOR_LANES(lanes, FORWARD_ALONE);
}

BPT_CLONES static void forward_plain(const float *restrict x, const float *restrict z,
                                     int64_t n_pixels, float mean, float scale, float bias,
                                     int relu, float *restrict y) {
    if (z)
        for (int64_t p = 0; p < n_pixels; p++)
            y[p] = rectified((x[p] - mean) * scale + bias + z[p], relu);
    else
        for (int64_t p = 0; p < n_pixels; p++) y[p] = rectified((x[p] - mean) * scale + bias, relu);
}

void bpt_batchnorm_forward(const bpt_lanes *a, const float *x, const float *z, const float *mean,
                           const float *scale, const float *bias, bool relu, float *y) {
    const int64_t block = a->n_pixels * a->lanes;
    for (int64_t i = 0; i < a->n_samples * a->n_blocks; i++) {
        const int64_t c = i % a->n_blocks * a->lanes, at = i * block;
        const float *addend = z ? z + at : NULL;
        if (a->lanes == 1)
            forward_plain(x + at, addend, a->n_pixels, mean[c], scale[c], bias[c], relu, y + at);
        else
            forward_block(x + at, addend, a->n_pixels, a->lanes, mean + c, scale + c, bias + c,
                          relu, y + at);
    }
}

/* ---- backward ---- */

/* Sums of the columns of dy and dy * (x - mean), [rows, width] with @p stride floats a row. */
BPT_CLONES static void chunk_sums(const float *restrict x, const float *restrict dy, int64_t rows,
                                  int64_t width, int64_t stride, const float *restrict mean,
                                  float *restrict sum_dy, float *restrict sum_dyx) {
#define SUMS(n)                                                                                    \
    do {                                                                                           \
        for (int64_t i = 0; i < (n); i++) sum_dy[i] = sum_dyx[i] = 0.0f;                           \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                const int64_t at = r * stride + i;                                                 \
                sum_dy[i] += dy[at];                                                               \
                sum_dyx[i] += dy[at] * (x[at] - mean[i]);                                          \
            }                                                                                      \
    } while (0)
    FOR_LANES(width, SUMS);
}

static void block_sums(const float *x, const float *dy, int64_t n_pixels, int64_t lanes,
                       const float *mean, double *sum_dy, double *sum_dyx) {
    float chunk_dy[LANES], chunk_dyx[LANES];
    for (int64_t p = 0; p < n_pixels; p += ROWS)
        for (int64_t i = 0; i < lanes; i += LANES) {
            const int64_t rows = smaller(ROWS, n_pixels - p), width = smaller(LANES, lanes - i);
            const int64_t at = p * lanes + i;
            chunk_sums(x + at, dy + at, rows, width, lanes, mean + i, chunk_dy, chunk_dyx);
            for (int64_t j = 0; j < width; j++) {
                sum_dy[i + j] += (double)chunk_dy[j];
                sum_dyx[i + j] += (double)chunk_dyx[j];
            }
        }
}

static void plain_sums(const float *x, const float *dy, int64_t n_pixels, float mean,
                       double *sum_dy, double *sum_dyx) {
    float means[LANES], chunk_dy[LANES], chunk_dyx[LANES];
    int64_t p = 0;
    for (int i = 0; i < LANES; i++) means[i] = mean;
    while (p < n_pixels) {
        const int64_t width = smaller(LANES, n_pixels - p);
        const int64_t rows = smaller(ROWS, (n_pixels - p) / width);
        chunk_sums(x + p, dy + p, rows, width, width, means, chunk_dy, chunk_dyx);
        for (int64_t j = 0; j < width; j++) {
            *sum_dy += (double)chunk_dy[j];
            *sum_dyx += (double)chunk_dyx[j];
        }
        p += rows * width;
    }
}

void bpt_batchnorm_sums(const bpt_lanes *a, const float *x, const float *dy, const float *y,
                        float *masked, const float *mean, double *sum_dy, double *sum_dyx) {
    const size_t n_channels = bpt_lanes_channels(a);
    const int64_t block = a->n_pixels * a->lanes;
    memset(sum_dy, 0, n_channels * sizeof *sum_dy);
    memset(sum_dyx, 0, n_channels * sizeof *sum_dyx);
    for (int64_t i = 0; i < a->n_samples * a->n_blocks; i++) {
        const int64_t c = i % a->n_blocks * a->lanes, at = i * block;
        const float *counts = dy + at;
        if (y) {
            bpt_rectify_back(y + at, dy + at, (size_t)block, masked + at);
            counts = masked + at;
        }
        if (a->lanes == 1)
            plain_sums(x + at, counts, a->n_pixels, mean[c], sum_dy + c, sum_dyx + c);
        else
            block_sums(x + at, counts, a->n_pixels, a->lanes, mean + c, sum_dy + c, sum_dyx + c);
    }
}

BPT_CLONES static void data_block(const float *restrict x, const float *restrict dy,
                                  int64_t n_pixels, int64_t lanes, bpt_batchnorm_slopes k,
                                  int64_t c, float *restrict dx) {
    const float *restrict mean = k.mean + c, *restrict kdy = k.dy + c, *restrict kx = k.x + c,
                          *restrict constant = k.constant + c;
#define DATA(n)                                                                                    \
    for (int64_t p = 0; p < n_pixels; p++)                                                         \
        for (int64_t i = 0; i < (n); i++) {                                                        \
            const int64_t at = p * (n) + i;                                                        \
            dx[at] = dy[at] * kdy[i] + (x[at] - mean[i]) * kx[i] + constant[i];                    \
        }
    FOR_LANES(lanes, DATA);
}

BPT_CLONES static void data_plain(const float *restrict x, const float *restrict dy,
                                  int64_t n_pixels, float mean, float kdy, float kx, float constant,
                                  float *restrict dx) {
    for (int64_t p = 0; p < n_pixels; p++) dx[p] = dy[p] * kdy + (x[p] - mean) * kx + constant;
}

void bpt_batchnorm_data(const bpt_lanes *a, const float *x, const float *dy, const int32_t *labels,
                        bpt_batchnorm_slopes k, float *dx) {
    const int64_t block = a->n_pixels * a->lanes;
    for (int64_t i = 0; i < a->n_samples * a->n_blocks; i++) {
        const int64_t c = i % a->n_blocks * a->lanes, at = i * block;
        if (labels[i / a->n_blocks] < 0)
            memset(dx + at, 0, (size_t)block * sizeof *dx);
        else if (a->lanes == 1)
            data_plain(x + at, dy + at, a->n_pixels, k.mean[c], k.dy[c], k.x[c], k.constant[c],
                       dx + at);
        else
            data_block(x + at, dy + at, a->n_pixels, a->lanes, k, c, dx + at);
    }
}
