/** @file scheduler/pool.h
 * Worker threads that run graphs. The thread that calls bpt_pool_run() is worker 0; idle workers
 * sleep.
 *
 * Threads: one run at a time; create, run and free are called by the same thread. */
#ifndef BPT_SCHEDULER_POOL_H
#define BPT_SCHEDULER_POOL_H

#include "base/status.h"
#include "scheduler/graph.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_pool bpt_pool;

enum { BPT_MAX_WORKERS = 256 };

/** How a pool is made. Start from BPT_POOL_OPTIONS_INIT. */
typedef struct bpt_pool_options {
    unsigned n_workers;                /* in [1, BPT_MAX_WORKERS]; the calling thread included */
    bool bind;                         /* bind worker i to the i-th allowed core; only if there are
                                          at least n_workers of them */
    void (*on_start)(unsigned worker); /* called once on every worker's thread; may be NULL */
} bpt_pool_options;

#define BPT_POOL_OPTIONS_INIT                                                                      \
    { .n_workers = 1, .bind = false, .on_start = NULL }

/** What the last run took: the workers' time and how it was used. */
typedef struct bpt_run_stats {
    uint64_t wall_ns;
    uint64_t busy_ns; /* sum over workers of time inside tasks */
    uint64_t n_tasks;
    uint64_t n_stolen; /* tasks run by another worker than the one they were queued at */
} bpt_run_stats;

/** @param[out] pool caller owns, bpt_pool_free()
 * @return BPT_OK, BPT_EUSAGE (n_workers out of range), BPT_ENOMEM, BPT_EIO (no thread to be had) */
bpt_status bpt_pool_create(const bpt_pool_options *options, bpt_pool **pool);
void bpt_pool_free(bpt_pool *pool);
unsigned bpt_pool_n_workers(const bpt_pool *pool);

/** @return cores that this process may run on (hwloc: binding and cpusets respected), at least 1 */
unsigned bpt_pool_allowed_cores(void);

/** Runs every task of @p g once, by priority of upward rank. Allocates nothing.
 * @param stats may be NULL
 * @return BPT_OK, or the error of the first task that failed (its text is this thread's last
 * error); then tasks that had not started were not run, and all that had started have ended */
bpt_status bpt_pool_run(bpt_pool *pool, bpt_graph *g, bpt_run_stats *stats);

#endif
