/** @file tools/plan/gradient_walk.h
 * How long a step of allreduce takes whose gradients are summed over ranks while the backward pass
 * goes on: the non-blocking step of Castello et al. 2021 (ALGORITHMS section 3), by buckets.
 *
 * Threads: pure functions but for the memory of bpt_gradient_schedule_make(). */
#ifndef BPT_TOOLS_GRADIENT_WALK_H
#define BPT_TOOLS_GRADIENT_WALK_H

#include "inner/models/model.h"

/** A range of the weights whose gradients leave together. */
typedef struct bpt_gradient_part {
    double bytes;
    double ready; /* part of a rank's step by which they are there, in (0, 1] */
} bpt_gradient_part;

typedef struct bpt_gradient_schedule {
    bpt_gradient_part *parts; /* in the order in which they leave, shape [n] */
    uint32_t n;
} bpt_gradient_schedule;

/** Cuts a model's weights as bpt-train does. A step is a forward pass of one part in three and a
 * backward pass that takes each layer's part of the operations, the last layers first.
 * @param model nothing of it is frozen
 * @param[out] schedule caller owns, bpt_gradient_schedule_free(), also on error
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_gradient_schedule_make(const bpt_model *model, bpt_gradient_schedule *schedule);
void bpt_gradient_schedule_free(bpt_gradient_schedule *schedule);

/** @param compute_s  of the slowest rank, for its part of the batch
 * @param s_per_byte  of the vector, to sum and return it: of the rank that takes the longest
 * @param latency_s   until the first byte of an answer is there
 * @return seconds until all sums are on all ranks: max(ready, the one before) + bytes, one part
 * after the other; at least compute_s */
double bpt_gradient_walk(const bpt_gradient_schedule *schedule, double compute_s, double s_per_byte,
                         double latency_s);

#endif
