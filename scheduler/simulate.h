/** @file scheduler/simulate.h
 * Plays a run of a graph with given costs, on workers that need not exist: what a policy would do
 * on 64 cores, or on 16 and a device. The same row of functions decides here and in the pool.
 *
 * A model: a task takes exactly its cost, deciding takes no time, and what happens at one instant
 * happens in the order of the workers. A task that is given to a worker of another kind than one of
 * its predecessors begins no sooner than the longest such transfer after that moment; transfers do
 * not hinder each other, and the worker waits for them. An external event is played as a task.
 *
 * Threads: one thread at a time may use a given graph, which must not be running. No clock, no
 * threads: the same input gives the same timetable. */
#ifndef BPT_SCHEDULER_SIMULATE_H
#define BPT_SCHEDULER_SIMULATE_H

#include "scheduler/policy.h"
#include "scheduler/timetable.h"

/** Plays one run. No task is called; costs, edges and measurements of @p g stay as they are.
 * @param[out] t caller owns, bpt_timetable_free()
 * @return BPT_OK, BPT_EUSAGE (number of workers or kinds out of range), BPT_ENOMEM */
bpt_status bpt_simulate(bpt_graph *g, const bpt_machine *m, const bpt_policy *policy,
                        bpt_timetable *t);

#endif
