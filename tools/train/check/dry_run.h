/** @file tools/train/check/dry_run.h
 * bpt-train --dry-run: what a run would be.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_DRY_RUN_H
#define BPT_TOOLS_DRY_RUN_H

#include "tools/train/options/train_options.h"

#include <stdint.h>

/** Prints the effective configuration, the layers and the memory that a rank needs, and allocates
 * none of it. Needs no dataset where the model's own input is meant, or --input-size; with
 * one, what the run would refuse for its sake is refused: splits, batch, augmentation, and
 * weights of --init-weights, which are read and let go.
 * @param n_ranks of the job, at least 1
 * @param on_host of them on this host, which share its cores; at least 1
 * @return BPT_OK, BPT_EUSAGE (options that do not fit the number of ranks), as
 *         bpt_job_open_data(), bpt_shaped_model_load(), bpt_initial_weights_try() or
 *         bpt_memory_plan_make() */
bpt_status bpt_train_dry_run(const bpt_train_options *options, uint32_t n_ranks, uint32_t on_host);

#endif
