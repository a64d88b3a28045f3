/** @file inner/cuda/cuda_update_kernels.h
 * Between cuda_update.c, which knows optimisers, and the kernels. Private to the update.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_UPDATE_KERNELS_H
#define BPT_INNER_CUDA_CUDA_UPDATE_KERNELS_H

#include "inner/cuda/cuda_step.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BPT__UPDATE_THREADS = 256,
    BPT__UPDATE_FOURS = 8, /* of a thread: runs of four neighbouring floats */
    BPT__UPDATE_RANGE = BPT__UPDATE_THREADS * BPT__UPDATE_FOURS * 4,
};

/** What one block of threads updates: a range of a segment. */
typedef struct bpt__update_range {
    int64_t begin; /* a multiple of 4 */
    int32_t count; /* at most BPT__UPDATE_RANGE */
    int32_t segment;
} bpt__update_range;

typedef struct bpt__update_segment {
    float running;
    bool decays, has_copy;
    int32_t first, n; /* its ranges; n 0 of one that is frozen */
} bpt__update_segment;

typedef enum bpt__update_rule {
    BPT__UPDATE_PLAIN,
    BPT__UPDATE_MOMENTUM,
    BPT__UPDATE_NESTEROV,
    BPT__UPDATE_ADAMW,
} bpt__update_rule;

/** A pair of sums of squares. */
typedef struct bpt__squares_pair {
    double gradient, weights;
} bpt__squares_pair;

/** What the gradient and the step of a segment are multiplied by. */
typedef struct bpt__update_scale {
    float gradient, trust;
} bpt__update_scale;

/** An update as kernels see it; pointers are the GPU's. */
typedef struct bpt__update_plan {
    float *weights, *gradients, *state[2];
    uint16_t *copies;                /* bpt_bf16 */
    const bpt__update_range *ranges; /* of what learns, and behind these of what is frozen */
    const bpt__update_segment *segments;
    int32_t n_ranges, n_frozen_ranges, n_segments;
    bpt__update_rule rule;
    double momentum, decay, beta1, beta2, eps;
    bool trusts;        /* LARS: with eta */
    bool wants_weights; /* norms of weights */
    double eta, clip_norm, step_limit;
    /* Where norms are wanted; else NULL: */
    bpt__squares_pair *of_ranges, *of_segments;
    bpt__update_scale *scales; /* of segments */
} bpt__update_plan;

/** Sums squares and finds .scales, from gradients, weights and step->rate. */
bpt_status bpt__update_measure(bpt_cuda_stream stream, const bpt__update_plan *plan,
                               const bpt_cuda_step *step);

bpt_status bpt__update_apply(bpt_cuda_stream stream, const bpt__update_plan *plan,
                             const bpt_cuda_step *step, bpt_cuda_outcome *outcome);

bpt_status bpt__update_look(bpt_cuda_stream stream, const bpt__update_plan *plan,
                            bpt_cuda_outcome *outcome);

/** Of frozen segments, too. */
bpt_status bpt__update_narrow(bpt_cuda_stream stream, const bpt__update_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
