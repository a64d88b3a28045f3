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

static uint64_t finish_ns(const bpt_policy_view *v, uint32_t id, unsigned worker) {
    const bpt_load *const load = &v->loads[worker];
    const uint64_t until = atomic_load_explicit(&load->until_ns, memory_order_relaxed);
    const uint64_t queued = atomic_load_explicit(&load->queued_ns, memory_order_relaxed);
    const uint64_t free = (until > v->now_ns ? until : v->now_ns) + queued;
    const uint64_t input = v->now_ns + bpt__transfer(v, id, worker);
    return (free > input ? free : input) +
           bpt_machine_cost(v->machine, v->graph, id, bpt_machine_kind(v->machine, worker));
}

/* Another worker of the maker's kind has to be better by what leaving the maker's cache is worth;
 * of another kind, transfers are counted already. */
static uint64_t needed_gain(const bpt_policy_view *v, unsigned worker, unsigned maker) {
    const bool alike = bpt_machine_kind(v->machine, worker) == bpt_machine_kind(v->machine, maker);
    return alike ? bpt_patience_gain(v->graph->patience, v->now_ns - v->begin_ns) : 0;
}

/* Where nothing speaks against it, the task stays near its input. */
unsigned bpt__earliest_finish(const bpt_policy_view *v, uint32_t id, unsigned maker) {
    unsigned best = maker;
    const uint64_t stay_ns = finish_ns(v, id, maker);
    uint64_t best_ns = stay_ns;
    for (unsigned w = 0; w < v->machine->n_workers; w++) {
        if (w == maker) continue;
        const uint64_t ns = finish_ns(v, id, w);
        if (ns >= best_ns || stay_ns - ns <= needed_gain(v, w, maker)) continue;
        best = w;
        best_ns = ns;
    }
    return best;
}
