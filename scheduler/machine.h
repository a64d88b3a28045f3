/** @file scheduler/machine.h
 * What tasks and transfers cost on workers that may be unlike: plain numbers that a policy plans
 * with. The workers of a kind share one memory, kinds do not.
 *
 * Threads: any; nothing here changes. */
#ifndef BPT_SCHEDULER_MACHINE_H
#define BPT_SCHEDULER_MACHINE_H

#include "scheduler/graph.h"

#include <stdint.h>

/** All arrays are borrowed. Zero-initialised but for n_workers and n_kinds = 1: workers that are
 * alike. */
typedef struct bpt_machine {
    unsigned n_workers;   /* in [1, BPT_MAX_WORKERS] */
    unsigned n_kinds;     /* in [1, n_workers] */
    const uint8_t *kind;  /* shape [n_workers], below n_kinds; NULL: all are 0 */
    const double *speed;  /* shape [n_kinds], > 0: a task takes its cost / speed; NULL: all 1 */
    uint64_t transfer_ns; /* of a task's result to a successor on another kind of worker */
    /* In place of the graph's costs and speed, shape [n_tasks][n_kinds]; NULL: those hold. */
    const uint64_t *cost_ns;
    /* In place of transfer_ns: of every edge, in the order in which bpt_graph_add() was given
     * them, shape [n_edges]; NULL: transfer_ns for all. */
    const uint64_t *edge_ns;
} bpt_machine;

/** What moving a task to another core's cache costs at least, nanoseconds. */
enum { BPT_MOVE_NS = 20000 };

/** By how much a task must be more urgent, or end sooner, to be worth a move to the cache of
 * another worker that has tasks of its own. */
typedef struct bpt_patience {
    uint64_t gain_ns;  /* at least BPT_MOVE_NS; UINT64_MAX: nothing is worth it */
    uint64_t until_ns; /* for so long from the begin of a run, and BPT_MOVE_NS from then on */
} bpt_patience;

/** Nothing is ever worth a move. */
#define BPT_PATIENCE_ENDLESS ((bpt_patience){UINT64_MAX, UINT64_MAX})

/** @return nanoseconds that a move must gain, so long after the begin of a run */
static inline uint64_t bpt_patience_gain(bpt_patience p, uint64_t ns) {
    return ns < p.until_ns ? p.gain_ns : BPT_MOVE_NS;
}

/** @return what the key of another task must exceed, so that it is run before one of @p key */
static inline uint64_t bpt_patience_least(bpt_patience p, uint64_t ns, uint64_t key) {
    const uint64_t gain_ns = bpt_patience_gain(p, ns);
    return key > UINT64_MAX - gain_ns ? UINT64_MAX : key + gain_ns;
}

/** @return the kind of a worker */
static inline unsigned bpt_machine_kind(const bpt_machine *m, unsigned worker) {
    return m->kind ? m->kind[worker] : 0;
}

/** @return expected nanoseconds of task @p id on a worker of @p kind, at least 1; an unknown cost
 * counts as 1 ns */
uint64_t bpt_machine_cost(const bpt_machine *m, const bpt_graph *g, uint32_t id, unsigned kind);

/** Writes upward ranks as HEFT has them for unlike workers (Topcuoglu, Hariri, Wu 2002, eq. 5): the
 * mean cost over all workers, plus the largest sum of a transfer between kinds and rank of a
 * successor. The equation has the mean over all pairs of workers there, of which those of one kind
 * transfer nothing: the same where every worker is of a kind of its own.
 * @param[out] rank shape [n_tasks], at least 1 each */
void bpt_machine_ranks(const bpt_machine *m, const bpt_graph *g, uint64_t *rank);

/** Writes keys for queues: upward ranks, transfers counted; but siblings, tasks behind the same
 * one, are kept together where the graph as a whole has time. They read what it wrote, and the one
 * that is put off finds it in no cache any more. Where workers are alike and each has twice as much
 * work as the longest path is long, a task's key is nearly the greatest rank behind the predecessor
 * that should end last, in the order of their ranks among siblings; with less work it lies between
 * that and its own rank, and with no more than the path it is the rank. Roots keep their ranks. At
 * worst a run ends later by the longest path than by ranks alone. Unknown costs count as 1 ns, as
 * ever: then the numbers of tasks decide.
 * @param[out] key shape [n_tasks], at least 1 each
 * @return the patience that goes with them: BPT_MOVE_NS, and where workers are alike and each has
 * more than four times as much work as the path is long, so that no task is late for long, up to
 * the length of that path more; until three quarters of the run are over, if its work is shared
 * evenly */
bpt_patience bpt_machine_keys(const bpt_machine *m, const bpt_graph *g, uint64_t *key);

#endif
