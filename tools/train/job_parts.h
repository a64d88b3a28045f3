/** @file tools/train/job_parts.h
 * Inside of tools/train/: the parts of bpt_job_open(), in the order of their calls.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_JOB_PARTS_H
#define BPT_TOOLS_JOB_PARTS_H

#include "tools/train/job.h"

/** Chooses update, partition, batch and learning rate from options and number of ranks.
 * @return BPT_OK, BPT_EUSAGE (options that do not fit the number of ranks) */
bpt_status bpt__job_choose(bpt_job *job);

/** Sets the lengths that are counted in samples; the training split is known.
 * @return BPT_OK, BPT_EUSAGE (a step of all ranks is more than the split) */
bpt_status bpt__job_choose_lengths(bpt_job *job);

/** Sets weights, optimiser's state and counters and makes exchange and feed: of the checkpoint that
 * --resume finds, else as at the start of a run. Data, network and run folder are there.
 * Collective.
 * @return BPT_OK or any error of the parts, agreed on */
bpt_status bpt__job_open_state(bpt_job *job);

/** Warns of a run so short that its end, which agwu and sgwu notice at an exchange only, may come
 * late by more than a tenth of it. */
void bpt__job_warn_late_end(const bpt_job *job);

#endif
