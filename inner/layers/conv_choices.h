/** @file inner/layers/conv_choices.h
 * What is chosen for a convolution before its kernels are made: the algorithm, how each step is
 * cut, and the order in which its activations lie. Each binds the others: rows are cut in channels
 * last, Winograd's algorithm has no kernels there, and what cuts keep the bits goes by the kernels
 * that an order has.
 *
 * Threads: the one that builds. */
#ifndef BPT_INNER_LAYERS_CONV_CHOICES_H
#define BPT_INNER_LAYERS_CONV_CHOICES_H

#include "inner/layers/conv_state.h"

/** The order of a convolution's activations. */
typedef enum bpt_conv_order {
    BPT_CONV_ORDER_CHOSEN, /* by the kernels */
    BPT_CONV_ORDER_LAST,   /* channels last */
    BPT_CONV_ORDER_PLAIN,
} bpt_conv_order;

/** @param backward_data whether gradients of the input are wanted
 * @param state its problems are described; its cuts are filled in, and the problems' algorithm
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_choose(const bpt_layer *l, bpt_builder *b, bool backward_data,
                            bpt_conv_state *state, bpt_conv_order *order);

/** @param[out] src,dst of the input and the output of @p p; NULL: the kernel's own choice
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_order_layouts(bpt_builder *b, const bpt_conv_problem *p, bpt_conv_order order,
                                   const bpt_layout **src, const bpt_layout **dst);

#endif
