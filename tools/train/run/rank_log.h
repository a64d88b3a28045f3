/** @file tools/train/run/rank_log.h
 * What a rank did in an exchange and when, a JSON object a line: RUN/exchange/NAME.rank-N.jsonl.
 * What is printed is written when a buffer is full and at the close, so an error may come late.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RANK_LOG_H
#define BPT_TOOLS_RANK_LOG_H

#include "tools/train/run/run_folder.h"

#include <stdio.h>

typedef struct bpt_rank_log {
    FILE *file; /* NULL: closed */
    char *path; /* own */
    int error;  /* errno of a write that failed; 0: none did */
} bpt_rank_log;

/** Opens a log; appends to an existing file.
 * @param name such as "steps"
 * @param[out] log bpt_rank_log_close(); closed after an error
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_rank_log_open(const bpt_run_folder *run, const char *name, uint32_t rank,
                             bpt_rank_log *log);

/** Appends a text. @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_rank_log_print(bpt_rank_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Writes what is left. Does nothing with one that is closed.
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC: also where an earlier print failed */
bpt_status bpt_rank_log_close(bpt_rank_log *log);

#endif
