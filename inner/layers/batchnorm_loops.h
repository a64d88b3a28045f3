/** @file inner/layers/batchnorm_loops.h
 * Batch normalisation (Ioffe, Szegedy 2015) of a chunk or a tile: passes over memory, without
 * tasks.
 *
 * Values lie in blocks of lanes (bpt_layout_lanes()). Arrays over channels have one element a lane,
 * shape [n_channels] with the spare lanes of the last block included; those hold zeros.
 *
 * A sample whose label is -1 is not there: it takes no part in the statistics.
 *
 * Threads: any, on tiles that do not overlap. */
#ifndef BPT_INNER_BATCHNORM_LOOPS_H
#define BPT_INNER_BATCHNORM_LOOPS_H

#include "inner/loops/value_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Order of a tile's values: [n_samples, n_blocks, n_pixels, lanes]; and their type, which the
 * arrays called x, y, z, dx, dy and masked below have. */
typedef struct bpt_lanes {
    int64_t n_samples, n_blocks, n_pixels, lanes;
    bpt_value_type type;
} bpt_lanes;

/** @return channels, spare lanes included */
static inline size_t bpt_lanes_channels(const bpt_lanes *a) {
    return (size_t)(a->n_blocks * a->lanes);
}

/** Count, mean and sum of squared deviations from it, of each channel. */
typedef struct bpt_moments {
    double count;       /* values of a channel */
    double *mean, *dev; /* shape [n_channels] */
} bpt_moments;

/** Neighbouring channels, spare lanes included, as sums can be cut by: bpt_channels_cut(). */
typedef struct bpt_channels {
    int64_t first, end;
} bpt_channels;

/** Part number @p i of @p n of all channels, which may be empty: whole blocks of lanes, or of a
 * larger block what fills lines of the cache. */
bpt_channels bpt_channels_cut(const bpt_lanes *a, size_t i, size_t n);

/** @return values of a channel of the samples that are there. @param labels shape [n_samples] */
double bpt_moments_count(const bpt_lanes *a, const int32_t *labels);

/** Moments of some channels of a tile; the others stay. @param labels shape [n_samples] */
void bpt_moments_of(const bpt_lanes *a, const void *x, const int32_t *labels, bpt_channels part,
                    bpt_moments *out);

/** Makes @p into the moments of both (Chan, Golub, LeVeque 1979). */
void bpt_moments_merge(size_t n_channels, bpt_moments *into, const bpt_moments *from);

/** y = (x - mean) * scale + bias + z, channel by channel: in this order, so that a large mean costs
 * no digits. Of a sample that is not there 0, since it may be far from what there is: divided by
 * the root of little, layer after layer, it would not stay a number.
 * @param z    NULL: nothing is added; else in the order of @p x
 * @param labels shape [n_samples]; @param mean,scale,bias shape [n_channels]
 * @param relu whether values below 0 become 0 */
void bpt_batchnorm_forward(const bpt_lanes *a, const void *x, const void *z, const int32_t *labels,
                           const float *mean, const float *scale, const float *bias, bool relu,
                           void *y);

/** Sums over a tile, of some channels: of dy, and of dy * (x - mean).
 * @param y      NULL, or the output behind a ReLU: dy counts where y > 0 only
 * @param[out] masked what of dy counts, if @p y is given; may be @p dy
 * @param mean   shape [n_channels]; @param[out] sum_dy,sum_dyx shape [n_channels] */
void bpt_batchnorm_sums(const bpt_lanes *a, const void *x, const void *dy, const void *y,
                        bpt_channels part, void *masked, const float *mean, double *sum_dy,
                        double *sum_dyx);

/** What bpt_batchnorm_data() computes with; shape [n_channels] each. */
typedef struct bpt_batchnorm_slopes {
    const float *mean, *dy, *x, *constant;
} bpt_batchnorm_slopes;

/** dx = dy * k.dy + (x - mean) * k.x + k.constant where the sample is there, else 0.
 * @param dx no overlap with @p dy */
void bpt_batchnorm_data(const bpt_lanes *a, const void *x, const void *dy, const int32_t *labels,
                        bpt_batchnorm_slopes k, void *dx);

#endif
