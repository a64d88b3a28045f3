#include "inner/layers/batchnorm_tasks.h"

#include <math.h>
#include <string.h>

static float *array(const bpt__batchnorm *n, int which) {
    return bpt_at(n->b->blocks, n->arrays[which]);
}

static float *master(const bpt__batchnorm *n, int which) {
    return bpt_at(n->b->blocks, n->master[which]);
}

static float *gradient(const bpt__batchnorm *n, int which) {
    return bpt_at(n->b->blocks, n->gradient[which]);
}

/* Whole, since another buffer may have been at its place. */
static void clear_spare_lanes(const bpt__batchnorm *n, int first, int last) {
    const size_t n_spare = n->n_channels - (size_t)n->channels;
    for (int which = first; which <= last; which++)
        memset(array(n, which) + n->channels, 0, n_spare * sizeof(float));
}

/* @param first sample of the batch */
static const int32_t *labels_from(const bpt__batchnorm *n, int64_t first) {
    const size_t offset = (size_t)first * sizeof(int32_t);
    return bpt_at(n->b->blocks, bpt_ref_in(BPT_BLOCK_LABELS, offset));
}

static const int32_t *labels_of_chunk(const bpt__batchnorm *n, size_t c) {
    return labels_from(n, n->b->chunk_start[c]);
}

static bpt_moments moments_of(const bpt__batchnorm *n, size_t c) {
    double *mean = bpt_at(n->b->blocks, n->moments[c]);
    return (bpt_moments){.mean = mean, .dev = mean + n->n_channels};
}

bpt_status bpt__batchnorm_moments(void *arg, unsigned worker) {
    const bpt__batchnorm_part *task = arg;
    const bpt__batchnorm *n = task->n;
    const size_t c = task->c;
    bpt_moments m = moments_of(n, c);
    (void)worker;
    bpt_moments_of(&n->chunk[c], bpt_at(n->b->blocks, n->in.value[n->b->chunk_tile[c]]),
                   labels_of_chunk(n, c), task->channels, &m);
    return BPT_OK;
}

/* y = (x - mean) * scale + shift does what the formula says. */
static void set_scale(const bpt__batchnorm *n, int64_t c, double mean, double var) {
    const double inv_std = 1.0 / sqrt(var + n->eps);
    const double scale = (double)master(n, BPT__BN_WEIGHT)[c] * inv_std;
    array(n, BPT__BN_MEAN)[c] = (float)mean;
    array(n, BPT__BN_INV_STD)[c] = (float)inv_std;
    array(n, BPT__BN_SCALE)[c] = (float)scale;
    array(n, BPT__BN_SHIFT)[c] = master(n, BPT__BN_BIAS)[c];
}

/* The chunks' moments, merged in the order of the chunks. */
static bpt_moments merge_moments(const bpt__batchnorm *n) {
    bpt_moments all = moments_of(n, 0);
    all.count = bpt_moments_count(&n->chunk[0], labels_of_chunk(n, 0));
    for (size_t c = 1; c < n->b->n_chunks; c++) {
        bpt_moments chunk = moments_of(n, c);
        chunk.count = bpt_moments_count(&n->chunk[c], labels_of_chunk(n, c));
        bpt_moments_merge(n->n_channels, &all, &chunk);
    }
    return all;
}

/* The running statistics' gradient is their distance to the batch's, so that they travel, are
 * summed over ranks by samples, and are applied as every gradient is. The variance that is gathered
 * is that of the population, of which one value says nothing: it then stays. */
bpt_status bpt__batchnorm_statistics(void *arg, unsigned worker) {
    bpt__batchnorm *n = arg;
    (void)worker;
    const bpt_moments all = merge_moments(n);
    const double count = all.count, pixels = (double)n->chunk[0].n_pixels;
    const double share = count / pixels / (double)n->b->step->denominator;
    n->count = count;
    clear_spare_lanes(n, BPT__BN_MEAN, BPT__BN_SHIFT);
    for (int64_t c = 0; c < n->channels; c++) {
        const double var = count > 0.0 ? all.dev[c] / count : 0.0;
        const double known = (double)master(n, BPT__BN_RUNNING_VAR)[c];
        const double unbiased = count > 1.0 ? all.dev[c] / (count - 1.0) : known;
        set_scale(n, c, all.mean[c], var);
        gradient(n, BPT__BN_RUNNING_MEAN)[c] =
            (float)(share * ((double)master(n, BPT__BN_RUNNING_MEAN)[c] - all.mean[c]));
        gradient(n, BPT__BN_RUNNING_VAR)[c] = (float)(share * (known - unbiased));
    }
    return BPT_OK;
}

