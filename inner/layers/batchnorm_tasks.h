/** @file inner/layers/batchnorm_tasks.h
 * What the tasks of a batch normalisation do; which there are and in what order is planned in
 * batchnorm.c. Private to inner/layers/.
 *
 * Threads: a task by any worker; those of one layer as their edges order them. */
#ifndef BPT_INNER_LAYERS_BATCHNORM_TASKS_H
#define BPT_INNER_LAYERS_BATCHNORM_TASKS_H

#include "inner/layers/batchnorm_loops.h"
#include "inner/step/builder.h"

/** Arrays over channels that tasks hand on, with zeros in their spare lanes: those of the forward
 * pass, and those of the backward pass alone. */
enum {
    BPT__BN_MEAN,
    BPT__BN_INV_STD,
    BPT__BN_SCALE,
    BPT__BN_SHIFT,
    BPT__BN_SLOPE_DY,
    BPT__BN_SLOPE_X,
    BPT__BN_CONSTANT,
    BPT__BN_ARRAYS
};

/** What the tasks of a layer share. */
typedef struct bpt__batchnorm {
    const bpt_builder *b;
    int64_t channels;
    size_t n_channels; /* with spare lanes */
    double eps;
    bpt_lanes tile[BPT_MAX_TILES], chunk[BPT_MAX_CHUNKS];
    bool relu, add;                  /* these are done too */
    bpt_activation in, other;        /* in an order of lanes; other: what is added */
    bpt_activation out;              /* its gradients: behind the ReLU's backward pass */
    bpt_ref out_grad[BPT_MAX_TILES]; /* before it */
    bpt_ref moments[BPT_MAX_CHUNKS]; /* of a chunk: mean and dev, doubles, shape [2, n_channels] */
    bpt_ref sums[BPT_MAX_CHUNKS];    /* of a chunk: dy and dy * x, likewise */
    double count;                    /* values of a channel that are there, of the whole batch */
    bpt_ref arrays[BPT__BN_ARRAYS];  /* floats, shape [n_channels] */
    bpt_ref master[BPT__BN_SEGMENTS], gradient[BPT__BN_SEGMENTS]; /* floats, shape [channels] */
    bpt_deps forward_ready; /* mean, scale and shift are there */
} bpt__batchnorm;

/** A tile of one. */
typedef struct bpt__batchnorm_tile {
    bpt__batchnorm *n;
    size_t t;
} bpt__batchnorm_tile;

/** Some channels of a chunk. */
typedef struct bpt__batchnorm_part {
    bpt__batchnorm *n;
    size_t c;
    bpt_channels channels;
} bpt__batchnorm_part;

/* Bodies of tasks; @p arg is the whole layer, or one of its tiles or parts. @return BPT_OK */

/** Training, a part: its moments. */
bpt_status bpt__batchnorm_moments(void *arg, unsigned worker);
/** Training, the layer: mean, scale and shift of the batch, and the running statistics' gradients.
 */
bpt_status bpt__batchnorm_statistics(void *arg, unsigned worker);
/** Evaluation, the layer: mean, scale and shift from the running statistics. */
bpt_status bpt__batchnorm_recall(void *arg, unsigned worker);
/** A tile: its output. */
bpt_status bpt__batchnorm_normalise(void *arg, unsigned worker);
/** Backward, a part: the ReLU's mask on the gradient, and its sums. */
bpt_status bpt__batchnorm_backward_sums(void *arg, unsigned worker);
/** Backward, the layer: gradients of weight and bias, and what the tiles' gradients are made with.
 */
bpt_status bpt__batchnorm_backward_weights(void *arg, unsigned worker);
/** Backward, a tile: the input's gradient. */
bpt_status bpt__batchnorm_backward_data(void *arg, unsigned worker);

#endif
