/* Graphs: the tasks of some phases, with the edges among them. */
#include "base/memory.h"
#include "inner/network/network_private.h"

#include <assert.h>

enum {
    FORWARD = BPT_PHASE_FORWARD | BPT_PHASE_TRAINING,
    COMPUTE = FORWARD | BPT_PHASE_LOSS | BPT_PHASE_BACKWARD,
};

static const unsigned phases_of[BPT_N_GRAPHS] = {
    [BPT_GRAPH_FORWARD] = FORWARD,
    [BPT_GRAPH_TRAIN] = COMPUTE | BPT_PHASE_UPDATE,
    [BPT_GRAPH_GRADIENT] = COMPUTE | BPT_PHASE_REDUCE,
    [BPT_GRAPH_APPLY] = BPT_PHASE_SQUARES | BPT_PHASE_APPLY,
    [BPT_GRAPH_EVALUATE] = BPT_PHASE_FORWARD | BPT_PHASE_INFERENCE | BPT_PHASE_LOSS,
    [BPT_GRAPH_EXPORT] = BPT_PHASE_EXPORT,
    [BPT_GRAPH_IMPORT] = BPT_PHASE_IMPORT,
    [BPT_GRAPH_EXPORT_FROZEN] = BPT_PHASE_EXPORT_FROZEN,
    [BPT_GRAPH_IMPORT_FROZEN] = BPT_PHASE_IMPORT_FROZEN,
};

static bool is_head(const bpt_network *net) {
    return net->model->role == BPT_MODEL_HEAD;
}

unsigned bpt__graph_phases(const bpt_network *net, bpt_graph_role role) {
    unsigned phases = phases_of[role];
    if (role == BPT_GRAPH_TRAIN && net->wants_norms)
        phases = COMPUTE | BPT_PHASE_SUM | BPT_PHASE_APPLY;
    if (is_head(net) && (role == BPT_GRAPH_TRAIN || role == BPT_GRAPH_GRADIENT))
        phases &= ~(unsigned)FORWARD;
    return phases;
}

unsigned bpt__batch_phases(const bpt_network *net, bpt_graph_role role) {
    const unsigned phases = bpt__graph_phases(net, role);
    if (phases & BPT_PHASE_BACKWARD) return phases | FORWARD | BPT_PHASE_BORDER;
    if (!(phases & BPT_PHASE_FORWARD)) return 0;
    return is_head(net) ? phases | BPT_PHASE_BORDER : phases;
}

bool bpt__graph_exists(const bpt_network *net, bpt_graph_role role) {
    const bool forward =
        role == BPT_GRAPH_EVALUATE || role == BPT_GRAPH_EXPORT || role == BPT_GRAPH_IMPORT;
    if (role == BPT_GRAPH_FORWARD && !is_head(net)) return false;
    if (role == BPT_GRAPH_EVALUATE && net->model->role != BPT_MODEL_WHOLE) return false;
    if (role == BPT_GRAPH_EXPORT_FROZEN || role == BPT_GRAPH_IMPORT_FROZEN)
        return net->model->n_frozen > 0;
    return forward || !net->builder.forward_only;
}

static void count_graph(const bpt_builder *b, unsigned set, size_t *n_tasks, size_t *n_edges) {
    *n_tasks = *n_edges = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        if (!(b->tasks[i].phase & set)) continue;
        ++*n_tasks;
        *n_edges += b->tasks[i].after.n;
    }
}

/* @param ids    scratch: graph id of each task of the plan, shape [b->n_tasks]
 * @param edges  scratch, shape [number of edges] */
static bpt_status fill_graph(const bpt_builder *b, unsigned set, bpt_graph *g, uint32_t *ids,
                             uint32_t *edges) {
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!(task->phase & set)) continue;
        size_t n = 0;
        for (size_t d = 0; d < task->after.n; d++)
            if (b->tasks[task->after.ids[d]].phase & set) edges[n++] = ids[task->after.ids[d]];
        BPT_TRY(bpt_graph_add(g, task->fn, task->arg, task->info, 0, edges, n, &ids[i]));
    }
    return BPT_OK;
}

bpt_status bpt__network_graph(bpt_network *net, bpt_graph_role role) {
    const bpt_builder *b = &net->builder;
    const unsigned set = bpt__graph_phases(net, role);
    size_t n_tasks, n_edges;
    uint32_t *ids = NULL, *edges = NULL;
    bpt_status status;
    count_graph(b, set, &n_tasks, &n_edges);
    BPT_TRY(bpt_graph_create(n_tasks ? n_tasks : 1, n_edges, &net->graphs[role]));
    BPT_TRY_GOTO(status, BPT_NEW("task ids", b->n_tasks, &ids), done);
    BPT_TRY_GOTO(status, BPT_NEW("task edges", n_edges, &edges), done);
    status = fill_graph(b, set, net->graphs[role], ids, edges);
done:
    bpt_free(edges);
    bpt_free(ids);
    return status;
}