/* Asynchronous merges of several ranks could take a variance below zero. */
bpt_status bpt__batchnorm_recall(void *arg, unsigned worker) {
    const bpt__batchnorm *n = arg;
    (void)worker;
    clear_spare_lanes(n, BPT__BN_MEAN, BPT__BN_SHIFT);
    for (int64_t c = 0; c < n->channels; c++) {
        const double var = (double)master(n, BPT__BN_RUNNING_VAR)[c];
        const bool is_number = var - var == 0.0; /* else the scale is NaN, for the loss to tell */
        set_scale(n, c, (double)master(n, BPT__BN_RUNNING_MEAN)[c],
                  is_number ? fmax(var, 0.0) : (double)NAN);
    }
    return BPT_OK;
}

bpt_status bpt__batchnorm_normalise(void *arg, unsigned worker) {
    const bpt__batchnorm_tile *task = arg;
    const bpt__batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t t = task->t;
    const void *addend = n->add ? bpt_at(blocks, n->other.value[t]) : NULL;
    (void)worker;
    bpt_batchnorm_forward(&n->tile[t], bpt_at(blocks, n->in.value[t]), addend,
                          labels_from(n, n->b->tile_start[t]), array(n, BPT__BN_MEAN),
                          array(n, BPT__BN_SCALE), array(n, BPT__BN_SHIFT), n->relu,
                          bpt_at(blocks, n->out.value[t]));
    return BPT_OK;
}

bpt_status bpt__batchnorm_backward_sums(void *arg, unsigned worker) {
    const bpt__batchnorm_part *task = arg;
    const bpt__batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t first = n->b->chunk_tile[task->c];
    const void *y = n->relu ? bpt_at(blocks, n->out.value[first]) : NULL;
    double *sum_dy = bpt_at(blocks, n->sums[task->c]);
    (void)worker;
    bpt_batchnorm_sums(&n->chunk[task->c], bpt_at(blocks, n->in.value[first]),
                       bpt_at(blocks, n->out_grad[first]), y, task->channels,
                       bpt_at(blocks, n->out.grad[first]), array(n, BPT__BN_MEAN), sum_dy,
                       sum_dy + n->n_channels);
    return BPT_OK;
}

/* With M values of a channel and x^ = (x - mean) / std:
 *   dbias = sum dy,  dweight = sum dy x^,  dx = scale (dy - dbias / M - x^ dweight / M). */
bpt_status bpt__batchnorm_backward_weights(void *arg, unsigned worker) {
    const bpt__batchnorm *n = arg;
    const double part = n->count > 0.0 ? 1.0 / n->count : 0.0;
    (void)worker;
    clear_spare_lanes(n, BPT__BN_SLOPE_DY, BPT__BN_CONSTANT);
    for (int64_t c = 0; c < n->channels; c++) {
        double sum_dy = 0.0, sum_dyx = 0.0;
        for (size_t i = 0; i < n->b->n_chunks; i++) {
            const double *sums = bpt_at(n->b->blocks, n->sums[i]);
            sum_dy += sums[c];
            sum_dyx += sums[n->n_channels + (size_t)c];
        }
        const double inv_std = (double)array(n, BPT__BN_INV_STD)[c],
                     scale = (double)array(n, BPT__BN_SCALE)[c];
        gradient(n, BPT__BN_WEIGHT)[c] = (float)(sum_dyx * inv_std);
        gradient(n, BPT__BN_BIAS)[c] = (float)sum_dy;
        array(n, BPT__BN_SLOPE_DY)[c] = (float)scale;
        array(n, BPT__BN_SLOPE_X)[c] = (float)(-scale * inv_std * inv_std * sum_dyx * part);
        array(n, BPT__BN_CONSTANT)[c] = (float)(-scale * sum_dy * part);
    }
    return BPT_OK;
}

bpt_status bpt__batchnorm_backward_data(void *arg, unsigned worker) {
    const bpt__batchnorm_tile *task = arg;
    const bpt__batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t t = task->t;
    (void)worker;
    const bpt_batchnorm_slopes slopes = {array(n, BPT__BN_MEAN), array(n, BPT__BN_SLOPE_DY),
                                         array(n, BPT__BN_SLOPE_X), array(n, BPT__BN_CONSTANT)};
    bpt_batchnorm_data(&n->tile[t], bpt_at(blocks, n->in.value[t]), bpt_at(blocks, n->out.grad[t]),
                       labels_from(n, n->b->tile_start[t]), slopes, bpt_at(blocks, n->in.grad[t]));
    return BPT_OK;
}
