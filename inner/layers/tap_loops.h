/** @file inner/layers/tap_loops.h
 * What is copied so that a convolution's weights' gradient is one matrix product for each tap: each
 * of the R x S values of a filter.
 *
 * Tap (r, s) multiplies output (i, j) by input (i * stride + r * dilation - pad, likewise of
 * columns) for all outputs whose input is inside of the image. Its gradient [C, K] is x' dy of
 * those: a sum over rows, columns and samples, in which nothing outside takes part. For each column
 * s of taps, values and gradients of the columns that meet there are gathered from the tiles:
 *
 * source   [C][rows][columns][N], rows in the order of bpt_tap_row(): those that a tap meets are
 *          neighbours whatever the stride. Channels are bpt_tap_channel() values apart.
 * gradient [P][columns][N][filters], of a range of filters
 *
 * Tiles are [n][blocks][h][w][lanes] without spare lanes. Geometry is that of the whole batch.
 *
 * Pure. Threads: any. */
#ifndef BPT_INNER_TAP_LOOPS_H
#define BPT_INNER_TAP_LOOPS_H

#include "inner/cpu/cpu.h"

/** Outputs [first, first + n) along an axis. */
typedef struct bpt_tap_span {
    int64_t first, n;
} bpt_tap_span;

/** @param axis 0: rows, 1: columns; @param tap along it
 * @return outputs whose input is inside of the image; n is 0 if there are none */
bpt_tap_span bpt_tap_span_of(const bpt_conv_problem *p, int axis, int64_t tap);

/** @return where a row of the input is among those that are gathered */
int64_t bpt_tap_row(const bpt_conv_problem *p, int64_t row);

/** @return values from a channel to the next of the source of a column of taps */
int64_t bpt_tap_channel(const bpt_conv_problem *p, int64_t s);

/** @return values of the source, or of a range of filters' gradient, of taps' columns [0, s): where
 * that of column s begins. Both are whole cache lines. */
int64_t bpt_tap_source(const bpt_conv_problem *p, int64_t s);
int64_t bpt_tap_gradient(const bpt_conv_problem *p, int64_t filters, int64_t s);

/** Some samples of the batch, and blocks of channels. */
typedef struct bpt_tap_tile {
    int64_t first, n; /* samples */
    int64_t lanes;    /* 8 or 16 */
} bpt_tap_tile;

/** @param x values of the tile; @param[out] source of all columns of taps */
void bpt_tap_gather_source(const bpt_conv_problem *p, bpt_tap_tile tile, const void *restrict x,
                           void *restrict source);

/** A range of filters; whole blocks. */
typedef struct bpt_tap_filters {
    int64_t first, n;
} bpt_tap_filters;

/** @param dy gradients of the tile, all filters; @param[out] gradient of all columns of taps */
void bpt_tap_gather_gradient(const bpt_conv_problem *p, bpt_tap_tile tile, bpt_tap_filters filters,
                             const void *restrict dy, void *restrict gradient);

/** Gradients of the bias: sums over the tile's samples and pixels.
 * @param bias shape [filters.n] */
void bpt_tap_sum_bias(const bpt_conv_problem *p, bpt_tap_tile tile, bpt_tap_filters filters,
                      const void *restrict dy, float *restrict bias);

/** Puts a tap's gradient where it belongs. Channels are whole blocks.
 * @param tap     r * S + s
 * @param product shape [C][filters.n]; NULL: the tap meets nothing, zeros
 * @param dw      of the layer: [K/lanes][C/lanes][R][S][lanes of inputs][lanes of outputs] */
void bpt_tap_store(const bpt_conv_problem *p, int64_t lanes, bpt_tap_filters filters, int64_t tap,
                   const float *restrict product, float *restrict dw);

#endif