/* ---- gradients that are handed out ---- */

/* The task that does it. */
typedef struct {
    const bpt_gradient_parts *parts;
    uint32_t part;
} part_task;

static bpt_status run_take(void *arg, unsigned worker) {
    const part_task *task = arg;
    (void)worker;
    task->parts->take(task->parts->context, task->part);
    return BPT_OK;
}

/* The tasks of the gradient graph; then of each segment the export, behind its sums; then of each
 * part who takes it. Exports are those of the export graph, bound to the gradients. */
static bpt_status add_exports(bpt_network *net, bpt_graph *g, const uint32_t *ids,
                              uint32_t *exports) {
    const bpt_builder *b = &net->builder;
    for (size_t s = bpt_model_frozen_segments(net->model); s < net->model->segments.n; s++) {
        const bpt_step_task *task = &b->tasks[net->exports[s]];
        const bpt_task_range sums = net->reduces[s];
        BPT_TRY(bpt_graph_add(g, task->fn, task->arg, task->info, 0, ids + sums.first, sums.n,
                              &exports[s]));
    }
    return BPT_OK;
}

static bpt_status add_takers(bpt_network *net, bpt_graph *g, const uint32_t *exports) {
    const bpt_segments *segments = &net->model->segments;
    const size_t frozen = bpt_model_frozen_elements(net->model);
    size_t s = bpt_model_frozen_segments(net->model);
    for (uint32_t p = 0; p < net->parts.n; p++) {
        const size_t first = s, end = frozen + net->parts.begin[p + 1];
        part_task *task;
        uint32_t id;
        while (s < segments->n && segments->items[s].offset < end) s++;
        BPT_TRY(BPT_BUILDER_NEW(&net->builder, 1, &task));
        *task = (part_task){&net->parts, p};
        BPT_TRY(bpt_graph_add(g, run_take, task, (bpt_task_info){"hand out", "gradients"}, 0,
                              exports + first, s - first, &id));
    }
    return BPT_OK;
}

static bpt_status fill_handing_graph(bpt_network *net, bpt_graph *g, uint32_t *ids,
                                     uint32_t *exports, uint32_t *edges) {
    BPT_TRY(fill_graph(&net->builder, bpt__graph_phases(net, BPT_GRAPH_GRADIENT), g, ids, edges));
    BPT_TRY(add_exports(net, g, ids, exports));
    return add_takers(net, g, exports);
}

/* @param[out] learned as of bpt__network_keep_costs() */
static bpt_status make_handing_graph(bpt_network *net, bpt_graph **out, unsigned *learned) {
    const size_t n_segments = net->model->segments.n, n_parts = net->parts.n;
    size_t n_tasks, n_edges;
    uint32_t *ids = NULL, *exports = NULL, *edges = NULL;
    bpt_graph *g = NULL;
    bpt_status status;
    count_graph(&net->builder, bpt__graph_phases(net, BPT_GRAPH_GRADIENT), &n_tasks, &n_edges);
    size_t n_all = n_edges + n_segments;
    for (size_t s = 0; s < n_segments; s++) n_all += net->reduces[s].n;
    BPT_TRY_GOTO(status, bpt_graph_create(n_tasks + n_segments + n_parts, n_all, &g), done);
    BPT_TRY_GOTO(status, BPT_NEW("task ids", net->builder.n_tasks, &ids), done);
    BPT_TRY_GOTO(status, BPT_NEW("exports of segments", n_segments, &exports), done);
    BPT_TRY_GOTO(status, BPT_NEW("task edges", n_edges, &edges), done);
    BPT_TRY_GOTO(status, fill_handing_graph(net, g, ids, exports, edges), done);
    bpt__network_keep_costs(net, g, exports, learned);
done:
    bpt_free(edges);
    bpt_free(exports);
    bpt_free(ids);
    if (status == BPT_OK)
        *out = g;
    else
        bpt_graph_free(g);
    return status;
}

static void replace_gradient_graph(bpt_network *net, bpt_graph *g) {
    bpt_graph_free(net->graphs[BPT_GRAPH_GRADIENT]);
    net->graphs[BPT_GRAPH_GRADIENT] = g;
}

bpt_status bpt_network_hand_out(bpt_network *net, const bpt_gradient_parts *parts) {
    bpt_graph *g;
    unsigned learned;
    assert(!net->border_taker.take);
    if (net->device) return bpt__device_hand_out(net, parts);
    net->parts = *parts;
    const bpt_status status = make_handing_graph(net, &g, &learned);
    net->parts.begin = NULL;
    if (status != BPT_OK) {
        net->parts.take = NULL;
        return status;
    }
    replace_gradient_graph(net, g);
    net->runs_learned[BPT_GRAPH_GRADIENT] = learned;
    return BPT_OK;
}

