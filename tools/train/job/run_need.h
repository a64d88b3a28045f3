/** @file tools/train/job/run_need.h
 * How much room a run takes on a disk, for its weights and checkpoints, and some for what is small
 * beside them: logs, counters, ends of blocks.
 *
 * Threads: any; pure functions. */
#ifndef BPT_TOOLS_RUN_NEED_H
#define BPT_TOOLS_RUN_NEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_RUN_NEED_OTHERS = 128 << 10 }; /* bytes for what is small */

/** What it follows from. */
typedef struct bpt_run_writes {
    uint64_t weights;         /* bytes of the model's weights; 0: they are written elsewhere */
    uint64_t checkpoint;      /* bytes of one */
    uint64_t progress, total; /* samples of all ranks: so far, and of the run */
    uint64_t every;           /* samples between checkpoints; 0: none is due, or elsewhere */
    uint64_t late;            /* samples by which one may come later than it is due */
    uint64_t keep;            /* --checkpoint-keep, >= 1 */
    const uint64_t *there;    /* bytes of the checkpoints in the folder, newest first */
    size_t n_there;
} bpt_run_writes;

/** Bytes that are to be free. */
typedef struct bpt_run_need {
    uint64_t checkpoints; /* that are made for certain: 0 or 1 */
    uint64_t least;       /* for those and for the weights at the end: with less the run fails */
    uint64_t most;        /* that it takes at once with all that are due */
    bool fewer;           /* a lower --checkpoint-keep may take less */
} bpt_run_need;

/** @return what a run needs. A checkpoint is whole before an older one is removed, and the weights
 * are whole before those of an earlier end are replaced */
bpt_run_need bpt_run_need_of(const bpt_run_writes *run);

/** @return bytes for one checkpoint now and the weights at the end, whatever is due */
uint64_t bpt_run_need_of_one(const bpt_run_writes *run);

#endif
