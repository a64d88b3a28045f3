/** @file inner/winograd_loops.h
 * The transforms of Winograd's algorithm F(4x4, 3x3) (Lavin, Gray 2016, section 4.1): 4x4 values of
 * a convolution of 3x3 are 36 products of a transformed patch of 6x6 inputs with the transformed
 * filter, where the direct way takes 144. Sums over channels, for weights' gradients over patches,
 * are 36 matrix products, which are not made here.
 *
 * With 1-D transforms A (4 of 6 products), B (6 of 6 inputs), G (6 of 3 weights), each applied to
 * rows and columns: Y = A' [(G w G') * (B' d B)] A. The gradient of w is G' [(A dY A') * (B' d B)]
 * G; that of d is the same convolution again, of dY with the filter turned by 180 degrees.
 *
 * Transformed patches are [36][patches][channels], patches [n][rows][columns]; transformed filters
 * [36][channels of what they are applied to][channels of the result]. Channels are whole blocks of
 * lanes; those that a tensor has not are zeros.
 *
 * Pure. Threads: any. */
#ifndef BPT_INNER_WINOGRAD_LOOPS_H
#define BPT_INNER_WINOGRAD_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BPT_WINOGRAD_PATCH = 4,   /* outputs along a side */
    BPT_WINOGRAD_WINDOW = 6,  /* inputs along a side */
    BPT_WINOGRAD_VALUES = 36, /* of a transformed patch or filter */
    BPT_WINOGRAD_MAX_LANES = 16,
};

/** An activation [n][blocks][h][w][lanes] and the patches that it is cut into. */
typedef struct bpt_winograd_image {
    int64_t n, blocks, lanes; /* lanes: 8 or 16 */
    int64_t h, w;
    int64_t rows, columns; /* of patches */
    int64_t pad[2];        /* windows: the first begins so many rows, columns before the image */
} bpt_winograd_image;

/** @return floats of the image's patches, or windows, transformed */
size_t bpt_winograd_floats(const bpt_winograd_image *image);

/** v = B' d B of each window d; zeros outside of the image.
 * @param x shape as above; @param v [36][patches][channels] */
void bpt_winograd_windows(const bpt_winograd_image *image, const float *restrict x,
                          float *restrict v);

/** y = A' m A (+ bias) of each patch (max(y, 0) if @p relu); what is outside of the image is left
 * out.
 * @param m [36][patches][channels]; @param bias shape [n_bias], one of each channel, or NULL
 * @param n_bias channels without the spare ones */
void bpt_winograd_results(const bpt_winograd_image *image, const float *restrict m,
                          const float *bias, int64_t n_bias, bool relu, float *restrict y);

/** z = A dy A' of each patch dy; zeros outside of the image.
 * @param dy shape as above; @param z [36][patches][channels] */
void bpt_winograd_gradients(const bpt_winograd_image *image, const float *restrict dy,
                            float *restrict z);

/** Weights [outputs][inputs][3][3], between which there may be gaps. */
typedef struct bpt_winograd_filters {
    int64_t outputs, inputs;
    int64_t output_stride, input_stride; /* in floats; a filter's values lie side by side */
    int64_t all_outputs, all_inputs;     /* with spare channels; multiples of 8 */
} bpt_winograd_filters;

/** u = G w G' of each filter, [36][all inputs][all outputs], or for gradients of the inputs, with
 * filters turned by 180 degrees, [36][all outputs][all inputs]; zeros for spare channels. */
void bpt_winograd_transform_filters(const bpt_winograd_filters *filters, bool turned,
                                    const float *restrict w, float *restrict u);

/** dw = G' du G of each filter.
 * @param du [36][all inputs][all outputs]; @param dw as @p filters says */
void bpt_winograd_filter_gradients(const bpt_winograd_filters *filters, const float *restrict du,
                                   float *restrict dw);

#endif
