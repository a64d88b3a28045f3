#include "scheduler/heft.h"

#include "base/memory.h"
#include "scheduler/graph_private.h"

#include <stdlib.h>

enum { NONE = UINT32_MAX };

typedef struct ranked {
    uint64_t rank;
    uint32_t id;
} ranked;

typedef struct planner {
    const bpt_graph *g;
    const bpt_machine *m;
    bpt_timetable *t;
    uint32_t *first; /* of each worker's tasks in the order of time, NONE: no task; [n_workers] */
    uint32_t *next;  /* on the same worker; [n_tasks] */
} planner;

/* Where a task would go on one worker. */
typedef struct slot {
    uint64_t begin_ns, end_ns;
    uint32_t after; /* the task before it there, NONE: it would be the first */
} slot;

/* When the inputs of a task can be on a worker. */
static uint64_t input_ns(const planner *p, uint32_t id, unsigned w) {
    const bpt__plan *const plan = &p->g->plans[id];
    uint64_t latest = 0;
    for (uint32_t k = 0; k < plan->n_before; k++) {
        const uint32_t edge = plan->first_before + k, before = p->g->before[edge];
        uint64_t ns = p->t->end_ns[before];
        if (bpt_machine_kind(p->m, p->t->worker[before]) != bpt_machine_kind(p->m, w))
            ns += p->m->edge_ns ? p->m->edge_ns[edge] : p->m->transfer_ns;
        if (ns > latest) latest = ns;
    }
    return latest;
}

/* The earliest gap that is long enough. */
static slot find_slot(const planner *p, uint32_t id, unsigned w) {
    const uint64_t cost = bpt_machine_cost(p->m, p->g, id, bpt_machine_kind(p->m, w));
    uint64_t begin = input_ns(p, id, w);
    uint32_t after = NONE;
    for (uint32_t i = p->first[w]; i != NONE; after = i, i = p->next[i]) {
        if (begin + cost <= p->t->begin_ns[i]) break;
        if (begin < p->t->end_ns[i]) begin = p->t->end_ns[i];
    }
    return (slot){begin, begin + cost, after};
}

static void insert(planner *p, uint32_t id, unsigned w, slot s) {
    uint32_t *const link = s.after == NONE ? &p->first[w] : &p->next[s.after];
    p->next[id] = *link;
    *link = id;
    p->t->begin_ns[id] = s.begin_ns;
    p->t->end_ns[id] = s.end_ns;
    p->t->worker[id] = (uint8_t)w;
    p->t->busy_ns[w] += s.end_ns - s.begin_ns;
    if (p->t->makespan_ns < s.end_ns) p->t->makespan_ns = s.end_ns;
}

static void plan_task(planner *p, uint32_t id) {
    unsigned best = 0;
    slot best_slot = find_slot(p, id, 0);
    for (unsigned w = 1; w < p->m->n_workers; w++) {
        const slot s = find_slot(p, id, w);
        if (s.end_ns >= best_slot.end_ns) continue;
        best = w;
        best_slot = s;
    }
    insert(p, id, best, best_slot);
}

/* Greatest rank first; lower ids first among equals, so predecessors before successors. */
static int compare(const void *a, const void *b) {
    const ranked *const x = a, *const y = b;
    if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static void plan_all(planner *p, uint64_t *rank, ranked *order) {
    const size_t n = p->g->n_tasks;
    bpt_machine_ranks(p->m, p->g, rank);
    for (uint32_t i = 0; i < n; i++) order[i] = (ranked){rank[i], i};
    qsort(order, n, sizeof *order, compare);
    for (unsigned w = 0; w < p->m->n_workers; w++) p->first[w] = NONE;
    for (size_t i = 0; i < n; i++) plan_task(p, order[i].id);
}

bpt_status bpt_heft(const bpt_graph *g, const bpt_machine *m, bpt_timetable *t) {
    planner p = {.g = g, .m = m, .t = t};
    uint64_t *rank = NULL;
    ranked *order = NULL;
    bpt_status status;
    BPT_TRY(bpt_timetable_create(g, m, t));
    BPT_TRY_GOTO(status, BPT_NEW("first tasks", m->n_workers, &p.first), done);
    BPT_TRY_GOTO(status, BPT_NEW("next tasks", g->n_tasks, &p.next), done);
    BPT_TRY_GOTO(status, BPT_NEW("ranks", g->n_tasks, &rank), done);
    BPT_TRY_GOTO(status, BPT_NEW("order of ranks", g->n_tasks, &order), done);
    plan_all(&p, rank, order);
done:
    bpt_free(order);
    bpt_free(rank);
    bpt_free(p.next);
    bpt_free(p.first);
    if (status != BPT_OK) bpt_timetable_free(t);
    return status;
}
