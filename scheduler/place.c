/* What a pool does for policies that say into whose queue a task goes when it becomes ready. */
#include "base/clock.h"
#include "scheduler/load.h"
#include "scheduler/pool_private.h"

static uint64_t cost_of(const bpt_pool *pool, const bpt__task *task) {
    const bpt_graph *const g = pool->graph;
    return bpt_machine_cost(&pool->machine, g, (uint32_t)(task - g->tasks), 0);
}

void bpt__place(bpt_pool *pool, bpt__task *task, unsigned maker, bool maker_takes) {
    const bpt_policy_view view = {
        .graph = pool->graph,
        .machine = &pool->machine,
        .loads = pool->loads,
        .begin_ns = pool->begin_ns,
        .now_ns = bpt_clock_ns(),
    };
    const uint32_t id = (uint32_t)(task - pool->graph->tasks);
    bpt__worker *const w = &pool->workers[pool->policy->place(&view, id, maker)];
    const uint64_t n = atomic_fetch_add_explicit(&pool->n_placed, 1, memory_order_relaxed);
    if (!pool->policy->keys) task->key = UINT64_MAX - n;
    bpt__load_give(&pool->loads[w->index], cost_of(pool, task));
    /* What a worker gives itself it takes next: nobody else need come for it. */
    const bool own = maker_takes && w->index == maker && atomic_load(&w->ready.best) == 0;
    const uint64_t key = task->key;
    bpt__ready_push(&w->ready, task);
    bpt__pool_announce(pool, key);
    bpt__pool_wake_for(pool, w, !own);
}

void bpt__place_successors(bpt_pool *pool, const bpt__task *task, unsigned maker,
                           bool maker_takes) {
    bpt_graph *const g = pool->graph;
    const uint32_t *const successors = &g->successors[task->first_successor];
    bpt__task *heap = NULL;
    for (uint32_t i = 0; i < task->n_successors; i++) {
        bpt__task *const ready = &g->tasks[successors[i]];
        /* Acquires what the other predecessors did, for whoever is last. */
        if (atomic_fetch_sub_explicit(&ready->pending, 1, memory_order_acq_rel) != 1) continue;
        if (!pool->policy->keys) ready->key = 1; /* until it is placed, equal: the lower id first */
        heap = bpt__heap_meld(heap, ready);
    }
    while (heap) bpt__place(pool, bpt__heap_pop(&heap), maker, maker_takes);
}

void bpt__place_begin(bpt__worker *w, const bpt__worker *from, const bpt__task *task) {
    bpt_pool *const pool = w->pool;
    const uint64_t cost_ns = cost_of(pool, task);
    bpt__load_take(&pool->loads[from->index], cost_ns);
    bpt__load_run(&pool->loads[w->index], bpt_clock_ns() + cost_ns);
}

void bpt__place_end(bpt__worker *w) {
    bpt__load_run(&w->pool->loads[w->index], 0);
}
