#include "inner/layers/batchnorm_loops.h"

#include "base/clones.h"
#include "base/integers.h"
#include "inner/step/rectify.h"

#include <string.h>

/* Values are taken in runs that stay in the first-level cache: summed in float there, then added
 * to the whole in double. A run is some rows of LANES values that lie side by side. Where lanes
 * are channels, each of the row's sums is a channel's; in the plain order they are sums of pixels
 * 0, 16, 32.. and 1, 17, 33.. of one channel. */
enum { ROWS = 64, LANES = 16 };

/* ---- parts ---- */

bpt_channels bpt_channels_cut(const bpt_lanes *a, size_t i, size_t n) {
    const int64_t unit = bpt_smaller(a->lanes, LANES), n_channels = a->n_blocks * a->lanes;
    const int64_t n_units = bpt_quotient_up(n_channels, unit);
    const int64_t first = n_units * (int64_t)i / (int64_t)n;
    const int64_t end = n_units * (int64_t)(i + 1) / (int64_t)n;
    return (bpt_channels){first * unit, bpt_smaller(end * unit, n_channels)};
}

/* Lanes of block @p k that belong to a part. */
static bpt_channels lanes_of(const bpt_lanes *a, bpt_channels part, int64_t k) {
    const int64_t first = part.first - k * a->lanes;
    return (bpt_channels){first > 0 ? first : 0, bpt_smaller(part.end - k * a->lanes, a->lanes)};
}

static int64_t end_block(const bpt_lanes *a, bpt_channels part) {
    return bpt_quotient_up(part.end, a->lanes);
}

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
#define FOR_LANES(T, n, loop)                                                                      \
    do {                                                                                           \
        if ((n) == 16)                                                                             \
            loop(T, 16);                                                                           \
        else if ((n) == 8)                                                                         \
            loop(T, 8);                                                                            \
        else                                                                                       \
            loop(T, n);                                                                            \
    } while (0)

/* Means and deviations of the columns of x, [rows, width] with @p stride values a row. */
BPT_CLONES static void run_moments(const void *restrict values, bpt_value_type type, int64_t rows,
                                   int64_t width, int64_t stride, float *restrict mean,
                                   float *restrict dev) {
    const float part = 1.0f / (float)rows;
#define MOMENTS(T, n)                                                                              \
    do {                                                                                           \
        const bpt_mem_##T *restrict x = values;                                                    \
        for (int64_t i = 0; i < (n); i++) mean[i] = dev[i] = 0.0f;                                 \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < (n); i++) mean[i] += bpt_from_##T(x[r * stride + i]);          \
        for (int64_t i = 0; i < (n); i++) mean[i] *= part;                                         \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                const float d = bpt_from_##T(x[r * stride + i]) - mean[i];                         \
                dev[i] += d * d;                                                                   \
            }                                                                                      \
    } while (0)
#define MOMENTS_OF(T, width) FOR_LANES(T, width, MOMENTS)
    BPT_FOR_TYPE(type, MOMENTS_OF, width);
}

/* Some lanes of one block of one sample with channels side by side. */
static void block_moments(const void *x, bpt_value_type type, int64_t n_pixels, int64_t lanes,
                          bpt_channels part, double count, double *mean, double *dev) {
    float run_mean[LANES], run_dev[LANES];
    double n = count;
    for (int64_t p = 0; p < n_pixels; p += ROWS) {
        const int64_t rows = bpt_smaller(ROWS, n_pixels - p);
        for (int64_t i = part.first; i < part.end; i += LANES) {
            const int64_t width = bpt_smaller(LANES, part.end - i);
            run_moments(bpt_value_at(type, x, p * lanes + i), type, rows, width, lanes, run_mean,
                        run_dev);
            for (int64_t j = 0; j < width; j++) {
                double before = n;
                add_moments((double)rows, (double)run_mean[j], (double)run_dev[j], &before,
                            &mean[i + j], &dev[i + j]);
            }
        }
        n += (double)rows;
    }
}

/* One channel of one sample whose pixels lie side by side. */
static void plain_moments(const void *x, bpt_value_type type, int64_t n_pixels, double count,
                          double *mean, double *dev) {
    float run_mean[LANES], run_dev[LANES];
    int64_t p = 0;
    while (p < n_pixels) {
        const int64_t width = bpt_smaller(LANES, n_pixels - p);
        const int64_t rows = bpt_smaller(ROWS, (n_pixels - p) / width);
        run_moments(bpt_value_at(type, x, p), type, rows, width, width, run_mean, run_dev);
        for (int64_t j = 0; j < width; j++)
            add_moments((double)rows, (double)run_mean[j], (double)run_dev[j], &count, mean, dev);
        p += rows * width;
    }
}

