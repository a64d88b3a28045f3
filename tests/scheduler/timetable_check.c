#include "tests/scheduler/timetable_check.h"

#include "scheduler/graph_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check_inputs(const bpt_graph *g, const bpt_machine *m, const bpt_timetable *t,
                         uint32_t id) {
    const bpt__plan *const plan = &g->plans[id];
    for (uint32_t k = 0; k < plan->n_before; k++) {
        const uint32_t edge = plan->first_before + k, before = g->before[edge];
        const bool moves =
            bpt_machine_kind(m, t->worker[before]) != bpt_machine_kind(m, t->worker[id]);
        const uint64_t transfer = m->edge_ns ? m->edge_ns[edge] : m->transfer_ns;
        assert_true(t->begin_ns[id] >= t->end_ns[before] + (moves ? transfer : 0));
    }
}

static void check_alone(const bpt_graph *g, const bpt_timetable *t, uint32_t id) {
    for (uint32_t other = 0; other < g->n_tasks; other++)
        if (other != id && t->worker[other] == t->worker[id])
            assert_true(t->end_ns[other] <= t->begin_ns[id] || t->begin_ns[other] >= t->end_ns[id]);
}

void timetable_check(const bpt_graph *g, const bpt_machine *m, const bpt_timetable *t) {
    uint64_t busy[256] = {0}, last = 0;
    for (uint32_t id = 0; id < g->n_tasks; id++) {
        const unsigned w = t->worker[id];
        const uint64_t cost = bpt_machine_cost(m, g, id, bpt_machine_kind(m, w));
        assert_true(w < m->n_workers);
        assert_int_equal(t->end_ns[id] - t->begin_ns[id], cost);
        check_inputs(g, m, t, id);
        check_alone(g, t, id);
        busy[w] += cost;
        if (last < t->end_ns[id]) last = t->end_ns[id];
    }
    assert_int_equal(t->makespan_ns, last);
    for (unsigned w = 0; w < m->n_workers; w++) assert_int_equal(t->busy_ns[w], busy[w]);
}
