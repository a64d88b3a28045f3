#include "scheduler/load.h"

#include "scheduler/graph_private.h"

uint64_t bpt__transfer(const bpt_policy_view *v, uint32_t id, unsigned worker) {
    const bpt_machine *const m = v->machine;
    if (m->n_kinds == 1) return 0;
    const bpt__plan *const plan = &v->graph->plans[id];
    const unsigned kind = bpt_machine_kind(m, worker);
    uint64_t longest = 0;
    for (uint32_t k = 0; k < plan->n_before; k++) {
        const uint32_t edge = plan->first_before + k;
        if (bpt_machine_kind(m, v->ran_on[v->graph->before[edge]]) == kind) continue;
        const uint64_t ns = m->edge_ns ? m->edge_ns[edge] : m->transfer_ns;
        if (ns > longest) longest = ns;
    }
    return longest;
}
