/** @file scheduler/heft.h
 * HEFT with insertion (Topcuoglu, Hariri, Wu 2002, figure 2): a whole timetable beforehand, for
 * unlike workers and known costs. What policies that decide during the run can be held against.
 *
 * Threads: any, each with a graph of its own. */
#ifndef BPT_SCHEDULER_HEFT_H
#define BPT_SCHEDULER_HEFT_H

#include "scheduler/timetable.h"

/** Goes through the tasks by upward rank with mean costs and transfers (bpt_machine_ranks()); each
 * goes to the worker on which it ends first, into a gap between tasks too if it fits, the first
 * such worker among equals. A transfer begins when the task that makes the result ends. Takes
 * O(n_tasks^2) at worst.
 * @param[out] t caller owns, bpt_timetable_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_heft(const bpt_graph *g, const bpt_machine *m, bpt_timetable *t);

#endif
