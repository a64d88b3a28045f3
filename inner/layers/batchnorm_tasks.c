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

static const int32_t *labels_of(const bpt__batchnorm *n, size_t t) {
    const size_t offset = (size_t)n->b->tile_start[t] * sizeof(int32_t);
    return bpt_at(n->b->blocks, bpt_ref_in(BPT_BLOCK_LABELS, offset));
}

static bpt_moments moments_of(const bpt__batchnorm *n, size_t t) {
    double *mean = bpt_at(n->b->blocks, n->moments[t]);
    return (bpt_moments){n->count[t], mean, mean + n->n_channels};
}

bpt_status bpt__batchnorm_moments(void *arg, unsigned worker) {
    const bpt__batchnorm_tile *task = arg;
    bpt__batchnorm *n = task->n;
    const size_t t = task->t;
    (void)worker;
    bpt_moments m = moments_of(n, t);
    bpt_moments_of(&n->lanes[t], bpt_at(n->b->blocks, n->in.value[t]), labels_of(n, t), &m);
    n->count[t] = m.count;
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

/* The tiles' moments, merged in the order of the tiles. The running statistics' gradient is their
 * distance to the batch's, so that they travel, are summed over ranks by samples, and are applied
 * as every gradient is. The variance that is gathered is that of the population. */
bpt_status bpt__batchnorm_statistics(void *arg, unsigned worker) {
    bpt__batchnorm *n = arg;
    (void)worker;
    bpt_moments all = moments_of(n, 0);
    for (size_t t = 1; t < n->b->n_tiles; t++) {
        const bpt_moments tile = moments_of(n, t);
        bpt_moments_merge(n->n_channels, &all, &tile);
    }
    const double count = all.count, pixels = (double)n->lanes[0].n_pixels;
    const double share = count / pixels / (double)n->b->step->denominator;
    n->count[n->b->n_tiles] = count;
    clear_spare_lanes(n, BPT__BN_MEAN, BPT__BN_SHIFT);
    for (int64_t c = 0; c < n->channels; c++) {
        const double var = count > 0.0 ? all.dev[c] / count : 0.0;
        const double unbiased = count > 1.0 ? all.dev[c] / (count - 1.0) : var;
        set_scale(n, c, all.mean[c], var);
        gradient(n, BPT__BN_RUNNING_MEAN)[c] =
            (float)(share * ((double)master(n, BPT__BN_RUNNING_MEAN)[c] - all.mean[c]));
        gradient(n, BPT__BN_RUNNING_VAR)[c] =
            (float)(share * ((double)master(n, BPT__BN_RUNNING_VAR)[c] - unbiased));
    }
    return BPT_OK;
}

/* Asynchronous merges of several ranks could take a variance below zero. */
bpt_status bpt__batchnorm_recall(void *arg, unsigned worker) {
    const bpt__batchnorm *n = arg;
    (void)worker;
    clear_spare_lanes(n, BPT__BN_MEAN, BPT__BN_SHIFT);
    for (int64_t c = 0; c < n->channels; c++)
        set_scale(n, c, (double)master(n, BPT__BN_RUNNING_MEAN)[c],
                  fmax((double)master(n, BPT__BN_RUNNING_VAR)[c], 0.0));
    return BPT_OK;
}

bpt_status bpt__batchnorm_normalise(void *arg, unsigned worker) {
    const bpt__batchnorm_tile *task = arg;
    const bpt__batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t t = task->t;
    const void *addend = n->add ? bpt_at(blocks, n->other.value[t]) : NULL;
    (void)worker;
    bpt_batchnorm_forward(&n->lanes[t], bpt_at(blocks, n->in.value[t]), addend,
                          array(n, BPT__BN_MEAN), array(n, BPT__BN_SCALE), array(n, BPT__BN_SHIFT),
                          n->relu, bpt_at(blocks, n->out.value[t]));
    return BPT_OK;
}

bpt_status bpt__batchnorm_backward_sums(void *arg, unsigned worker) {
    const bpt__batchnorm_tile *task = arg;
    const bpt__batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t t = task->t;
    const void *y = n->relu ? bpt_at(blocks, n->out.value[t]) : NULL;
    double *sum_dy = bpt_at(blocks, n->sums[t]);
    (void)worker;
    bpt_batchnorm_sums(&n->lanes[t], bpt_at(blocks, n->in.value[t]), bpt_at(blocks, n->out_grad[t]),
                       y, bpt_at(blocks, n->out.grad[t]), array(n, BPT__BN_MEAN), sum_dy,
                       sum_dy + n->n_channels);
    return BPT_OK;
}

/* With M values of a channel and x^ = (x - mean) / std:
 *   dbias = sum dy,  dweight = sum dy x^,  dx = scale (dy - dbias / M - x^ dweight / M). */
bpt_status bpt__batchnorm_backward_weights(void *arg, unsigned worker) {
    const bpt__batchnorm *n = arg;
    const double count = n->count[n->b->n_tiles], part = count > 0.0 ? 1.0 / count : 0.0;
    (void)worker;
    clear_spare_lanes(n, BPT__BN_SLOPE_DY, BPT__BN_CONSTANT);
    for (int64_t c = 0; c < n->channels; c++) {
        double sum_dy = 0.0, sum_dyx = 0.0;
        for (size_t t = 0; t < n->b->n_tiles; t++) {
            const double *sums = bpt_at(n->b->blocks, n->sums[t]);
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
    bpt_batchnorm_data(&n->lanes[t], bpt_at(blocks, n->in.value[t]), bpt_at(blocks, n->out.grad[t]),
                       labels_of(n, t), slopes, bpt_at(blocks, n->in.grad[t]));
    return BPT_OK;
}
