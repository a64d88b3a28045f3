#include "scheduler/graph.h"

#include "base/memory.h"
#include "scheduler/graph_private.h"
#include "scheduler/ready.h"

#include <assert.h>

bpt_status bpt_graph_create(size_t max_tasks, size_t max_edges, bpt_graph **out) {
    if (max_tasks < 1 || max_tasks > INT32_MAX)
        return bpt_fail(BPT_EUSAGE, "graph of %zu tasks: allowed are 1 to 2^31-1", max_tasks);
    if (max_edges > UINT32_MAX)
        return bpt_fail(BPT_EUSAGE, "graph of %zu edges: allowed are 0 to 2^32-1", max_edges);
    bpt_graph *g;
    bpt_status status;
    BPT_TRY(BPT_NEW("graph", 1, &g));
    pthread_mutex_init(&g->lock, NULL);
    BPT_TRY_GOTO(status, BPT_NEW("graph tasks", max_tasks, &g->tasks), free_graph);
    BPT_TRY_GOTO(status, BPT_NEW("graph plans", max_tasks, &g->plans), free_graph);
    BPT_TRY_GOTO(status, BPT_NEW("graph edges", max_edges, &g->before), free_graph);
    BPT_TRY_GOTO(status, BPT_NEW("graph edges", max_edges, &g->successors), free_graph);
    BPT_TRY_GOTO(status, BPT_NEW("graph roots", max_tasks, &g->roots), free_graph);
    BPT_TRY_GOTO(status, BPT_NEW("graph keys", max_tasks, &g->keys), free_graph);
    g->max_tasks = max_tasks;
    g->max_edges = max_edges;
    *out = g;
    return BPT_OK;

free_graph:
    bpt_graph_free(g);
    return status;
}

void bpt_graph_free(bpt_graph *g) {
    if (!g) return;
    assert(!g->pool);
    pthread_mutex_destroy(&g->lock);
    bpt_free(g->keys);
    bpt_free(g->roots);
    bpt_free(g->successors);
    bpt_free(g->before);
    bpt_free(g->plans);
    bpt_free(g->tasks);
    bpt_free(g);
}

static bpt_status check_room(const bpt_graph *g, const uint32_t *after, size_t n_after) {
    for (size_t i = 0; i < n_after; i++)
        if (after[i] >= g->n_tasks)
            return bpt_fail(BPT_EUSAGE, "task %zu after task %u, which does not exist", g->n_tasks,
                            after[i]);
    if (g->n_tasks == g->max_tasks)
        return bpt_fail(BPT_EFULL, "graph: its %zu tasks are used up", g->max_tasks);
    if (n_after > g->max_edges - g->n_edges)
        return bpt_fail(BPT_EFULL, "graph: %zu of %zu edges are used, %zu more are too many",
                        g->n_edges, g->max_edges, n_after);
    return BPT_OK;
}

static bpt_status add(bpt_graph *g, uint8_t state, bpt_task_fn fn, void *arg, bpt_task_info info,
                      uint64_t cost_ns, const uint32_t *after, size_t n_after, uint32_t *id) {
    assert(!g->pool);
    BPT_TRY(check_room(g, after, n_after));
    bpt__task *const task = &g->tasks[g->n_tasks];
    task->fn = fn;
    task->arg = arg;
    atomic_init(&task->state, state);
    g->plans[g->n_tasks] = (bpt__plan){.info = info,
                                       .cost_ns = cost_ns,
                                       .first_before = (uint32_t)g->n_edges,
                                       .n_before = (uint32_t)n_after};
    for (size_t i = 0; i < n_after; i++) {
        g->before[g->n_edges++] = after[i];
        g->tasks[after[i]].n_successors++;
    }
    g->edges_changed = true;
    g->keyed_for = NULL;
    *id = (uint32_t)g->n_tasks++;
    return BPT_OK;
}

bpt_status bpt_graph_add(bpt_graph *g, bpt_task_fn fn, void *arg, bpt_task_info info,
                         uint64_t cost_ns, const uint32_t *after, size_t n_after, uint32_t *id) {
    return add(g, 0, fn, arg, info, cost_ns, after, n_after, id);
}

