/** @file inner/loops/winograd_loops.h
 * The transforms of Winograd's algorithm (Lavin, Gray 2016, section 4.1). Of floats F(4x4, 3x3):
 * 4x4 values of a convolution of 3x3 are 36 products of a transformed window of 6x6 inputs with the
 * transformed filter, where the direct way takes 144. Of bfloat16 F(2x2, 3x3): 2x2 values of a
 * window of 4x4 are 16 products in place of 36. Sums over channels, for weights' gradients over
 * patches, are 36 or 16 matrix products, which are not made here.
 *
 * With 1-D transforms A, B, G, each applied to rows and columns: Y = A' [(G w G') * (B' d B)] A.
 * The gradient of w is G' [(A dY A') * (B' d B)] G; that of d is the same convolution again, of dY
 * with the filter turned by 180 degrees.
 *
 * Transformed windows, patches and their products are [values][patches][channels], values 36 or 16,
 * patches [n][rows][columns]; transformed filters [values][channels of what they are applied
 * to][channels of the result]. Factors have the type of the activations, products are floats, and
 * so are weights and their gradients. Channels are whole blocks of lanes; those that a tensor has
 * not are zeros.
 *
 * bfloat16 is rounded to behind each transform: larger windows would lose more by it than the type
 * does (docs/decisions.md).
 *
 * Pure. Threads: any. */
#ifndef BPT_INNER_WINOGRAD_LOOPS_H
#define BPT_INNER_WINOGRAD_LOOPS_H

#include "inner/loops/value_type.h"

#include <stdbool.h>
#include <stdint.h>

enum { BPT_WINOGRAD_MAX_LANES = 16 };

/** @return outputs along a side of a patch: 4, or 2 of bfloat16 */
static inline int64_t bpt_winograd_patch(bpt_value_type type) {
    return type == BPT_BF16 ? 2 : 4;
}

/** @return values of a transformed window, patch or filter: 36, or 16 of bfloat16 */
static inline int64_t bpt_winograd_values(bpt_value_type type) {
    const int64_t window = bpt_winograd_patch(type) + 2;
    return window * window;
}

/** An activation [there][blocks][h][w][lanes] and the patches that it is cut into. */
typedef struct bpt_winograd_image {
    bpt_value_type type;
    int64_t n;     /* samples that matrices of transformed values have rows for */
    int64_t there; /* samples that there are, at most n: others' rows are left as they are */
    int64_t blocks, lanes; /* lanes: 8 or 16; of bfloat16 16 */
    int64_t h, w;
    int64_t rows, columns; /* of patches */
    int64_t pad[2];        /* windows: the first begins so many rows, columns before the image */
} bpt_winograd_image;

/** Matrices of transformed values, each of so many, do not lie side by side: those of a patch would
 * be powers of two apart and share a set of the cache.
 * @param type of the values; @return values from one matrix to the next */
int64_t bpt_winograd_plane(bpt_value_type type, int64_t n);

/** @return values of one matrix of the image's patches, or windows */
int64_t bpt_winograd_matrix(const bpt_winograd_image *image);

/** v = B' d B of each window d; zeros outside of the image.
 * @param x shape as above; @param v [values][patches][channels]; both of the image's type */
void bpt_winograd_windows(const bpt_winograd_image *image, const void *restrict x,
                          void *restrict v);

/** y = A' m A (+ bias) of each patch (max(y, 0) if @p relu); what is outside of the image is left
 * out.
 * @param m [values][patches][channels]; @param bias shape [n_bias], one of each channel, or NULL
 * @param n_bias channels without the spare ones, which are in the last block alone
 * @param y of the image's type */
void bpt_winograd_results(const bpt_winograd_image *image, const float *restrict m,
                          const float *bias, int64_t n_bias, bool relu, void *restrict y);

/** z = A dy A' of each patch dy; zeros outside of the image.
 * @param dy shape as above; @param z [values][patches][channels]; both of the image's type */
void bpt_winograd_gradients(const bpt_winograd_image *image, const void *restrict dy,
                            void *restrict z);

/** Weights [outputs][inputs][3][3], between which there may be gaps. */
typedef struct bpt_winograd_filters {
    bpt_value_type type; /* of transformed ones */
    int64_t outputs, inputs;
    int64_t output_stride, input_stride; /* in floats; a filter's values lie side by side */
    int64_t all_outputs, all_inputs;     /* with spare channels; multiples of 8 */
} bpt_winograd_filters;

/** u = G w G' of each filter, [values][all inputs][all outputs], or for gradients of the inputs,
 * with filters turned by 180 degrees, [values][all outputs][all inputs]; zeros for spare channels.
 * @param u of the filters' type */
void bpt_winograd_transform_filters(const bpt_winograd_filters *filters, bool turned,
                                    const float *restrict w, void *restrict u);

/** dw = G' du G of each filter.
 * @param du [values][all inputs][all outputs]; @param dw as @p filters says */
void bpt_winograd_filter_gradients(const bpt_winograd_filters *filters, const float *restrict du,
                                   float *restrict dw);

#endif
