/** @file scheduler/graph_private.h
 * What a graph is made of, for the sources of scheduler/ only.
 *
 * Edges are stored twice, in compressed rows: predecessors as they were given, successors turned
 * round from them before a run. Everything that a run writes stands in the tasks, so that a run
 * needs no memory of its own, whatever the number of workers. */
#ifndef BPT_SCHEDULER_GRAPH_PRIVATE_H
#define BPT_SCHEDULER_GRAPH_PRIVATE_H

#include "scheduler/graph.h"
#include "scheduler/policy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/** Bits of a task's state. An event is over when STARTED and COMPLETED are both set: whoever sets
 * the second of them releases its successors. */
enum { BPT__EVENT = 1, BPT__STARTED = 2, BPT__COMPLETED = 4 };

/** The part of a task that a run touches: one cache line, so that neighbours do not disturb. */
typedef struct bpt__task {
    bpt_task_fn fn; /* may be NULL */
    void *arg;
    uint64_t key;              /* at least 1: of ready tasks the greatest runs first */
    uint64_t measured_ns;      /* of an event that has not ended: when it started */
    struct bpt__task *child;   /* links of a ready queue (scheduler/ready.h), NULL outside */
    struct bpt__task *sibling; /* of one */
    _Atomic uint32_t pending;  /* predecessors that are not over */
    uint32_t first_successor;
    uint32_t n_successors;
    _Atomic uint8_t state;
    uint8_t home; /* of an event: the worker that started it */
} bpt__task;

_Static_assert(sizeof(bpt__task) == 64, "a task is one cache line");

/** The part of a task that only building and planning touch. */
typedef struct bpt__plan {
    bpt_task_info info;
    uint64_t cost_ns;
    uint32_t first_before;
    uint32_t n_before; /* an id that was given twice counts twice here and in successors */
} bpt__plan;

struct bpt_graph {
    bpt__task *tasks;     /* [max_tasks] */
    bpt__plan *plans;     /* [max_tasks] */
    uint32_t *before;     /* [max_edges] ids, by task */
    uint32_t *successors; /* [max_edges] ids, by task */
    bpt__task **roots;    /* [max_tasks] tasks that wait for none, first to run first */
    uint64_t *keys;       /* [max_tasks] scratch of a policy */
    size_t n_tasks, max_tasks;
    size_t n_edges, max_edges;
    size_t n_roots;
    bool edges_changed; /* since successors were made */
    /* The policy that the keys in the tasks and the order of the roots are of, for alike workers;
     * NULL: of none, or costs or edges have changed. */
    const bpt_policy *keyed_for;
    unsigned keyed_workers; /* and so many of them */
    bpt_patience patience;  /* that goes with these keys (scheduler/policy.h) */

    pthread_mutex_t lock;  /* guards pool, the start of failures, and completion of events */
    struct bpt_pool *pool; /* the one that runs this graph now, or NULL */
    _Atomic uint64_t run;  /* number of the current or last run; written under lock */
};

/** Makes successors, keys and roots agree with what was added or set since the last call.
 * @param m of one kind of workers; who calls with another clears keyed_for afterwards */
void bpt__graph_prepare(bpt_graph *g, const bpt_policy *policy, const bpt_machine *m);

/** Puts every task into the state before a run. */
void bpt__graph_reset(bpt_graph *g);

#endif
