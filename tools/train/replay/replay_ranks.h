/** @file tools/train/replay/replay_ranks.h
 * What each rank of a run computed with, which may be another thing on each: by the run's summary.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_RANKS_H
#define BPT_TOOLS_REPLAY_RANKS_H

#include "base/status.h"
#include "inner/loops/value_type.h"
#include "tools/train/options/train_options.h"

#include <stdbool.h>
#include <stdint.h>

/** What decides about the bits of a rank, beside what all have alike. */
typedef struct bpt_replay_rank {
    bool tuned; /* convolutions were cut by the file that the run has kept of it */
    bpt_value_type activations;
} bpt_replay_rank;

/** Checks that no rank computed on a device, which rounds otherwise than the cores that a replay
 * computes on: by the summary, and by what a rank with a GPU keeps from its start on, so that also
 * a run is known that did not come to its end.
 * @return BPT_OK, BPT_EUSAGE (one did, with a hint), BPT_ENOMEM */
bpt_status bpt_replay_check_devices(const char *run);

/** Reads it of the workers, and warns of kernels that are not those of this processor. Of what the
 * summary does not say, as those of earlier versions, it is what config.yaml says, which is rank
 * 0's.
 * @param options of the run; .replay is its folder
 * @param[out] ranks shape [n]
 * @return BPT_OK, BPT_EUSAGE (this processor cannot compute so, with a hint), BPT_EDATA (names file
 *         and field), BPT_ENOMEM */
bpt_status bpt_replay_ranks_read(const bpt_train_options *options, uint32_t n,
                                 bpt_replay_rank *ranks);

#endif
