/* One run: workers take ready tasks, run them, and release their successors.
 *
 * A failure does not tear the run down; it makes it drain. Every task still becomes ready and is
 * taken in its turn, but its body is not called any more, and events are over without having been
 * completed. So there is one way for a run to end, and the state after it is always the same. */
#include "base/clock.h"
#include "scheduler/load.h"
#include "scheduler/pool_private.h"

#include <assert.h>

/* Queues a heap of tasks and wakes up to @p n workers for them. */
static void queue(bpt__worker *w, bpt__task *heap, unsigned n) {
    const uint64_t key = heap->key; /* once it is queued, another may run it */
    bpt__ready_push(&w->ready, heap);
    bpt__pool_announce(w->pool, key);
    bpt__pool_wake(w->pool, n);
}

/* Releases the successors of a task that is over into the queue of @p w, for a policy that leaves
 * them there.
 * @return the one of those made ready that runs first, kept out of the queue; NULL if none was */
static bpt__task *release(bpt__worker *w, const bpt__task *task) {
    bpt_graph *const g = w->pool->graph;
    const uint32_t *const successors = &g->successors[task->first_successor];
    bpt__task *first = NULL;
    bpt__task *others = NULL;
    unsigned n_others = 0;
    for (uint32_t i = 0; i < task->n_successors; i++) {
        bpt__task *ready = &g->tasks[successors[i]];
        /* Acquires what the other predecessors did, for whoever is last. */
        if (atomic_fetch_sub_explicit(&ready->pending, 1, memory_order_acq_rel) != 1) continue;
        if (first && bpt__task_precedes(first, ready)) {
            others = bpt__heap_meld(others, ready);
            n_others++;
        } else {
            n_others += first != NULL;
            others = bpt__heap_meld(others, first);
            first = ready;
        }
    }
    if (others) queue(w, others, n_others);
    return first;
}

/* Counts @p n tasks as over. The caller must not touch the graph after it, unless it holds
 * graph->lock: the run may end here. */
static void count_over(bpt_pool *pool, uint64_t n) {
    if (atomic_fetch_sub(&pool->remaining, n) == n) bpt__pool_wake_caller(pool);
}

/* Ends an event from a thread that may be no worker. Its home may be deep in another task, so
 * others are woken for what it releases. Under graph->lock. */
static void end_event(bpt_pool *pool, const bpt__task *event) {
    bpt__worker *const home = &pool->workers[event->home];
    if (pool->places) {
        bpt__place_successors(pool, event, event->home, false);
    } else {
        bpt__task *const first = release(home, event);
        if (first) queue(home, first, 1);
    }
    count_over(pool, 1);
}

/* Cancels the run for this thread's last error, if it is the first one. Under graph->lock. */
static void cancel(bpt_pool *pool) {
    bpt_graph *const g = pool->graph;
    if (atomic_load_explicit(&pool->cancelled, memory_order_relaxed)) return;
    bpt_error_get(&pool->error);
    atomic_store_explicit(&pool->cancelled, true, memory_order_relaxed);
    for (size_t i = 0; i < g->n_tasks; i++) {
        bpt__task *const task = &g->tasks[i];
        const uint8_t state = atomic_load_explicit(&task->state, memory_order_relaxed);
        if (!(state & BPT__EVENT)) continue;
        const uint8_t before =
            atomic_fetch_or_explicit(&task->state, BPT__COMPLETED, memory_order_acq_rel);
        if ((before & (BPT__STARTED | BPT__COMPLETED)) != BPT__STARTED) continue;
        task->measured_ns = 0;
        end_event(pool, task);
    }
}

/* Makes sure that this thread's last error is the one of @p status: a task may return a status
 * without having said why. */
static void explain(const bpt_graph *g, const bpt__task *task, bpt_status status) {
    if (bpt_error_last()->status == status) return;
    const size_t id = (size_t)(task - g->tasks);
    const bpt_task_info info = g->plans[id].info;
    bpt_error_record(status, "task %zu, %s %s: %s", id, info.kind ? info.kind : "of unknown kind",
                     info.label ? info.label : "", bpt_status_text(status));
}

static void call(bpt__worker *w, bpt__task *task) {
    bpt_graph *const g = w->pool->graph;
    const uint64_t begin = bpt_clock_ns();
    const bpt_status status = task->fn ? task->fn(task->arg, w->index) : BPT_OK;
    const uint64_t end = bpt_clock_ns();
    w->n_run++;
    w->ended_ns = end;
    w->busy_ns += end - begin;
    if (w->trace) {
        const size_t id = (size_t)(task - g->tasks);
        bpt_trace_add(w->trace, w->index, g->plans[id].info, id, begin, end);
    }
    /* 0 means that the task did not run, and a clock may be coarse. */
    task->measured_ns = end > begin ? end - begin : 1;
    if (status == BPT_OK) return;
    explain(g, task, status);
    pthread_mutex_lock(&g->lock);
    cancel(w->pool);
    pthread_mutex_unlock(&g->lock);
}

