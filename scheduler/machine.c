#include "scheduler/machine.h"

#include "scheduler/graph_private.h"

#include <math.h>

uint64_t bpt_machine_cost(const bpt_machine *m, const bpt_graph *g, uint32_t id, unsigned kind) {
    uint64_t cost = m->cost_ns ? m->cost_ns[(size_t)id * m->n_kinds + kind] : g->plans[id].cost_ns;
    if (!m->cost_ns && m->speed) cost = (uint64_t)llround((double)cost / m->speed[kind]);
    return cost ? cost : 1;
}

/* Over all workers, so a kind counts as often as it has workers. */
static uint64_t mean_cost(const bpt_machine *m, const bpt_graph *g, uint32_t id) {
    if (m->n_kinds == 1) return bpt_machine_cost(m, g, id, 0);
    double sum = 0;
    for (unsigned w = 0; w < m->n_workers; w++)
        sum += (double)bpt_machine_cost(m, g, id, bpt_machine_kind(m, w));
    const uint64_t mean = (uint64_t)llround(sum / m->n_workers);
    return mean ? mean : 1;
}

static uint64_t add_saturated(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Successors have higher ids, so from last to first a task's rank holds the longest way from its
 * end when its turn comes. */
void bpt_machine_ranks(const bpt_machine *m, const bpt_graph *g, uint64_t *rank) {
    for (size_t i = 0; i < g->n_tasks; i++) rank[i] = 0;
    for (size_t i = g->n_tasks; i-- > 0;) {
        const bpt__plan *const plan = &g->plans[i];
        rank[i] = add_saturated(rank[i], mean_cost(m, g, (uint32_t)i));
        for (uint32_t k = 0; k < plan->n_before; k++) {
            const uint32_t edge = plan->first_before + k;
            uint64_t way = rank[i];
            if (m->n_kinds > 1)
                way = add_saturated(way, m->edge_ns ? m->edge_ns[edge] : m->transfer_ns);
            uint64_t *const before = &rank[g->before[edge]];
            if (*before < way) *before = way;
        }
    }
}

/* Less than 1, so that siblings keep the order of their ranks, and no sum comes to UINT64_MAX. */
#define MOST (1023.0 / 1024)

/* What a graph asks of each worker. Events are no work: they take no worker. */
typedef struct demand {
    double path;  /* the longest, nanoseconds, at least 1 */
    double times; /* how many times as long as it each worker's share of the work is */
} demand;

static demand demand_of(const bpt_machine *m, const bpt_graph *g, const uint64_t *rank) {
    double work = 0, path = 1;
    for (size_t i = 0; i < g->n_tasks; i++) {
        if (!(atomic_load_explicit(&g->tasks[i].state, memory_order_relaxed) & BPT__EVENT))
            work += (double)mean_cost(m, g, (uint32_t)i);
        if (path < (double)rank[i]) path = (double)rank[i];
    }
    return (demand){path, work / m->n_workers / path};
}

static double clamp(double x) {
    return x < 0 ? 0 : x < MOST ? x : MOST;
}

/* Part of the way to the most urgent sibling by which a task is put forward. */
static double togetherness(demand d) {
    return clamp(d.times - 1);
}

/* Where work is four times the path, siblings may stay together, but moves still pay: there is no
 * time to be patient. Nor is there near the end: what moves then evens out when workers end, and
 * needs short tasks that were left for it. */
static bpt_patience patience(demand d) {
    return (bpt_patience){
        .gain_ns = add_saturated(BPT_MOVE_NS, (uint64_t)(clamp(d.times / 2 - 2) * d.path)),
        .until_ns = (uint64_t)fmin(0.75 * d.times * d.path, 0x1p62),
    };
}

/* The greatest rank behind the predecessor that should end last; the task's own if it has none. */
static uint64_t rank_together(const bpt_machine *m, const bpt_graph *g, const uint64_t *rank,
                              size_t i) {
    const bpt__plan *const plan = &g->plans[i];
    if (plan->n_before == 0) return rank[i];
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < plan->n_before; k++) {
        const uint32_t before = g->before[plan->first_before + k];
        const uint64_t behind = rank[before] - mean_cost(m, g, before);
        if (least > behind) least = behind;
    }
    return least;
}

/* From last to first: those before a task have their ranks still. */
bpt_patience bpt_machine_keys(const bpt_machine *m, const bpt_graph *g, uint64_t *key) {
    bpt_machine_ranks(m, g, key);
    if (m->n_kinds > 1) return (bpt_patience){BPT_MOVE_NS, 0};
    const demand d = demand_of(m, g, key);
    const double part = togetherness(d);
    for (size_t i = g->n_tasks; part > 0 && i-- > 0;) {
        const uint64_t together = rank_together(m, g, key, i);
        if (together > key[i]) key[i] += (uint64_t)(part * (double)(together - key[i]));
    }
    return patience(d);
}
