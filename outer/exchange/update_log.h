/** @file outer/exchange/update_log.h
 * Inside of outer/: the log of applied updates, one JSON object a line.
 *
 *     {"shard","version","worker","seq","base","gamma","q","staleness","lead"}
 *
 * version is the one that the update made, seq counts the worker's submissions from 1, base is the
 * version it started from, staleness is version - base - 1 and lead the clocks that it was ahead of
 * the slowest worker. q is the share of the worker's quality (bpt_quality_share()), 1
 * under a rule that ignores it, of a synchronous rule the quality itself. With the submissions at
 * hand the lines in order give the same weights again, bit for bit: (float)(gamma * q) is the
 * factor of each in bpt_update_rule.merge, of a delta what it is added times. (A synchronous rule
 * has one line a worker for each version; the factor is (float)gamma then, and the changes are
 * summed first.) The terms of the update are options of the run; what they keep follows from the
 * updates before.
 *
 * Lines are added in memory and written by another thread, so that a disk that is slow or hangs
 * does not keep the MPI thread from its messages.
 *
 * Threads: one adds, at the same time one writes; open and close are by themselves. */
#ifndef BPT_OUTER_UPDATE_LOG_H
#define BPT_OUTER_UPDATE_LOG_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt__update_log bpt__update_log;

typedef struct bpt__update {
    uint32_t shard, worker;
    uint64_t version, seq, base, staleness, lead;
    double gamma, quality;
} bpt__update;

/** Opens a log, appending. @param[out] log caller owns, bpt__update_log_close()
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt__update_log_open(const char *path, bpt__update_log **log);

/** Adds a line in memory. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__update_log_add(bpt__update_log *log, const bpt__update *update);

/** @return whether bpt__update_log_write() would hand anything on */
bool bpt__update_log_due(bpt__update_log *log, size_t at_least);

/** Hands the lines added so far to the system, if they come to so many bytes; 0: in any case.
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt__update_log_write(bpt__update_log *log, size_t at_least);

/** Writes the rest and closes. NULL is allowed.
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC; @p log is gone in any case */
bpt_status bpt__update_log_close(bpt__update_log *log);

#endif
