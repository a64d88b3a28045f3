/** @file scheduler/timetable.h
 * When and on which worker each task of a graph runs: what the simulator and HEFT compute.
 *
 * Threads: one at a time. */
#ifndef BPT_SCHEDULER_TIMETABLE_H
#define BPT_SCHEDULER_TIMETABLE_H

#include "scheduler/machine.h"

#include <stdint.h>

typedef struct bpt_timetable {
    uint64_t makespan_ns; /* the end of the last task */
    uint64_t *begin_ns;   /* shape [n_tasks], from 0 */
    uint64_t *end_ns;     /* shape [n_tasks] */
    uint8_t *worker;      /* shape [n_tasks] */
    uint64_t *busy_ns;    /* shape [n_workers]: sum of the costs of its tasks */
} bpt_timetable;

/** @param[out] t room for the tasks of @p g and the workers of @p m, all zero; caller owns,
 * bpt_timetable_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_timetable_create(const bpt_graph *g, const bpt_machine *m, bpt_timetable *t);
void bpt_timetable_free(bpt_timetable *t);

#endif
