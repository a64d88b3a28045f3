/* What tasks are expected to take: told from outside, and kept where a graph is made anew. */
#include "inner/network/network_private.h"

/* Tasks of a graph are numbered in the order of the plan. A task without a function only joins
 * edges: it takes nothing. */
static void expect(bpt_network *net, bpt_graph_role role, bpt_cost_of cost, void *context) {
    const bpt_builder *b = &net->builder;
    const unsigned set = bpt__graph_phases(net, role);
    uint32_t id = 0;
    bool all = true;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!(task->phase & set)) continue;
        const uint64_t ns = task->fn ? cost(context, task->info.label, task->info.kind) : 0;
        if (ns > 0) bpt_graph_set_cost(net->graphs[role], id, ns);
        all = all && (ns > 0 || !task->fn);
        id++;
    }
    if (role == BPT_GRAPH_GRADIENT) bpt__hurry_to_border(net);
    net->runs_learned[role] = all ? BPT__LEARNING_RUNS : 0;
}

void bpt_network_expect(bpt_network *net, bpt_cost_of cost, void *context) {
    for (int role = 0; role < BPT_N_GRAPHS; role++)
        if (net->graphs[role]) expect(net, (bpt_graph_role)role, cost, context);
}

/* Both graphs have the tasks of @p before first, by the same ids. */
void bpt__network_keep_costs(const bpt_network *net, bpt_graph *handing, const uint32_t *exports,
                             unsigned *runs_learned) {
    const bpt_builder *b = &net->builder;
    const bpt_graph *before = net->graphs[BPT_GRAPH_GRADIENT];
    const bpt_graph *out = net->graphs[BPT_GRAPH_EXPORT];
    const unsigned set = bpt__graph_phases(net, BPT_GRAPH_EXPORT);
    uint32_t id = 0;
    for (uint32_t i = 0; i < bpt_graph_n_tasks(before); i++)
        bpt_graph_set_cost(handing, i, bpt_graph_cost(before, i));
    *runs_learned = net->runs_learned[BPT_GRAPH_GRADIENT];
    size_t s = bpt_model_frozen_segments(net->model);
    for (size_t i = 0; i < b->n_tasks && s < net->model->segments.n; i++) {
        if (!(b->tasks[i].phase & set)) continue;
        if (net->exports[s] == i) {
            const uint64_t ns = bpt_graph_cost(out, id);
            bpt_graph_set_cost(handing, exports[s++], ns);
            if (ns == 0) *runs_learned = 0;
        }
        id++;
    }
}
