/** @file inner/layers/conv_copies.h
 * Copies of a convolution's weights in bfloat16 for both passes, made by one task (see
 * inner/loops/weight_copies.h), where the kernels read them so.
 *
 * Threads: the one that builds. */
#ifndef BPT_INNER_LAYERS_CONV_COPIES_H
#define BPT_INNER_LAYERS_CONV_COPIES_H

#include "inner/step/builder.h"

/** Weights as kernels read them. */
typedef struct bpt_weights_view {
    const bpt_layout *layout;
    bpt_ref where;
    bpt_deps ready;
} bpt_weights_view;

/** A task that makes copies, anew in every step. */
typedef struct bpt_conv_copies bpt_conv_copies;

/** Plans the copy that the forward pass reads.
 * @param layout that its kernels want
 * @param[out] copies NULL where that, the master or the processor does not suit: nothing is planned
 * @param[out] view   of the copy, unless *copies is NULL
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_copies_plan(const bpt_layer *l, bpt_builder *b, const bpt_conv_problem *p,
                                 const bpt_layout *layout, bpt_conv_copies **copies,
                                 bpt_weights_view *view);

/** Lets the same task make the copy that the gradient of the input wants.
 * @param copies may be NULL
 * @param layout that the gradient's kernels want, of all weights and not of a range of channels
 * @param[out] view of that copy; untouched where it does not suit
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_copies_add(bpt_builder *b, bpt_conv_copies *copies, const bpt_layout *layout,
                                bpt_weights_view *view);

#endif
