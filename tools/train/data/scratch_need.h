/** @file tools/train/data/scratch_need.h
 * How much room a rank's scratch takes under --data-mode scatter.
 *
 * Threads: any; pure functions. */
#ifndef BPT_TOOLS_SCRATCH_NEED_H
#define BPT_TOOLS_SCRATCH_NEED_H

#include "tools/train/options/train_options.h"

/** What it follows from. */
typedef struct bpt_scratch_job {
    bpt_update_choice update;       /* resolved: never DEFAULT or AUTO */
    bpt_partition_choice partition; /* likewise */
    uint32_t n_ranks;               /* that train */
    double epochs;
    uint64_t train, test; /* samples of the splits */
    size_t record_bytes;  /* C*H*W */
} bpt_scratch_job;

/** Bytes on disk. */
typedef struct bpt_scratch_need {
    uint64_t even; /* where all ranks are given alike */
    uint64_t most; /* that a rank may be given: by its speed, it may be nearly all */
} bpt_scratch_need;

/** @return what a rank needs that does not have the dataset: its share of the training split, under
 * allreduce what its parts of the batches come to over the epochs; and its part of the test split
 */
bpt_scratch_need bpt_scratch_need_of(const bpt_scratch_job *job);

#endif