/* ---- a border that is handed out ---- */

/* Its predecessors have computed the loss. What is not finite is not handed out: the end of the run
 * says whose it is. */
static bpt_status run_border_take(void *arg, unsigned worker) {
    bpt_network *net = arg;
    const bpt_activation *a = &net->border;
    bpt_batch_result result;
    (void)worker;
    for (size_t t = 0; t < net->builder.n_tiles; t++) {
        if (bpt__is_finite(net, a->grad[t], a->layout[t])) continue;
        atomic_store_explicit(&net->bad_gradient, true, memory_order_relaxed);
        return BPT_OK;
    }
    bpt__sum_chunks(net, &result);
    return net->border_taker.take(net->border_taker.context, &result);
}

static bpt_status fill_border_graph(bpt_network *net, bpt_graph *g, uint32_t *ids,
                                    uint32_t *edges) {
    const bpt_activation *a = &net->border;
    size_t n = 0;
    BPT_TRY(fill_graph(&net->builder, bpt__graph_phases(net, BPT_GRAPH_GRADIENT), g, ids, edges));
    for (size_t t = 0; t < net->builder.n_tiles; t++)
        for (size_t d = 0; d < a->grad_ready[t].n; d++) edges[n++] = ids[a->grad_ready[t].ids[d]];
    return bpt_graph_add(g, run_border_take, net, (bpt_task_info){"hand out", "border"}, 0, edges,
                         n, &net->border_taker.task);
}

/* As if all other tasks followed: whatever leads there is on the longest path. To a policy that
 * does not order by costs they are only what a worker is busy with, which this would be wrong of.
 */
void bpt__hurry_to_border(bpt_network *net) {
    bpt_graph *g = net->graphs[BPT_GRAPH_GRADIENT];
    uint64_t all = 0;
    if (!net->border_taker.take || !bpt_pool_policy(net->pool)->keys) return;
    for (uint32_t i = 0; i < net->border_taker.task; i++) {
        const uint64_t ns = bpt_graph_cost(g, i);
        all += ns > 0 ? ns : 1;
    }
    bpt_graph_set_cost(g, net->border_taker.task, all);
}

/* The tasks that it has from the graph before keep their costs. */
static bpt_status make_border_graph(bpt_network *net, bpt_graph **out) {
    const bpt_graph *before = net->graphs[BPT_GRAPH_GRADIENT];
    size_t n_tasks, n_edges;
    uint32_t *ids = NULL, *edges = NULL;
    bpt_graph *g = NULL;
    bpt_status status;
    count_graph(&net->builder, bpt__graph_phases(net, BPT_GRAPH_GRADIENT), &n_tasks, &n_edges);
    for (size_t t = 0; t < net->builder.n_tiles; t++) n_edges += net->border.grad_ready[t].n;
    BPT_TRY_GOTO(status, bpt_graph_create(n_tasks + 1, n_edges, &g), done);
    BPT_TRY_GOTO(status, BPT_NEW("task ids", net->builder.n_tasks, &ids), done);
    BPT_TRY_GOTO(status, BPT_NEW("task edges", n_edges, &edges), done);
    BPT_TRY_GOTO(status, fill_border_graph(net, g, ids, edges), done);
    for (uint32_t i = 0; i < n_tasks; i++) bpt_graph_set_cost(g, i, bpt_graph_cost(before, i));
done:
    bpt_free(edges);
    bpt_free(ids);
    if (status == BPT_OK)
        *out = g;
    else
        bpt_graph_free(g);
    return status;
}

bpt_status bpt_network_hand_border(bpt_network *net, bpt_border_take take, void *context) {
    bpt_graph *g;
    assert(net->model->role == BPT_MODEL_TAIL && !net->device);
    assert(!net->border_taker.take && !net->parts.take);
    BPT_TRY(make_border_graph(net, &g));
    replace_gradient_graph(net, g);
    net->border_taker.take = take;
    net->border_taker.context = context;
    bpt__hurry_to_border(net);
    return BPT_OK;
}

/* ---- asking ---- */

/* Tasks of a graph are numbered in the order of the plan. */
static void visit_graph(const bpt_network *net, bpt_graph_role role, bpt_visit_task visit,
                        void *context) {
    const bpt_builder *b = &net->builder;
    const unsigned set = bpt__graph_phases(net, role);
    uint32_t id = 0;
    for (size_t i = 0; i < b->n_tasks; i++)
        if (b->tasks[i].phase & set)
            visit(context, b->tasks[i].info, bpt_graph_measured(net->graphs[role], id++));
}

void bpt__visit_step(const bpt_network *net, bpt_visit_task visit, void *context) {
    if (net->graphs[BPT_GRAPH_FORWARD]) visit_graph(net, BPT_GRAPH_FORWARD, visit, context);
    visit_graph(net, BPT_GRAPH_TRAIN, visit, context);
}
