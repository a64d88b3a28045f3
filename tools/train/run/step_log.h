/** @file tools/train/run/step_log.h
 * What a rank did in an agwu run and when, so that the run can be replayed: one JSON object a line
 * in RUN/exchange/steps.rank-N.jsonl. Together with the update logs of the shards it fixes every
 * bit.
 *
 *     {"round", "held": [...]}     samples of each rank, as this rank learnt
 *     {"pass", "rounds"}           a pass over the data began, covering that many rounds
 *     {"pushed_at", "landed_at", "every", "progress", "met"}   a push after that many steps of this
 * rank, its answer after so many, steps until the next is due, progress told in it, whether all had
 * met
 *
 * All functions do nothing with a NULL log.
 * Threads: one. */
#ifndef BPT_TOOLS_STEP_LOG_H
#define BPT_TOOLS_STEP_LOG_H

#include "outer/data/sampler.h"
#include "outer/exchange/exchange.h"
#include "tools/train/run/run_folder.h"

typedef struct bpt_step_log bpt_step_log;

/** @param first_pass that the rank is at: the first to be noted
 * @param[out] log caller owns, bpt_step_log_close(); appends to an existing file
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_step_log_open(const bpt_run_folder *run, uint32_t rank, uint64_t first_pass,
                             bpt_step_log **log);

/** Closes and flushes. @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_step_log_close(bpt_step_log *log);

/** Notes the passes that began with a step. @param state of the index stream after it
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_step_log_pass(bpt_step_log *log, bpt_sampler_state state);

/** When a push was answered, counted in steps of this rank. */
typedef struct bpt_step_landing {
    uint64_t pushed_at, landed_at;
    uint64_t every; /* the next push is due so many steps after this one */
} bpt_step_landing;

/** Notes an answer, and rounds of the partition that came with it. @return as above */
bpt_status bpt_step_log_landing(bpt_step_log *log, const bpt_partition *shares,
                                const bpt_step_landing *landing, const bpt_reply *reply);

#endif
