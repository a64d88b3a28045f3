/** @file inner/layers/conv_gather.h
 * Backward weights of a convolution for the whole batch at once, where there are more weights than
 * activations.
 *
 * Chunk by chunk, every chunk has a gradient as large as the weights: larger than a cache, gone
 * through for each sample, written, and read once more for the sum. Here the activations are
 * gathered from the chunks instead (inner/layers/tap_loops.h), which is little to copy, and each
 * task computes the gradient of a range of filters for all samples, as one matrix product for each
 * tap of them: there are no partial ones, and nothing outside of the image is multiplied.
 *
 * Threads: the one that builds. */
#ifndef BPT_INNER_LAYERS_CONV_GATHER_H
#define BPT_INNER_LAYERS_CONV_GATHER_H

#include "inner/layers/tap_loops.h"
#include "inner/step/builder.h"

/** Whether a convolution has more weights than activations, and enough filters for ranges of them;
 * not by Winograd's algorithm.
 * By the problem alone, never by a measured time, since it changes the order of sums.
 * @param batch of all samples */
bool bpt_conv_suits_gather(const bpt_conv_problem *batch);

/** Filters of a range, whole blocks of BPT_CUT_LANES: as many as keep the weights' gradient in a
 * cache, in bfloat16 more where wider products are faster. By the problem alone. */
int64_t bpt_conv_gather_filters(const bpt_conv_problem *batch);

typedef struct bpt_conv_range {
    bpt_tap_filters filters;
    bpt_kernel **taps; /* matrix products, shape [R * S]; NULL: the tap meets nothing */
} bpt_conv_range;

typedef struct bpt_conv_gather {
    bpt_conv_problem batch; /* of all samples */
    int64_t lanes;
    bpt_conv_range *ranges; /* shape [n] */
    size_t n;               /* 0: chunk by chunk */
} bpt_conv_gather;

/** Makes the kernels. Before there are any, gathers_gradient() of conv_choices.c foretells whether.
 * @param chunk   problem of a chunk; @param forward its kernel, whose activation layouts all
 *                chunks have
 * @param[out] out      ->n is 0 where kernels or layouts do not allow it
 * @param[out] gradient layout of the layer's gradient, unless ->n is 0
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_gather_create(bpt_builder *b, const bpt_conv_problem *chunk,
                                   const bpt_kernel *forward, bpt_conv_gather *out,
                                   const bpt_layout **gradient);

/** What the tasks work on. */
typedef struct bpt_conv_gather_operands {
    const char *label;
    const bpt_activation *in, *out; /* values of the one, gradients of the other */
    bpt_ref weights;                /* gradient */
    const bpt_ref *bias; /* its gradients, one a chunk, shape [n_chunks]; NULL: no bias */
} bpt_conv_gather_operands;

/** Adds the tasks.
 * @param[out] copied of each chunk, the tasks behind which nothing of it is needed and the bias's
 *                    gradient is there; shape [n_chunks]
 * @param[out] done   the tasks that write the weights' gradient */
bpt_status bpt__conv_gather_plan(bpt_builder *b, const bpt_conv_gather *g,
                                 const bpt_conv_gather_operands *o, bpt_deps *copied,
                                 bpt_deps *done);

#endif
