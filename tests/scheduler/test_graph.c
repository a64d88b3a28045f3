/* Building graphs: limits, errors, upward ranks. Nothing runs here. */
#include "base/memory.h"
#include "scheduler/graph.h"
#include "tests/scheduler/graph_ranks.h"
#include "tests/scheduler/random_dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_task_info info = {.kind = "test", .label = "task"};

static bpt_status nothing(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    return BPT_OK;
}

static bpt_status add(bpt_graph *g, uint64_t cost, const uint32_t *after, size_t n, uint32_t *id) {
    return bpt_graph_add(g, nothing, NULL, info, cost, after, n, id);
}

static void refuses_sizes_out_of_range(void **state) {
    (void)state;
    bpt_graph *g = NULL;
    assert_int_equal(bpt_graph_create(0, 0, &g), BPT_EUSAGE);
    assert_int_equal(bpt_graph_create((size_t)1 << 31, 0, &g), BPT_EUSAGE);
    assert_int_equal(bpt_graph_create(1, (size_t)1 << 32, &g), BPT_EUSAGE);
    assert_null(g);
    bpt_graph_free(NULL);
}

static void full_and_wrong_ids_leave_the_graph_as_it_is(void **state) {
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(3, 3, &g), BPT_OK);
    uint32_t id = 77;
    const uint32_t both[] = {0, 1, 0, 1};
    assert_int_equal(add(g, 5, both, 1, &id), BPT_EUSAGE); /* 0 does not exist yet */
    assert_int_equal(add(g, 5, NULL, 0, &id), BPT_OK);
    assert_int_equal(id, 0);
    assert_int_equal(add(g, 5, both, 2, &id), BPT_EUSAGE); /* 1 would be itself */
    assert_int_equal(id, 0);
    assert_int_equal(add(g, 7, both, 1, &id), BPT_OK);
    assert_int_equal(add(g, 9, both, 3, &id), BPT_EFULL); /* two edges are left */
    assert_int_equal(id, 1);
    assert_int_equal(bpt_graph_n_tasks(g), 2);
    assert_int_equal(graph_critical_path(g), 12);
    assert_int_equal(bpt_graph_add_event(g, NULL, NULL, info, 9, both, 2, &id), BPT_OK);
    assert_int_equal(add(g, 1, NULL, 0, &id), BPT_EFULL);
    assert_int_equal(bpt_graph_add_event(g, NULL, NULL, info, 1, NULL, 0, &id), BPT_EFULL);
    assert_int_equal(id, 2);
    assert_int_equal(bpt_graph_n_tasks(g), 3);
    assert_int_equal(graph_critical_path(g), 21);
    bpt_graph_free(g);
}

/* Upward rank by its definition, without memory of what is known already but for the table. */
static uint64_t naive_rank(const dag *d, uint32_t id, uint64_t *known) {
    if (known[id]) return known[id];
    uint64_t longest = 0;
    for (uint32_t t = id + 1; t < d->n; t++)
        for (uint32_t i = 0; i < d->tasks[t].n_before; i++)
            if (d->tasks[t].before[i] == id) {
                const uint64_t rank = naive_rank(d, t, known);
                if (rank > longest) longest = rank;
            }
    const uint64_t cost = d->tasks[id].cost_ns;
    return known[id] = (cost ? cost : 1) + longest;
}

static void check_ranks(const dag *d) {
    uint64_t known[200] = {0}, ranks[200];
    graph_ranks(d->graph, ranks);
    for (uint32_t id = 0; id < d->n; id++) assert_int_equal(ranks[id], naive_rank(d, id, known));
}

static void ranks_are_longest_ways_to_the_end(void **state) {
    (void)state;
    const uint64_t seed = dag_seed();
    for (uint64_t i = 0; i < 20; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        dag d;
        dag_create(&d, &r, 1 + bpt_random_below(&r, 200), NULL);
        check_ranks(&d);
        for (int k = 0; k < 10; k++) {
            const uint32_t id = bpt_random_below(&r, (uint32_t)d.n);
            d.tasks[id].cost_ns = bpt_random_below(&r, 5000);
            bpt_graph_set_cost(d.graph, id, d.tasks[id].cost_ns);
        }
        check_ranks(&d);
        dag_free(&d);
    }
}

/* The ten tasks of the HEFT paper (Topcuoglu, Hariri, Wu 2002, figure 2), mean costs rounded down,
 * without transfers: the longest way of each task was added up by hand. */
static void ranks_of_a_published_graph(void **state) {
    (void)state;
    static const uint64_t cost[10] = {13, 16, 14, 12, 11, 12, 11, 10, 16, 14};
    static const uint64_t rank[10] = {59, 46, 39, 42, 41, 36, 25, 24, 30, 14};
    static const struct {
        size_t n;
        uint32_t ids[5];
    } after[10] = {{0, {0}}, {1, {0}}, {1, {0}},       {1, {0}},       {1, {0}},
                   {1, {0}}, {1, {2}}, {3, {1, 3, 5}}, {3, {1, 3, 4}}, {3, {6, 7, 8}}};
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(10, 15, &g), BPT_OK);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t id;
        assert_int_equal(add(g, cost[i], after[i].ids, after[i].n, &id), BPT_OK);
    }
    uint64_t ranks[10];
    graph_ranks(g, ranks);
    assert_memory_equal(ranks, rank, sizeof rank);
    bpt_graph_free(g);
}

static void huge_costs_do_not_wrap_round(void **state) {
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(2, 1, &g), BPT_OK);
    uint32_t id;
    assert_int_equal(add(g, UINT64_MAX - 1, NULL, 0, &id), BPT_OK);
    assert_int_equal(add(g, UINT64_MAX - 1, &id, 1, &id), BPT_OK);
    uint64_t ranks[2];
    graph_ranks(g, ranks);
    assert_int_equal(ranks[0], UINT64_MAX);
    assert_int_equal(ranks[1], UINT64_MAX - 1);
    bpt_graph_free(g);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_graph *g = NULL;
    int n = 0;
    for (;; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_graph_create(10, 10, &g);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        assert_null(g);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_true(n > 0);
    bpt_memory_fail_at(0); /* adding needs no memory */
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t id;
        const uint32_t last = i - 1;
        assert_int_equal(add(g, i, &last, i > 0, &id), BPT_OK);
    }
    assert_int_equal(graph_critical_path(g), 46);
    bpt_memory_fail_at(-1);
    bpt_graph_free(g);
    assert_int_equal(bpt_memory_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_sizes_out_of_range),
        cmocka_unit_test(full_and_wrong_ids_leave_the_graph_as_it_is),
        cmocka_unit_test(ranks_are_longest_ways_to_the_end),
        cmocka_unit_test(ranks_of_a_published_graph),
        cmocka_unit_test(huge_costs_do_not_wrap_round),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
