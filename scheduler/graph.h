/** @file scheduler/graph.h
 * A graph of tasks, built once and run many times.
 *
 * Threads: one thread at a time may build, ask or run a given graph; workers are internal to the
 * run. bpt_graph_complete() and bpt_graph_run_number() alone may be called from any thread at any
 * time in the graph's life.
 * Results never depend on the number of workers: an edge must order any two tasks that touch the
 * same bytes when one of them writes. */
#ifndef BPT_SCHEDULER_GRAPH_H
#define BPT_SCHEDULER_GRAPH_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bpt_graph bpt_graph;

/** Body of a task. Must not call MPI or start another run.
 * @param arg     the pointer given to bpt_graph_add(), borrowed for the whole run
 * @param worker  in [0, n_workers): index of this thread's scratch memory
 * @return BPT_OK; any error, said with bpt_fail(), cancels every task that has not started */
typedef bpt_status (*bpt_task_fn)(void *arg, unsigned worker);

/** What a task is, for traces and cost tables; borrowed for ever. */
typedef struct bpt_task_info {
    const char *kind;  /* "conv forward" */
    const char *label; /* "conv1 tile 3"; may be NULL */
} bpt_task_info;

/** Creates an empty graph, with all the memory that it and its runs will ever need.
 * @param max_tasks  in [1, 2^31)
 * @param max_edges  in [0, 2^32): sum of n_after over all tasks
 * @param[out] g     caller owns, bpt_graph_free()
 * @return BPT_OK, BPT_EUSAGE (out of range), BPT_ENOMEM */
bpt_status bpt_graph_create(size_t max_tasks, size_t max_edges, bpt_graph **g);

/** @param g NULL is allowed; not running */
void bpt_graph_free(bpt_graph *g);

/** Adds a task that starts once every task in @p after has succeeded.
 * @param fn       may be NULL: then the task only joins edges (n + m of them in place of n * m)
 * @param cost_ns  expected duration in nanoseconds, 0 if unknown: longest path runs first
 * @param after    ids from earlier calls, shape [n_after], copied; so no cycle can be built.
 *                 The same id twice orders as once
 * @param[out] id  0, 1, 2... in call order
 * @return BPT_OK, BPT_EUSAGE (an id not yet given out) or BPT_EFULL; on error @p g is unchanged */
bpt_status bpt_graph_add(bpt_graph *g, bpt_task_fn fn, void *arg, bpt_task_info info,
                         uint64_t cost_ns, const uint32_t *after, size_t n_after, uint32_t *id);

/** Adds an external event: a task that takes no worker. When every task in @p after has succeeded,
 * @p start (may be NULL) is called once on a worker; the event is over when both have happened:
 * start has returned BPT_OK, and bpt_graph_complete() has been called for it in this run.
 * @return as bpt_graph_add() */
bpt_status bpt_graph_add_event(bpt_graph *g, bpt_task_fn start, void *arg, bpt_task_info info,
                               uint64_t cost_ns, const uint32_t *after, size_t n_after,
                               uint32_t *id);

/** Ends event @p id of a running graph: a message arrived, a device is done. May come before or
 * after the event's start function runs, once a run; never before bpt_pool_run() was entered.
 * A run that has failed waits for no event: what comes for it before it returns is accepted without
 * effect, what comes later is refused. So a late call is harmless as long as the graph exists, and
 * cannot be taken for the next run's.
 * @param run    the run that the event belongs to: bpt_graph_run_number() as it was when the outer
 *               operation was begun, in the start function for instance
 * @param status BPT_OK, or an error (this thread's last error is taken along) that ends the run
 * @return BPT_OK, BPT_EUSAGE (not an event, run not in progress, or completed twice) */
bpt_status bpt_graph_complete(bpt_graph *g, uint64_t run, uint32_t id, bpt_status status);

/** @return number of the run in progress, or of the last one if there is none: 1, 2, 3... in the
 * graph's life, 0 before the first. The next run is one more. */
uint64_t bpt_graph_run_number(const bpt_graph *g);

/** Replaces the expected duration of a task, for the runs to come; not while the graph runs. */
void bpt_graph_set_cost(bpt_graph *g, uint32_t id, uint64_t cost_ns);

/** @return the expected duration of a task in nanoseconds, 0 if unknown */
uint64_t bpt_graph_cost(const bpt_graph *g, uint32_t id);

size_t bpt_graph_n_tasks(const bpt_graph *g);

/** @return measured nanoseconds of task @p id in the last run, at least 1; 0 if it did not run. Of
 * an event: from its start to its end, or that of its start function if it was completed earlier; 0
 * if the run failed before its end */
uint64_t bpt_graph_measured(const bpt_graph *g, uint32_t id);

/** @return nanoseconds of the longest path by the measured times of the last run: with any number
 * of workers it could not have been shorter; not while the graph runs */
uint64_t bpt_graph_measured_path(bpt_graph *g);

#endif