/* @return whether the event is over; if it is not, it must not be touched any more */
static bool start_event(bpt__worker *w, bpt__task *event) {
    const uint64_t spent = event->measured_ns;
    event->home = (uint8_t)w->index;
    event->measured_ns = bpt_clock_ns() - spent;
    const uint8_t before =
        atomic_fetch_or_explicit(&event->state, BPT__STARTED, memory_order_acq_rel);
    if (!(before & BPT__COMPLETED)) return false;
    const bool cancelled = atomic_load_explicit(&w->pool->cancelled, memory_order_relaxed);
    event->measured_ns = cancelled ? 0 : spent;
    return true;
}

/* @return the task to run next, if it is known */
static bpt__task *execute(bpt__worker *w, bpt__task *task) {
    bpt_pool *const pool = w->pool;
    if (!atomic_load_explicit(&pool->cancelled, memory_order_relaxed)) call(w, task);
    if (pool->places) bpt__place_end(w);
    if (atomic_load_explicit(&task->state, memory_order_relaxed) & BPT__EVENT &&
        !start_event(w, task))
        return NULL;
    if (pool->places) {
        bpt__place_successors(pool, task, w->index, true);
        w->n_done++;
        return NULL;
    }
    bpt__task *const next = release(w, task);
    w->n_done++;
    return next ? bpt__ready_exchange(&w->ready, next) : NULL;
}

/* Takes the task of greatest key that any other worker has queued.
 * @param least what its key must exceed
 * @param[out] from whose queue it was in
 * @return NULL if there is none */
static bpt__task *steal(bpt__worker *w, uint64_t least, bpt__worker **from) {
    bpt_pool *const pool = w->pool;
    if (pool->policy->stealing == BPT_STEAL_NEVER) return NULL;
    for (;;) {
        bpt__worker *victim = NULL;
        uint64_t best = least;
        for (unsigned i = 1; i < pool->n_workers; i++) {
            bpt__worker *const other = &pool->workers[(w->index + i) % pool->n_workers];
            const uint64_t key = atomic_load_explicit(&other->ready.best, memory_order_relaxed);
            if (key > best) {
                best = key;
                victim = other;
            }
        }
        if (!victim) return NULL;
        bpt__task *const task = bpt__ready_pop(&victim->ready);
        if (!task) continue; /* someone else was quicker */
        w->n_stolen++;
        *from = victim;
        return task;
    }
}

/* Lets a worker put off its own best task for a much more urgent one of another.
 * @return the one to run now; the other one is queued */
static bpt__task *prefer_urgent(bpt__worker *w, bpt__task *task, bpt__worker **from) {
    bpt_pool *const pool = w->pool;
    const uint64_t ns = w->ended_ns > pool->begin_ns ? w->ended_ns - pool->begin_ns : 0;
    const uint64_t least = bpt_patience_least(pool->graph->patience, ns, task->key);
    if (atomic_load_explicit(&pool->urgent, memory_order_relaxed) <= least) return task;
    bpt__task *const better = steal(w, least, from);
    if (!better) {
        /* Nothing that urgent is queued any more. */
        atomic_store_explicit(&pool->urgent, least, memory_order_relaxed);
        return task;
    }
    bpt__ready_push(&w->ready, task);
    bpt__pool_wake(pool, 1);
    return better;
}

/* @param own the task that the worker would go on with, NULL: the best of its queue */
static bpt__task *take(bpt__worker *w, bpt__task *own) {
    bpt__worker *from = w;
    bpt__task *task = own ? own : bpt__ready_pop(&w->ready);
    task = task ? prefer_urgent(w, task, &from) : steal(w, 0, &from);
    if (task && w->pool->places) bpt__place_begin(w, from, task);
    return task;
}

void bpt__worker_loop(bpt__worker *w) {
    bpt_pool *const pool = w->pool;
    bpt__task *task = NULL;
    for (;;) {
        task = take(w, task);
        if (task) {
            task = execute(w, task);
            continue;
        }
        /* Told late, so that busy workers do not pull at one counter. */
        const uint64_t n_done = w->n_done;
        w->n_done = 0;
        if (n_done) count_over(pool, n_done);
        if (w->index == 0 && atomic_load(&pool->remaining) == 0) return;
        if (!bpt__worker_sleep(w)) return;
    }
}

