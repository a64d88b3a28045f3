/** @file scheduler/pool_private.h
 * What a pool is made of, for the sources of scheduler/ only.
 *
 * Every worker has a queue of ready tasks. What a worker makes ready it keeps (the data are in its
 * cache), unless the policy places tasks (place.c); a worker without tasks, or with much less
 * urgent ones, takes the one of greatest key that is queued anywhere, if the policy lets it; if
 * there is none it sleeps. Workers do not know where a run begins and ends: only worker 0 does,
 * which stays in the loop until no task remains. So a run in which only worker 0 finds work wakes
 * nobody.
 *
 * No wake-up is lost: who adds tasks first writes `best` of the queue, then reads `n_idle`; who
 * goes to sleep first writes `n_idle`, then reads every `best`. All four are sequentially
 * consistent, so one of the two sees the other. The same holds for `remaining` and worker 0.
 *
 * Lock order: bpt_graph.lock, then one of bpt__ready.lock and bpt_pool.lock. */
#ifndef BPT_SCHEDULER_POOL_PRIVATE_H
#define BPT_SCHEDULER_POOL_PRIVATE_H

#include "scheduler/cores.h"
#include "scheduler/graph_private.h"
#include "scheduler/pool.h"
#include "scheduler/ready.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct bpt__worker {
    _Alignas(64) bpt__ready ready;
    bpt_pool *pool;
    unsigned index;
    pthread_t thread;    /* but for worker 0 */
    pthread_cond_t wake; /* with pool->lock */
    bool asleep;         /* guarded by pool->lock */
    /* Of the current run; own lines, since they change with each task. Others read them once
     * `remaining` tells that the run is over. */
    _Alignas(64) uint64_t n_done; /* tasks over that `remaining` still counts */
    uint64_t n_run;
    uint64_t n_stolen;
    uint64_t busy_ns;
    uint64_t ended_ns; /* when its last task ended, maybe before this run */
    bpt_trace *trace;  /* NULL: nothing is recorded */
} bpt__worker;

struct bpt_pool {
    /* Read for every task, and written between runs only. */
    unsigned n_workers;
    bool places;            /* whether the policy is asked where a task goes */
    _Atomic bool cancelled; /* written under graph->lock, once a run */
    bpt__worker *workers;   /* [n_workers] */
    const bpt_policy *policy;
    uint64_t begin_ns;   /* of the current run */
    bpt_graph *graph;    /* of the current run; no worker holds a task when it is written */
    bpt_load *loads;     /* [n_workers] kept only for a policy that places tasks */
    bpt_machine machine; /* workers that are alike */
    void (*on_start)(unsigned worker);
    bpt__cores *cores; /* NULL unless workers are bound */

    _Alignas(64) pthread_mutex_t lock; /* guards idle, asleep, n_started and stopping */
    bpt__worker **idle; /* [n_workers] the first n_idle sleep; the last one to go wakes first */
    _Atomic unsigned n_idle;
    unsigned n_started;
    bool stopping;

    _Alignas(64) _Atomic uint64_t n_placed;  /* tasks that were placed in the current run */
    bpt_error error;                         /* guarded by graph->lock: why it was cancelled */
    _Alignas(64) _Atomic uint64_t remaining; /* tasks that are not over */
    /* The greatest key that is queued, more or less: raised by who adds tasks, put right by who
     * looked at all queues. Only a hint, so that busy workers need not look at them. */
    _Alignas(64) _Atomic uint64_t urgent;
};

/** Runs tasks on the calling thread: worker 0 until the run is over, the others until the pool
 * stops. (run.c) */
void bpt__worker_loop(bpt__worker *w);

/** Sleeps until there may be something to do; returns at once if there already is.
 * @return false if the pool stops */
bool bpt__worker_sleep(bpt__worker *w);

/** Tells busy workers that a task of such a key is queued. */
static inline void bpt__pool_announce(bpt_pool *pool, uint64_t key) {
    if (key > atomic_load_explicit(&pool->urgent, memory_order_relaxed))
        atomic_store_explicit(&pool->urgent, key, memory_order_relaxed);
}

/** Wakes up to @p n sleeping workers. */
void bpt__pool_wake(bpt_pool *pool, unsigned n);

/** Wakes a worker for what was put into the queue of @p w: @p w, or, if that is awake and with
 * @p or_other, another one that may take it. */
void bpt__pool_wake_for(bpt_pool *pool, bpt__worker *w, bool or_other);

/** Wakes worker 0, if it sleeps, to see that the run is over. */
void bpt__pool_wake_caller(bpt_pool *pool);

/** Puts a ready task into the queue that the policy names. For policies that place. (place.c)
 * @param maker_takes whether this thread is worker @p maker and takes its next task at once */
void bpt__place(bpt_pool *pool, bpt__task *task, unsigned maker, bool maker_takes);

/** Releases the successors of a task that is over and places those that are ready. (place.c)
 * @param maker_takes as for bpt__place() */
void bpt__place_successors(bpt_pool *pool, const bpt__task *task, unsigned maker, bool maker_takes);

/** Keeps the load of a worker around a task that it took from the queue of @p from. (place.c) */
void bpt__place_begin(bpt__worker *w, const bpt__worker *from, const bpt__task *task);
void bpt__place_end(bpt__worker *w);

#endif
