/* How convolutions are cut, and what their parts took. */
#include "inner/network/network_private.h"

#include <assert.h>
#include <string.h>

/* Of the tasks of a layer and step. */
typedef struct {
    const char *label, *kind;
    uint64_t ns;
} sum;

static void add_task(void *context, bpt_task_info info, uint64_t ns) {
    sum *s = context;
    if (strcmp(info.kind, s->kind) != 0 || strcmp(info.label, s->label) != 0) return;
    s->ns += ns;
}

/* Parts are unlike where blocks, rows or samples do not divide, and chunks where the batch does
 * not: all of them tell what the largest part of the largest chunk takes.
 * @return its nanoseconds, at least 1; 0: no such task ran */
static uint64_t largest_ns(const bpt_network *net, const bpt_cut_note *note) {
    sum s = {.label = note->layer->name, .kind = bpt_conv_step_name(note->step)};
    bpt__visit_step(net, add_task, &s);
    if (s.ns == 0) return 0;
    const double of_chunk = (double)note->problem.n / (double)net->builder.batch;
    const double ns =
        (double)s.ns * of_chunk * bpt_cut_largest(&note->problem, note->step, note->cut);
    assert(ns > 0.0 && "the network is cut so");
    return ns < 1.0 ? 1 : (uint64_t)(ns + 0.5);
}

bpt_status bpt_network_note_costs(const bpt_network *net, bpt_cost_table *costs) {
    for (size_t i = 0; i < net->builder.n_cuts; i++) {
        const bpt_cut_note *note = &net->builder.cuts[i];
        const uint64_t ns = largest_ns(net, note);
        if (ns == 0) continue;
        BPT_TRY(bpt_cost_table_add(costs, &(bpt_cost){note->step, note->problem, note->cut, ns}));
    }
    return BPT_OK;
}

size_t bpt_network_n_cuts(const bpt_network *net) {
    size_t n = 0;
    for (size_t i = 0; i < net->builder.n_cuts; i++) n += !net->builder.cuts[i].usual;
    return n;
}