/* Deals the tasks that wait for none to the workers, best first. */
static void deal_roots(bpt_pool *pool, const bpt_graph *g) {
    if (pool->places) {
        for (size_t i = 0; i < g->n_roots; i++) {
            const unsigned maker = (unsigned)(i % pool->n_workers);
            bpt__place(pool, g->roots[i], maker, maker == 0);
        }
        return;
    }
    for (unsigned i = 0; i < pool->n_workers && i < g->n_roots; i++) {
        bpt__task *heap = NULL;
        const size_t last = i + (g->n_roots - 1 - i) / pool->n_workers * pool->n_workers;
        for (size_t k = last + pool->n_workers; k > i; k -= pool->n_workers)
            heap = bpt__heap_meld(heap, g->roots[k - pool->n_workers]);
        bpt__ready_push(&pool->workers[i].ready, heap);
    }
    if (g->n_roots) bpt__pool_announce(pool, g->roots[0]->key);
    if (g->n_roots > 1) {
        const size_t n = g->n_roots - 1;
        bpt__pool_wake(pool, n < pool->n_workers ? (unsigned)n : pool->n_workers);
    }
}

static void begin_run(bpt_pool *pool, bpt_graph *g) {
    pool->begin_ns = bpt_clock_ns();
    bpt__graph_prepare(g, pool->policy, &pool->machine);
    bpt__graph_reset(g);
    for (unsigned i = 0; i < pool->n_workers; i++) {
        bpt__worker *const w = &pool->workers[i];
        w->n_run = w->n_stolen = w->busy_ns = 0;
        bpt__load_clear(&pool->loads[i]);
    }
    atomic_store_explicit(&pool->n_placed, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->urgent, 0, memory_order_relaxed);
    pool->graph = g;
    atomic_store_explicit(&pool->cancelled, false, memory_order_relaxed);
    atomic_store(&pool->remaining, g->n_tasks);
    pthread_mutex_lock(&g->lock);
    g->pool = pool;
    atomic_fetch_add_explicit(&g->run, 1, memory_order_relaxed);
    pthread_mutex_unlock(&g->lock);
}

static void end_run(bpt_pool *pool, bpt_graph *g) {
    /* Waits for a thread that is still inside of bpt_graph_complete(), and lets in no other. */
    pthread_mutex_lock(&g->lock);
    g->pool = NULL;
    pthread_mutex_unlock(&g->lock);
    pool->graph = NULL;
}

bpt_status bpt_pool_run(bpt_pool *pool, bpt_graph *g, bpt_run_stats *stats) {
    assert(!pool->graph && !g->pool);
    begin_run(pool, g);
    deal_roots(pool, g);
    bpt__worker_loop(&pool->workers[0]);
    end_run(pool, g);
    if (stats) {
        *stats = (bpt_run_stats){.wall_ns = bpt_clock_ns() - pool->begin_ns};
        for (unsigned i = 0; i < pool->n_workers; i++) {
            stats->busy_ns += pool->workers[i].busy_ns;
            stats->n_tasks += pool->workers[i].n_run;
            stats->n_stolen += pool->workers[i].n_stolen;
        }
    }
    return pool->cancelled ? bpt_error_put(&pool->error) : BPT_OK;
}

/* Under g->lock, in the right run. */
static bpt_status complete(bpt_graph *g, uint32_t id, bpt_status status) {
    bpt_pool *const pool = g->pool;
    bpt__task *const event = &g->tasks[id];
    const uint8_t before =
        atomic_fetch_or_explicit(&event->state, BPT__COMPLETED, memory_order_acq_rel);
    if (before & BPT__COMPLETED) {
        if (atomic_load_explicit(&pool->cancelled, memory_order_relaxed)) return BPT_OK;
        return bpt_fail(BPT_EUSAGE, "event %u was completed twice in one run", id);
    }
    if (status != BPT_OK) {
        explain(g, event, status);
        cancel(pool);
    }
    if (before & BPT__STARTED) {
        event->measured_ns = bpt_clock_ns() - event->measured_ns;
        end_event(pool, event);
    }
    return BPT_OK;
}

bpt_status bpt_graph_complete(bpt_graph *g, uint64_t run, uint32_t id, bpt_status status) {
    bpt_status result;
    pthread_mutex_lock(&g->lock);
    if (!g->pool || run != bpt_graph_run_number(g))
        result = bpt_fail(BPT_EUSAGE, "event %u was completed outside of its run %llu", id,
                          (unsigned long long)run);
    else if (id >= g->n_tasks || !(atomic_load(&g->tasks[id].state) & BPT__EVENT))
        result = bpt_fail(BPT_EUSAGE, "task %u is no event to complete", id);
    else
        result = complete(g, id, status);
    pthread_mutex_unlock(&g->lock);
    return result;
}