double bpt_moments_count(const bpt_lanes *a, const int32_t *labels) {
    int64_t n_there = 0;
    for (int64_t n = 0; n < a->n_samples; n++) n_there += labels[n] >= 0;
    return (double)(n_there * a->n_pixels);
}

/* A block's values, and what is known of its channels so far. */
static void add_block(const bpt_lanes *a, const void *x, bpt_channels lanes, int64_t n, int64_t k,
                      bpt_moments *out) {
    const void *values = bpt_value_at(a->type, x, (n * a->n_blocks + k) * a->n_pixels * a->lanes);
    double *mean = out->mean + k * a->lanes, *dev = out->dev + k * a->lanes;
    if (a->lanes == 1)
        plain_moments(values, a->type, a->n_pixels, out->count, mean, dev);
    else
        block_moments(values, a->type, a->n_pixels, a->lanes, lanes, out->count, mean, dev);
}

void bpt_moments_of(const bpt_lanes *a, const void *x, const int32_t *labels, bpt_channels part,
                    bpt_moments *out) {
    const size_t n_channels = (size_t)(part.end - part.first);
    memset(out->mean + part.first, 0, n_channels * sizeof *out->mean);
    memset(out->dev + part.first, 0, n_channels * sizeof *out->dev);
    out->count = 0.0;
    for (int64_t n = 0; n < a->n_samples; n++) {
        if (labels[n] < 0) continue;
        for (int64_t k = part.first / a->lanes; k < end_block(a, part); k++)
            add_block(a, x, lanes_of(a, part, k), n, k, out);
        out->count += (double)a->n_pixels;
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

BPT_CLONES static void forward_block(const void *restrict in, const void *restrict addend,
                                     bpt_value_type type, int64_t n_pixels, int64_t lanes,
                                     const float *restrict mean, const float *restrict scale,
                                     const float *restrict bias, int relu, void *restrict out) {
#define FORWARD(T, n, plus)                                                                        \
    do {                                                                                           \
        const bpt_mem_##T *restrict x = in;                                                        \
        bpt_mem_##T *restrict y = out;                                                             \
        for (int64_t p = 0; p < n_pixels; p++)                                                     \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                const int64_t at = p * (n) + i;                                                    \
                const float normal = (bpt_from_##T(x[at]) - mean[i]) * scale[i] + bias[i];         \
                y[at] = bpt_to_##T(rectified(normal plus, relu));                                  \
            }                                                                                      \
    } while (0)
#define FORWARD_ALONE(T, n) FORWARD(T, n, )
#define FORWARD_ADD(T, n)                                                                          \
    do {                                                                                           \
        const bpt_mem_##T *restrict z = addend;                                                    \
        FORWARD(T, n, +bpt_from_##T(z[at]));                                                       \
    } while (0)
#define FORWARD_OF(T, lanes)                                                                       \
    do {                                                                                           \
        if (addend)                                                                                \
            FOR_LANES(T, lanes, FORWARD_ADD);                                                      \
        else                                                                                       \
            FOR_LANES(T, lanes, FORWARD_ALONE);                                                    \
    } while (0)
    BPT_FOR_TYPE(type, FORWARD_OF, lanes);
}

BPT_CLONES static void forward_plain(const void *restrict in, const void *restrict addend,
                                     bpt_value_type type, int64_t n_pixels, float mean, float scale,
                                     float bias, int relu, void *restrict out) {
#define FORWARD_PLAIN(T, plus)                                                                     \
    for (int64_t p = 0; p < n_pixels; p++)                                                         \
    y[p] = bpt_to_##T(rectified((bpt_from_##T(x[p]) - mean) * scale + bias plus, relu))
#define FORWARD_PLAIN_OF(T, z_given)                                                               \
    do {                                                                                           \
        const bpt_mem_##T *restrict x = in, *restrict z = addend;                                  \
        bpt_mem_##T *restrict y = out;                                                             \
        if (z_given)                                                                               \
            FORWARD_PLAIN(T, +bpt_from_##T(z[p]));                                                 \
        else                                                                                       \
            FORWARD_PLAIN(T, );                                                                    \
    } while (0)
    BPT_FOR_TYPE(type, FORWARD_PLAIN_OF, addend);
}

void bpt_batchnorm_forward(const bpt_lanes *a, const void *x, const void *z, const int32_t *labels,
                           const float *mean, const float *scale, const float *bias, bool relu,
                           void *y) {
    const int64_t block = a->n_pixels * a->lanes;
    const bpt_value_type type = a->type;
    for (int64_t i = 0; i < a->n_samples * a->n_blocks; i++) {
        const int64_t c = i % a->n_blocks * a->lanes, at = i * block;
        const void *in = bpt_value_at(type, x, at), *addend = z ? bpt_value_at(type, z, at) : NULL;
        void *out = bpt_place_at(type, y, at);
        if (labels[i / a->n_blocks] < 0)
            memset(out, 0, (size_t)block * bpt_value_bytes(type));
        else if (a->lanes == 1)
            forward_plain(in, addend, type, a->n_pixels, mean[c], scale[c], bias[c], relu, out);
        else
            forward_block(in, addend, type, a->n_pixels, a->lanes, mean + c, scale + c, bias + c,
                          relu, out);
    }
}

/* ---- backward ---- */

/* Sums of the columns of dy and dy * (x - mean), [rows, width] with @p stride values a row. */
BPT_CLONES static void run_sums(const void *restrict in, const void *restrict grad,
                                bpt_value_type type, int64_t rows, int64_t width, int64_t stride,
                                const float *restrict mean, float *restrict sum_dy,
                                float *restrict sum_dyx) {
#define SUMS(T, n)                                                                                 \
    do {                                                                                           \
        const bpt_mem_##T *restrict x = in, *restrict dy = grad;                                   \
        for (int64_t i = 0; i < (n); i++) sum_dy[i] = sum_dyx[i] = 0.0f;                           \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                const int64_t at = r * stride + i;                                                 \
                sum_dy[i] += bpt_from_##T(dy[at]);                                                 \
                sum_dyx[i] += bpt_from_##T(dy[at]) * (bpt_from_##T(x[at]) - mean[i]);              \
            }                                                                                      \
    } while (0)
#define SUMS_OF(T, width) FOR_LANES(T, width, SUMS)
    BPT_FOR_TYPE(type, SUMS_OF, width);
}

static void block_sums(const void *x, const void *dy, bpt_value_type type, int64_t n_pixels,
                       int64_t lanes, bpt_channels part, const float *mean, double *sum_dy,
                       double *sum_dyx) {
    float run_dy[LANES], run_dyx[LANES];
    for (int64_t p = 0; p < n_pixels; p += ROWS)
        for (int64_t i = part.first; i < part.end; i += LANES) {
            const int64_t rows = bpt_smaller(ROWS, n_pixels - p),
                          width = bpt_smaller(LANES, part.end - i);
            const int64_t at = p * lanes + i;
            run_sums(bpt_value_at(type, x, at), bpt_value_at(type, dy, at), type, rows, width,
                     lanes, mean + i, run_dy, run_dyx);
            for (int64_t j = 0; j < width; j++) {
                sum_dy[i + j] += (double)run_dy[j];
                sum_dyx[i + j] += (double)run_dyx[j];
            }
        }
}

static void plain_sums(const void *x, const void *dy, bpt_value_type type, int64_t n_pixels,
                       float mean, double *sum_dy, double *sum_dyx) {
    float means[LANES], run_dy[LANES], run_dyx[LANES];
    int64_t p = 0;
    for (int i = 0; i < LANES; i++) means[i] = mean;
    while (p < n_pixels) {
        const int64_t width = bpt_smaller(LANES, n_pixels - p);
        const int64_t rows = bpt_smaller(ROWS, (n_pixels - p) / width);
        run_sums(bpt_value_at(type, x, p), bpt_value_at(type, dy, p), type, rows, width, width,
                 means, run_dy, run_dyx);
        for (int64_t j = 0; j < width; j++) {
            *sum_dy += (double)run_dy[j];
            *sum_dyx += (double)run_dyx[j];
        }
        p += rows * width;
    }
}

/* The mask of a ReLU on some lanes of a block. */
static void mask_block(const bpt_lanes *a, bpt_channels lanes, const void *y, const void *dy,
                       void *masked) {
    const int64_t width = lanes.end - lanes.first, first = lanes.first;
    if (width == a->lanes) {
        bpt_rectify_back(y, dy, a->type, (size_t)(a->n_pixels * width), masked);
        return;
    }
    for (int64_t at = first; at < a->n_pixels * a->lanes; at += a->lanes)
        bpt_rectify_back(bpt_value_at(a->type, y, at), bpt_value_at(a->type, dy, at), a->type,
                         (size_t)width, bpt_place_at(a->type, masked, at));
}

void bpt_batchnorm_sums(const bpt_lanes *a, const void *x, const void *dy, const void *y,
                        bpt_channels part, void *masked, const float *mean, double *sum_dy,
                        double *sum_dyx) {
    const size_t n_channels = (size_t)(part.end - part.first);
    const int64_t begin = part.first / a->lanes, end = end_block(a, part);
    const bpt_value_type type = a->type;
    memset(sum_dy + part.first, 0, n_channels * sizeof *sum_dy);
    memset(sum_dyx + part.first, 0, n_channels * sizeof *sum_dyx);
    for (int64_t n = 0; n < a->n_samples; n++)
        for (int64_t k = begin; k < end; k++) {
            const int64_t c = k * a->lanes, at = (n * a->n_blocks + k) * a->n_pixels * a->lanes;
            const bpt_channels lanes = lanes_of(a, part, k);
            const void *in = bpt_value_at(type, x, at), *counts = bpt_value_at(type, dy, at);
            if (y) {
                void *rest = bpt_place_at(type, masked, at);
                mask_block(a, lanes, bpt_value_at(type, y, at), counts, rest);
                counts = rest;
            }
            if (a->lanes == 1)
                plain_sums(in, counts, type, a->n_pixels, mean[c], sum_dy + c, sum_dyx + c);
            else
                block_sums(in, counts, type, a->n_pixels, a->lanes, lanes, mean + c, sum_dy + c,
                           sum_dyx + c);
        }
}

BPT_CLONES static void data_block(const void *restrict in, const void *restrict grad,
                                  bpt_value_type type, int64_t n_pixels, int64_t lanes,
                                  bpt_batchnorm_slopes k, int64_t c, void *restrict out) {
    const float *restrict mean = k.mean + c, *restrict kdy = k.dy + c, *restrict kx = k.x + c,
                          *restrict constant = k.constant + c;
#define DATA(T, n)                                                                                 \
    do {                                                                                           \
        const bpt_mem_##T *restrict x = in, *restrict dy = grad;                                   \
        bpt_mem_##T *restrict dx = out;                                                            \
        for (int64_t p = 0; p < n_pixels; p++)                                                     \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                const int64_t at = p * (n) + i;                                                    \
                const float from_x = (bpt_from_##T(x[at]) - mean[i]) * kx[i];                      \
                dx[at] = bpt_to_##T(bpt_from_##T(dy[at]) * kdy[i] + from_x + constant[i]);         \
            }                                                                                      \
    } while (0)
#define DATA_OF(T, lanes) FOR_LANES(T, lanes, DATA)
    BPT_FOR_TYPE(type, DATA_OF, lanes);
}

BPT_CLONES static void data_plain(const void *restrict in, const void *restrict grad,
                                  bpt_value_type type, int64_t n_pixels, float mean, float kdy,
                                  float kx, float constant, void *restrict out) {
#define DATA_PLAIN(T, n)                                                                           \
    do {                                                                                           \
        const bpt_mem_##T *restrict x = in, *restrict dy = grad;                                   \
        bpt_mem_##T *restrict dx = out;                                                            \
        for (int64_t p = 0; p < (n); p++)                                                          \
            dx[p] = bpt_to_##T(bpt_from_##T(dy[p]) * kdy + (bpt_from_##T(x[p]) - mean) * kx +      \
                               constant);                                                          \
    } while (0)
    BPT_FOR_TYPE(type, DATA_PLAIN, n_pixels);
}

void bpt_batchnorm_data(const bpt_lanes *a, const void *x, const void *dy, const int32_t *labels,
                        bpt_batchnorm_slopes k, void *dx) {
    const int64_t block = a->n_pixels * a->lanes;
    const bpt_value_type type = a->type;
    for (int64_t i = 0; i < a->n_samples * a->n_blocks; i++) {
        const int64_t c = i % a->n_blocks * a->lanes, at = i * block;
        const void *in = bpt_value_at(type, x, at), *grad = bpt_value_at(type, dy, at);
        void *out = bpt_place_at(type, dx, at);
        if (labels[i / a->n_blocks] < 0)
            memset(out, 0, (size_t)block * bpt_value_bytes(type));
        else if (a->lanes == 1)
            data_plain(in, grad, type, a->n_pixels, k.mean[c], k.dy[c], k.x[c], k.constant[c], out);
        else
            data_block(in, grad, type, a->n_pixels, a->lanes, k, c, out);
    }
}