bpt_status bpt_graph_add_event(bpt_graph *g, bpt_task_fn start, void *arg, bpt_task_info info,
                               uint64_t cost_ns, const uint32_t *after, size_t n_after,
                               uint32_t *id) {
    return add(g, BPT__EVENT, start, arg, info, cost_ns, after, n_after, id);
}

void bpt_graph_set_cost(bpt_graph *g, uint32_t id, uint64_t cost_ns) {
    assert(id < g->n_tasks && !g->pool);
    if (g->plans[id].cost_ns == cost_ns) return;
    g->plans[id].cost_ns = cost_ns;
    g->keyed_for = NULL;
}

uint64_t bpt_graph_cost(const bpt_graph *g, uint32_t id) {
    assert(id < g->n_tasks);
    return g->plans[id].cost_ns;
}

/* Rows of successors from rows of predecessors. Each row is filled from its end, by tasks from last
 * to first, so it ends up in the order of ids and first_successor at its begin. */
static void turn_edges(bpt_graph *g) {
    uint32_t end = 0;
    for (size_t i = 0; i < g->n_tasks; i++) {
        end += g->tasks[i].n_successors;
        g->tasks[i].first_successor = end;
    }
    for (size_t i = g->n_tasks; i-- > 0;) {
        const bpt__plan *const plan = &g->plans[i];
        for (uint32_t k = 0; k < plan->n_before; k++) {
            bpt__task *const before = &g->tasks[g->before[plan->first_before + k]];
            g->successors[--before->first_successor] = (uint32_t)i;
        }
    }
    g->edges_changed = false;
}

static void sort_roots(bpt_graph *g) {
    bpt__task *heap = NULL;
    for (size_t i = 0; i < g->n_tasks; i++)
        if (g->plans[i].n_before == 0) heap = bpt__heap_meld(heap, &g->tasks[i]);
    for (g->n_roots = 0; heap; g->n_roots++) g->roots[g->n_roots] = bpt__heap_pop(&heap);
}

static void set_keys(bpt_graph *g, const bpt_policy *policy, const bpt_machine *m) {
    g->patience = policy->keys ? policy->keys(m, g, g->keys) : BPT_PATIENCE_ENDLESS;
    for (size_t i = 0; i < g->n_tasks; i++) g->tasks[i].key = policy->keys ? g->keys[i] : 1;
}

void bpt__graph_prepare(bpt_graph *g, const bpt_policy *policy, const bpt_machine *m) {
    if (g->edges_changed) turn_edges(g);
    if (g->keyed_for == policy && g->keyed_workers == m->n_workers) return;
    set_keys(g, policy, m);
    sort_roots(g);
    g->keyed_for = policy;
    g->keyed_workers = m->n_workers;
}

void bpt__graph_reset(bpt_graph *g) {
    for (size_t i = 0; i < g->n_tasks; i++) {
        bpt__task *const task = &g->tasks[i];
        const uint8_t state = atomic_load_explicit(&task->state, memory_order_relaxed);
        atomic_store_explicit(&task->state, state & BPT__EVENT, memory_order_relaxed);
        atomic_store_explicit(&task->pending, g->plans[i].n_before, memory_order_relaxed);
        task->measured_ns = 0;
    }
}

size_t bpt_graph_n_tasks(const bpt_graph *g) {
    return g->n_tasks;
}

uint64_t bpt_graph_measured(const bpt_graph *g, uint32_t id) {
    assert(id < g->n_tasks);
    return g->tasks[id].measured_ns;
}

/* From first to last: the longest path that ends with each task. */
uint64_t bpt_graph_measured_path(bpt_graph *g) {
    uint64_t *const end = g->keys, longest = 0;
    for (size_t i = 0; i < g->n_tasks; i++) {
        const bpt__plan *const plan = &g->plans[i];
        uint64_t begin = 0;
        for (uint32_t k = 0; k < plan->n_before; k++) {
            const uint64_t before = end[g->before[plan->first_before + k]];
            if (begin < before) begin = before;
        }
        end[i] = begin + g->tasks[i].measured_ns;
        if (longest < end[i]) longest = end[i];
    }
    return longest;
}

uint64_t bpt_graph_run_number(const bpt_graph *g) {
    return atomic_load_explicit(&g->run, memory_order_relaxed);
}
