/** @file tools/train/run/border_log.h
 * In which order the tail of a network in two parts learnt from the batches of the ranks, under
 * agwu: one JSON object a line in RUN/exchange/border.rank-N.jsonl, where rank N hosts the tail.
 *
 *     {"placement": LAYER}             the first line: where the tail begins
 *     {"worker", "step", "rate"}       an update by a step of that rank, counted from 0
 *
 * Together with the logs of steps and updates it fixes every bit.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_BORDER_LOG_H
#define BPT_TOOLS_BORDER_LOG_H

#include "tools/train/run/run_folder.h"

typedef struct bpt_border_log bpt_border_log;

/** @param first name of the first layer of the tail
 * @param[out] log caller owns, bpt_border_log_close(); appends to an existing file
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_border_log_open(const bpt_run_folder *run, uint32_t rank, const char *first,
                               bpt_border_log **log);

/** Closes and flushes. NULL is allowed. @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_border_log_close(bpt_border_log *log);

/** Notes an update. @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_border_log_update(bpt_border_log *log, uint32_t worker, uint64_t step, float rate);

#endif
