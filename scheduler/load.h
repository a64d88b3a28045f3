/** @file scheduler/load.h
 * Keeps the loads that policies look at, alike for the pool and the simulator.
 *
 * Threads: any; sums are exact once all who write are done. */
#ifndef BPT_SCHEDULER_LOAD_H
#define BPT_SCHEDULER_LOAD_H

#include "scheduler/policy.h"

/** Task of @p cost_ns goes into the worker's queue. */
static inline void bpt__load_give(bpt_load *load, uint64_t cost_ns) {
    atomic_fetch_add_explicit(&load->queued_ns, cost_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&load->assigned_ns, cost_ns, memory_order_relaxed);
}

/** It leaves that queue. */
static inline void bpt__load_take(bpt_load *load, uint64_t cost_ns) {
    atomic_fetch_sub_explicit(&load->queued_ns, cost_ns, memory_order_relaxed);
}

/** The worker begins a task that should end at @p until_ns; 0: it has ended. */
static inline void bpt__load_run(bpt_load *load, uint64_t until_ns) {
    atomic_store_explicit(&load->until_ns, until_ns, memory_order_relaxed);
}

static inline void bpt__load_clear(bpt_load *load) {
    atomic_store_explicit(&load->until_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&load->queued_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&load->assigned_ns, 0, memory_order_relaxed);
}

/** @return the longest transfer of an input of task @p id to @p worker; its predecessors are over
 */
uint64_t bpt__transfer(const bpt_policy_view *v, uint32_t id, unsigned worker);

/** @return the worker that should end task @p id first, after all it was given before; @p maker
 * unless another is better: one of its kind by more than the gain that the graph's patience asks
 * for; the first among equals. For bpt_policy.place */
unsigned bpt__earliest_finish(const bpt_policy_view *v, uint32_t id, unsigned maker);

#endif
