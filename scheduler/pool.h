/** @file scheduler/pool.h
 * Worker threads that run graphs. The thread that calls bpt_pool_run() is worker 0; idle workers
 * sleep.
 *
 * Threads: one run at a time; create, run and free are called by the same thread. The other workers
 * take no signals but those of their own faults. */
#ifndef BPT_SCHEDULER_POOL_H
#define BPT_SCHEDULER_POOL_H

#include "base/status.h"
#include "scheduler/graph.h"
#include "scheduler/policy.h"
#include "scheduler/trace.h"

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
    const bpt_policy *policy;          /* NULL: bpt_policy_critical_path */
} bpt_pool_options;

#define BPT_POOL_OPTIONS_INIT                                                                      \
    { .n_workers = 1, .bind = false, .on_start = NULL, .policy = NULL }

/** What a run took: the workers' time and how it was used. */
typedef struct bpt_run_stats {
    uint64_t wall_ns;
    uint64_t busy_ns;  /* sum over workers of time inside tasks */
    uint64_t n_tasks;  /* tasks and starts of events that were run; all of the graph on success */
    uint64_t n_stolen; /* tasks run by another worker than the one they were queued at */
} bpt_run_stats;

/** Starts the workers; returns when all of them are ready.
 * @param options copied
 * @param[out] pool caller owns, bpt_pool_free()
 * @return BPT_OK, BPT_EUSAGE (n_workers out of range), BPT_ENOMEM, BPT_EIO (no thread to be had) */
bpt_status bpt_pool_create(const bpt_pool_options *options, bpt_pool **pool);

/** The same, of so many workers and with a policy by its name (bpt_policy_find()).
 * @return likewise; BPT_EUSAGE also where there is no such policy */
bpt_status bpt_pool_open(const char *policy, unsigned n_workers, bpt_pool **pool);

/** Ends the workers' threads. @param pool NULL is allowed; not running */
void bpt_pool_free(bpt_pool *pool);
unsigned bpt_pool_n_workers(const bpt_pool *pool);

/** @return the policy by which it runs graphs */
const bpt_policy *bpt_pool_policy(const bpt_pool *pool);

/** Lets the runs to come be recorded; between runs.
 * @param trace borrowed until another call; of at least as many workers; NULL: no recording */
void bpt_pool_set_trace(bpt_pool *pool, bpt_trace *trace);

/** @return cores that this process may run on, in [1, BPT_MAX_WORKERS]: so many workers a pool
 * takes, where there are more cores the others are left out. A core counts once however many
 * threads it has in hardware, and if binding and cpuset leave the process one of them. Takes
 * milliseconds: ask once. */
unsigned bpt_pool_bound_cores(void);

/** @return cores whose time control groups leave the processes in them together, a part of one
 * counting as one (base/cgroup.h), in [1, BPT_MAX_WORKERS]: the latter also without a limit */
unsigned bpt_pool_quota_cores(void);

/** @return the lesser of the two: as many workers as this process can make use of, by itself */
unsigned bpt_pool_allowed_cores(void);

/** Runs every task of @p g once, in the order and on the workers that the policy of the pool says
 * (scheduler/policy.h). By the default policy each worker runs the tasks that it made ready itself
 * by greatest key first (bpt_machine_keys()), then takes the one of greatest key from the others;
 * with one worker this is list scheduling. Sleeps while only events are outstanding. Allocates
 * nothing.
 * @param stats may be NULL; written whether the run succeeds or fails
 * @return BPT_OK, or the error of the task or event that failed first (its text is this thread's
 *         last error); then tasks that had not started were not run, all that had started have
 *         ended, events that were not completed count as ended, and @p g can be run again */
bpt_status bpt_pool_run(bpt_pool *pool, bpt_graph *g, bpt_run_stats *stats);

#endif
