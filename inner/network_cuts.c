/* How convolutions are cut, and what their parts took. */
#include "inner/network_private.h"

#include <string.h>

/* @return nanoseconds of a task of that layer and step, on average and at least 1; 0: none ran */
static uint64_t mean_ns(const bpt_network *net, const bpt_cut_note *note) {
    const bpt_graph *g = net->graphs[BPT_GRAPH_TRAIN];
    const char *kind = bpt_conv_step_name(note->step);
    uint64_t ns = 0, n = 0;
    for (size_t i = 0; i < bpt_graph_n_tasks(g); i++) {
        const bpt_task_info info = net->builder.tasks[net->train_ids[i]].info;
        if (strcmp(info.kind, kind) != 0 || strcmp(info.label, note->layer->name) != 0) continue;
        ns += bpt_graph_measured(g, (uint32_t)i);
        n++;
    }
    if (ns == 0) return 0;
    return ns < n ? 1 : ns / n;
}

bpt_status bpt_network_note_costs(const bpt_network *net, bpt_cost_table *costs) {
    for (size_t i = 0; i < net->builder.n_cuts; i++) {
        const bpt_cut_note *note = &net->builder.cuts[i];
        const uint64_t ns = mean_ns(net, note);
        if (ns == 0) continue;
        BPT_TRY(bpt_cost_table_add(costs, &(bpt_cost){note->step, note->problem, note->cut, ns}));
    }
    return BPT_OK;
}

size_t bpt_network_n_cuts(const bpt_network *net) {
    size_t n = 0;
    for (size_t i = 0; i < net->builder.n_cuts; i++) {
        const bpt_cut_note *note = &net->builder.cuts[i];
        n += !bpt_cut_is_whole(note->cut, note->problem.n);
    }
    return n;
}
