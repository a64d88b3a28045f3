#include "scheduler/graph_private.h"
#include "scheduler/policy.h"

/* A level is the number of edges of the longest way from an entry. Predecessors have lower ids. */
static bpt_patience keys(const bpt_machine *m, const bpt_graph *g, uint64_t *key) {
    (void)m;
    for (size_t i = 0; i < g->n_tasks; i++) {
        const bpt__plan *const plan = &g->plans[i];
        key[i] = UINT64_MAX;
        for (uint32_t k = 0; k < plan->n_before; k++) {
            const uint64_t before = key[g->before[plan->first_before + k]];
            if (key[i] > before - 1) key[i] = before - 1;
        }
    }
    return BPT_PATIENCE_ENDLESS;
}

static unsigned place(const bpt_policy_view *v, uint32_t id, unsigned maker) {
    (void)id, (void)maker;
    unsigned least = 0;
    uint64_t least_ns = UINT64_MAX;
    for (unsigned w = 0; w < v->machine->n_workers; w++) {
        const uint64_t ns = atomic_load_explicit(&v->loads[w].assigned_ns, memory_order_relaxed);
        if (ns >= least_ns) continue;
        least = w;
        least_ns = ns;
    }
    return least;
}

const bpt_policy bpt_policy_level = {
    .name = "level",
    .keys = keys,
    .place = place,
    .stealing = BPT_STEAL_NEVER,
};
