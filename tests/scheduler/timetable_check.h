/** @file tests/scheduler/timetable_check.h
 * What every timetable must keep, whoever made it.
 *
 * Threads: one. */
#ifndef BPT_TESTS_TIMETABLE_CHECK_H
#define BPT_TESTS_TIMETABLE_CHECK_H

#include "scheduler/timetable.h"

/** Asserts that every task takes its cost on its worker, after its predecessors and what they
 * transfer, alone on that worker, and that sums and end agree. */
void timetable_check(const bpt_graph *g, const bpt_machine *m, const bpt_timetable *t);

#endif
