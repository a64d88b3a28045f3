/** @file tools/train/replay/replay_progress.h
 * The line of progress of a replay: as that of training, as far as it has a meaning there.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_PROGRESS_H
#define BPT_TOOLS_REPLAY_PROGRESS_H

#include "inner/network/network.h"

#include <stdint.h>

typedef struct bpt_replay_progress {
    uint64_t n_steps, done; /* of all ranks together */
    uint64_t epoch_samples, samples;
    uint32_t n_ranks;
    double interval_s;
    /* since the last line */
    uint64_t start_ns, first_step, first_sample;
    double loss_sum;
} bpt_replay_progress;

/** @param n_steps       to be repeated, of all ranks together
 * @param epoch_samples  of the training split
 * @param interval_s     seconds between lines */
void bpt_replay_progress_begin(bpt_replay_progress *p, uint64_t n_steps, uint32_t n_ranks,
                               uint64_t epoch_samples, double interval_s);

/** @return steps to be repeated as lines of progress count them: one is of every rank, as in
 * training */
uint64_t bpt_replay_progress_steps(const bpt_replay_progress *p);

/** Counts a step of one rank, and prints a line if it is time to.
 * @param rate its learning rate */
void bpt_replay_progress_step(bpt_replay_progress *p, const bpt_batch_result *result, float rate);

#endif
