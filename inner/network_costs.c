/* What tasks are expected to take, told from outside. */
#include "inner/network_private.h"

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
    net->costs_known[role] = all;
}

void bpt_network_expect(bpt_network *net, bpt_cost_of cost, void *context) {
    for (int role = 0; role < BPT_N_GRAPHS; role++)
        if (net->graphs[role]) expect(net, (bpt_graph_role)role, cost, context);
}
