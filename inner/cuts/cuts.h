/** @file inner/cuts/cuts.h
 * How a step of a convolution on a chunk of samples is cut into parts, each a smaller convolution.
 *
 * A part computes some output channels (of backward data: channels of the gradient that it gives),
 * some rows, or both, of one sample; or some samples, whole. Of backward weights, a range of
 * channels has weights' gradients of its own, while samples and rows add up: they are partial
 * gradients. With groups, channels are cut between groups.
 *
 * Pure arithmetic: whether kernels take the parts is decided where a layer is planned
 * (inner/layers/conv_parts.h).
 *
 * Threads: any. */
#ifndef BPT_INNER_CUTS_H
#define BPT_INNER_CUTS_H

#include "inner/cpu/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bpt_conv_step {
    BPT_CONV_FORWARD,
    BPT_CONV_BACKWARD_DATA,
    BPT_CONV_BACKWARD_WEIGHTS,
    BPT_N_CONV_STEPS,
} bpt_conv_step;

enum {
    BPT_CUT_LANES = 16, /* channels that stay together: a block of every order that kernels know */
    BPT_MAX_CUT = 64,   /* ranges of channels, and of rows */
};

/** How a chunk is cut; zeros leave it whole. */
typedef struct bpt_cut {
    int64_t samples;  /* of a part, at most; 0: all of the chunk. Where channels or rows are cut a
                       * part has one sample, whatever this says */
    int64_t channels; /* ranges of channels, up to BPT_MAX_CUT; 0 and 1: one */
    int64_t rows;     /* ranges of rows, likewise */
} bpt_cut;

/** @return "forward", "backward data", "backward weights": the kind of the step's tasks */
const char *bpt_conv_step_name(bpt_conv_step step);

/** @return the same cut of a chunk of @p n samples in one spelling: samples 1 to n, channels and
 * rows at least 1 */
bpt_cut bpt_cut_normal(bpt_cut cut, int64_t n);

/** @return whether the cut leaves a chunk of @p n samples in one piece */
bool bpt_cut_is_whole(bpt_cut cut, int64_t n);

/** @return parts of a chunk of @p n samples: channels change fastest, then rows, then samples */
size_t bpt_cut_parts(bpt_cut cut, int64_t n);

/** @return partial gradients that backward weights gives of a chunk of @p n samples: all parts but
 * those that differ in channels only share none */
size_t bpt_cut_partials(bpt_cut cut, int64_t n);

/** A part of a step. */
typedef struct bpt_conv_part {
    bpt_conv_problem problem;      /* what it computes; .relu and .bias as of the whole */
    int64_t in[4], out[4];         /* where its input and output begin: sample, channel, row, 0 */
    int64_t weights[5];            /* likewise its weights: bpt_conv_weight_dims() */
    size_t channel_range, partial; /* which of the cut's ranges; which partial gradient */
} bpt_conv_part;

/** Part number @p i of a step.
 * @param whole the chunk's problem
 * @return whether there is such a convolution: not if the channels have too few whole blocks of
 *         BPT_CUT_LANES, a range would have a single group (its weights would have fewer
 *         dimensions), or a range of rows none, or none that they are computed from */
bool bpt_cut_part(const bpt_conv_problem *whole, bpt_conv_step step, bpt_cut cut, size_t i,
                  bpt_conv_part *part);

/** @return what the part that has most of a step computes, of what all parts of @p whole compute; 0
 * if there is no such cut */
double bpt_cut_largest(const bpt_conv_problem *whole, bpt_conv_step step, bpt_cut cut);

#endif
