/** @file tests/ref/ref_network.h
 * A whole model in double precision, layer by layer: what a trained step is compared with.
 *
 * Gradients of fp32 agree only where no value lies within rounding error of a kink (ReLU at 0,
 * equal values in a pooling window): prefer random inputs and few layers to large nets.
 *
 * Threads: any. */
#ifndef TESTS_REF_REF_NETWORK_H
#define TESTS_REF_REF_NETWORK_H

#include "inner/models/model.h"
#include "tests/ref/ref.h"

#include <stdbool.h>
#include <stdint.h>

/** What a step is given. */
typedef struct ref_batch {
    int64_t n;
    const double *pixels;  /* shape [N, C, H, W] */
    const int32_t *labels; /* shape [N]; -1: not there */
    double denominator;    /* the summed gradient is divided by it */
    bool evaluation;       /* running statistics, no dropout; then there are no gradients */
    bpt_draw draw;         /* of dropout */
    /* Values that ReLUs (by their output) and maxima (by their input) switch by instead of their
     * own: [0] the input, [1 + i] the output of layer i. Switched alike, an engine and the
     * reference compute the same smooth function, however near to a kink. NULL: their own */
    const float *const *switched_by;
} ref_batch;

/** What comes out; counts and sums over samples with a label. */
typedef struct ref_result {
    double loss_sum;
    uint64_t n_correct, n_samples; /* of equal logits the first wins */
    /* A hash of which values each ReLU lets pass and which each maximum takes. If it is the same at
     * two weight vectors that differ in one layer, the logits are linear in between: no kink. */
    uint64_t switches;
} ref_result;

/** Forward, loss and, if @p gradient is not NULL, backward.
 * @param weights  flat, in the order of model->segments
 * @param logits   shape [N, classes]; may be NULL
 * @param gradient flat, in the same order as @p weights; may be NULL. That of a running statistic
 * is its distance to the batch's, that of a layer that is frozen is left as it is
 * @param terms    flat, in the same order: for each weight, the sum of the absolute values of the
 *                 terms whose sum is its gradient, which is what rounding errors are measured by;
 *                 may be NULL, and is if @p gradient is */
ref_result ref_network(const bpt_model *model, const ref_batch *batch, const double *weights,
                       double *logits, double *gradient, double *terms);

/** The same from floats. @param pixels shape [N, C, H, W]; @param weights flat */
ref_result ref_network_f32(const bpt_model *model, int64_t n, const float *pixels,
                           const int32_t *labels, double denominator, const float *weights,
                           double *logits, double *gradient, double *terms);

/** Compares a flat vector segment by segment.
 * @param[out] name of the worst segment; may be NULL
 * @return the largest ref_error() of a segment */
double ref_segments_error(const bpt_segments *s, const float *values, const double *ref,
                          const char **name);

/** Updates all segments as their roles say: with or without weight decay, or as running statistics.
 * @param weights,momentum,gradient flat; @param mu the momentum's factor */
void ref_network_update(const bpt_segments *s, double *weights, double *momentum,
                        const double *gradient, double rate, double mu, double decay);

#endif
