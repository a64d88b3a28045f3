/** @file tests/scheduler/random_dag.h
 * Random graphs whose tasks combine the values of their predecessors, so that a wrong order, a task
 * run twice or one left out shows in the values.
 *
 * Threads: one, but for what a run does inside. */
#ifndef BPT_TESTS_RANDOM_DAG_H
#define BPT_TESTS_RANDOM_DAG_H

#include "base/random.h"
#include "scheduler/graph.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { DAG_MAX_BEFORE = 6, DAG_NONE = -1 };

typedef struct dag dag;
typedef struct dag_task dag_task;

/** Told that the event of @p t has started; whoever takes it on calls dag_compute() and completes
 * it. */
typedef void (*dag_post_fn)(dag_task *t);

struct dag_task {
    dag *owner;
    uint32_t id;
    uint32_t n_before;
    uint32_t before[DAG_MAX_BEFORE]; /* may name one twice */
    uint32_t spin;                   /* loop turns: makes tasks unequal */
    uint64_t cost_ns;
    uint64_t value;       /* of the last run; 0: did not run */
    _Atomic uint32_t ran; /* how often in the last run */
};

struct dag {
    size_t n;
    dag_task *tasks; /* [n] */
    bpt_graph *graph;
    dag_post_fn post;      /* NULL: there are no events */
    int64_t fails;         /* id of the task that fails, DAG_NONE for none */
    _Atomic int too_early; /* tasks that saw a predecessor without a value */
};

/** Draws and builds a graph of @p n tasks; the caller frees it with dag_free(). Asserts on failure.
 * @param post  unless NULL, every third task or so is an event, which calls it when it starts */
void dag_create(dag *d, bpt_random *r, uint32_t n, dag_post_fn post);
void dag_free(dag *d);

/** Forgets the values of the last run. */
void dag_clear(dag *d);

/** What a task does: computes its value and counts. @return BPT_ENUMERIC if it was told to fail */
bpt_status dag_compute(dag_task *t);

/** @return what task @p id must compute, from the values of its predecessors */
uint64_t dag_expected(const dag *d, uint32_t id);

/** Asserts that every task ran once, after its predecessors, and computed what it must. */
void dag_check(const dag *d);

/** @return seed from BPT_TEST_SEED, else a new one, printed: that is how a failure is replayed */
uint64_t dag_seed(void);

#endif
