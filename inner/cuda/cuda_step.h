/** @file inner/cuda/cuda_step.h
 * What a step is given and what it leaves, in the GPU's memory; and the kernels that read it:
 * dropout and the loss. So a captured step can be replayed with other values.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_STEP_H
#define BPT_INNER_CUDA_CUDA_STEP_H

#include "inner/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Written by the host before a step. */
typedef struct bpt_cuda_step {
    const void *batch;                 /* the GPU's, as cuda_input.h has it */
    uint64_t seed, step, first_sample; /* bpt_draw */
    uint64_t updates;                  /* this one included, from 1 */
    float rate;                        /* of learning */
    float denominator;                 /* the summed gradient is divided by it */
    float n_samples;                   /* that are there: their label is not -1 */
    int32_t end_sample;                /* behind the last of these: the rest of the batch takes no
                                        * part in statistics */
    int32_t n_images;                  /* of a batch of images: that are there */
    int32_t has_moves;                 /* and whether they are moved */
    int32_t has_second;                /* 0: no sample has a second label */
    int32_t trains;                    /* 0: an evaluation, without second labels and smoothing */
} bpt_cuda_step;

/** Read by the host behind a step; zeroed on the stream before one. */
typedef struct bpt_cuda_outcome {
    double loss_sum;
    uint64_t n_correct, n_samples;
    int32_t bad_label;    /* 1 + a label that is not below the classes; 0: none is */
    int32_t bad_loss;     /* not 0: the sum is not finite. Updates change nothing then, nor when a
                           * label is bad */
    int32_t bad_gradient; /* 1 + the last segment with a gradient that is not finite; 0: none */
    int32_t bad_norm;     /* not 0: a norm of gradients, or what follows from it, is not finite */
    int32_t bad_weight;   /* as bad_gradient, of new weights */
} bpt_cuda_outcome;

/** Dropout, forward and backward: y = x / (1 - rate), or 0 for values that the mask drops. The mask
 * is the CPU's: value i of sample s, in the canonical order [C, pixels], is dropped where number i
 * of the stream bpt_random_stream(step->seed, BPT_PURPOSE_DROPOUT, layer << 52 | (step->step &
 * 0xFFFFFFF) << 24 | ((step->first_sample + s) & 0xFFFFFF)) is below (uint32_t)(rate * 2^32);
 * base/random.c says how numbers are drawn. Values lie as [N, pixels, C].
 * @param y may be x */
bpt_status bpt_cuda_dropout(bpt_cuda_stream stream, const bpt_cuda_step *step, uint64_t layer,
                            double rate, int64_t n, int64_t c, int64_t pixels, bpt_value_type type,
                            const void *x, void *y);

/** Softmax cross-entropy of the batch (inner/network/loss.c says what is computed, and with what
 * precision: expf in float, sums in double).
 * @param logits shape [N, row], the first @p classes of each row
 * @param labels,second shape [N]; second labels and @p parts are read if step->has_second and
 * step->trains
 * @param smoothing of labels, if step->trains
 * @param losses shape [2 * N] doubles, the kernel's own
 * @param gradient like the logits; NULL: not computed. Channels at and above classes become 0
 * @param[in,out] outcome loss_sum, n_correct, n_samples, bad_label, bad_loss are set */
bpt_status bpt_cuda_loss(bpt_cuda_stream stream, const bpt_cuda_step *step, const void *logits,
                         bpt_value_type type, int64_t n, int64_t row, int64_t classes,
                         const int32_t *labels, const int32_t *second, const float *parts,
                         double smoothing, double *losses, void *gradient,
                         bpt_cuda_outcome *outcome);

#ifdef __cplusplus
}
#endif

#endif
