/** @file inner/network/network_border.h
 * Networks of parts of a model (inner/models/model_part.h): what they give and take at the border.
 *
 * A head's step has two halves. The forward pass ends with the values of the border; then whoever
 * has the tail computes their gradient; the backward pass begins with that. Between the halves the
 * caller's thread is free, and so is the pool, which may run other networks. Pixels, labels and
 * draws of the forward pass stay as they are until the backward pass has ended.
 *
 *     bpt_network_forward(head), .values -> tail, tail -> .gradient, bpt_network_backward(head)
 *
 * A tail is trained as a whole network is, by bpt_network_train() and bpt_network_gradient(), on
 * values of the border in place of pixels, which it reads where they are. The gradient of its input
 * is there when a step has ended, or before (bpt_network_hand_border()); its scale is that of the
 * loss, which is the sum over the samples divided by the step's denominator, so that head and tail
 * of a batch are given the same one. The batches of several ranks that share a step may be one
 * batch of the tail: in the order of the ranks and with the draw of the first, each sample draws
 * there what it would draw in its own. Only whole networks evaluate.
 *
 * With the weights, batches and draws of the whole network the parts compute what it does: the same
 * bits, but where a layer of the tail sums in the order of values in memory, which is row-major at
 * the border. Batch norm, averages, local response normalisation and, of bfloat16, the gradients of
 * windows of a maximum that overlap are such sums, unless a convolution or a fully connected layer
 * stands before them; they may round otherwise than in the whole network.
 *
 * A norm of the whole gradient is known to no part: bpt_learning.clip_norm is refused.
 *
 * Threads: as inner/network/network.h. */
#ifndef BPT_INNER_NETWORK_BORDER_H
#define BPT_INNER_NETWORK_BORDER_H

#include "base/status.h"
#include "inner/network/network.h"

#include <stddef.h>
#include <stdint.h>

/** Values of the network's batch at the border, and their gradient: each [N, C, H, W], row-major.
 * Both are the network's memory, at the same place as long as it lives. */
typedef struct bpt_border {
    bpt_shape shape;     /* of a sample */
    bpt_value_type type; /* of both */
    size_t bytes;        /* of each */
    /** Of a head: there from the end of its forward pass to the begin of its backward pass, or of
     * another run. Of a tail: NULL, they are the caller's. */
    const void *values;
    /** Of a head: to be written in the same time. Of a tail: there from the end of a step, or from
     * when it is handed out, to the next batch; bpt_network_apply() does not touch it. */
    void *gradient;
} bpt_border;

/** @param net of a part */
bpt_border bpt_network_border(const bpt_network *net);

/** Takes the gradient at a tail's border, which is there; those of weights may still be computed.
 * Called by a worker; must not wait.
 * @param result of the batch
 * @return BPT_OK, or an error that ends the run */
typedef bpt_status (*bpt_border_take)(void *context, const bpt_batch_result *result);

/** From now on bpt_network_gradient() of a tail hands that gradient out as soon as it is there, if
 * it is finite, and hurries to it: where the pool's policy orders tasks by their costs, the
 * gradients of weights come behind. Between runs, once, and not beside bpt_network_hand_out().
 * @param context borrowed while the network lives
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (too many edges) */
bpt_status bpt_network_hand_border(bpt_network *net, bpt_border_take take, void *context);

/** First half of a head's training step: computes the values of the border.
 * @param pixels,labels as of bpt_network_train(); borrowed until the second half has ended
 * @param denominator likewise, of both halves
 * @return BPT_OK, BPT_ENUMERIC (a value of the border is not finite; names the layer where that
 *         began), BPT_EBACKEND */
bpt_status bpt_network_forward(bpt_network *net, const float *pixels, const int32_t *labels,
                               float denominator);

/** Second half: backward and update.
 * @return BPT_OK, BPT_ENUMERIC (a gradient or a new weight is not finite: as
 * bpt_network_train()), BPT_EBACKEND */
bpt_status bpt_network_backward_train(bpt_network *net, float rate);

/** Second half: backward; the gradients can then be read. Weights stay.
 * @return as bpt_network_backward_train() */
bpt_status bpt_network_backward(bpt_network *net);

#endif
