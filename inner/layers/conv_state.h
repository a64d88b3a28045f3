/** @file inner/layers/conv_state.h
 * What a convolution's forward planning (conv_forward.c) leaves for its backward one
 * (conv_backward.c). */
#ifndef BPT_INNER_LAYERS_CONV_STATE_H
#define BPT_INNER_LAYERS_CONV_STATE_H

#include "inner/layers/conv_copies.h"
#include "inner/layers/conv_gather.h"
#include "inner/layers/conv_parts.h"

typedef struct bpt_conv_state {
    bpt_conv_problem problem[BPT_MAX_CHUNKS];
    bpt_cut cut[BPT_N_CONV_STEPS];
    bool usual[BPT_N_CONV_STEPS];        /* whether that is into tiles, or none */
    bpt_kernel *forward[BPT_MAX_CHUNKS]; /* of whole chunks */
    bpt_conv_pieces forward_pieces[BPT_MAX_CHUNKS];
    bpt_conv_gather gather; /* backward weights of the batch at once, or else */
    bpt_conv_pieces weights_pieces[BPT_MAX_CHUNKS];
    const bpt_layout *gradient; /* of the weights, as those kernels write it */
    bpt_weights_view weights;   /* of the forward pass */
    bpt_conv_copies *copies;    /* that makes these, and may make more; NULL: there is none */
    bpt_activation in;          /* in the layout of the kernels */
} bpt_conv_state;

/** Plans what bpt_layer_kind.plan_forward and plan_backward do for a convolution. */
bpt_status bpt__conv_plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                  bpt_activation *out, void **state);
bpt_status bpt__conv_plan_backward(const bpt_layer *l, bpt_builder *b,
                                   bpt_activation *const *inputs, const bpt_activation *out,
                                   void *state);

/** Makes a part of the weights readable in another layout. Where the master has it otherwise,
 * kernels read a copy that is made anew in every step.
 * @param from a part of the master; @param wanted the layout of the same part
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_view_weights(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                                  bpt_part from, const bpt_layout *wanted, bpt_weights_view *out);

/** Makes the kernels of a step, in parts where it is cut, and notes how it came to be.
 * @param step its .label and .problems are those of the layer, whatever it says
 * @param[out] pieces as of bpt__conv_pieces()
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_cut_step(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state,
                              bpt_conv_whole step, bpt_conv_pieces *pieces);

#endif
