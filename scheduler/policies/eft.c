#include "scheduler/load.h"

static void keys(const bpt_graph *g, const bpt_machine *m, uint64_t *key) {
    bpt_machine_ranks(m, g, true, key);
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

/* Where nothing speaks against it, the task stays near its input. */
static unsigned place(const bpt_policy_view *v, uint32_t id, unsigned maker) {
    unsigned best = maker;
    uint64_t best_ns = finish_ns(v, id, maker);
    for (unsigned w = 0; w < v->machine->n_workers; w++) {
        if (w == maker) continue;
        const uint64_t ns = finish_ns(v, id, w);
        if (ns >= best_ns) continue;
        best = w;
        best_ns = ns;
    }
    return best;
}

const bpt_policy bpt_policy_eft = {
    .name = "eft",
    .summary = "to the worker that should finish it first, for unlike workers",
    .keys = keys,
    .place = place,
    .stealing = BPT_STEAL_ALIKE,
};
