/* HEFT against the example of its paper, and what every timetable must keep. */
#include "base/memory.h"
#include "scheduler/heft.h"
#include "tests/base/near.h"
#include "tests/scheduler/random_dag.h"
#include "tests/scheduler/timetable_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Topcuoglu, Hariri, Wu 2002, figure 2 and table 3: three processors with a memory each. Times 300,
 * so that means of three are whole numbers. */
enum { SCALE = 300, N_TASKS = 10, N_EDGES = 15 };

static uint64_t cost[N_TASKS][3] = {{14, 16, 9},  {13, 19, 18}, {11, 13, 19}, {13, 8, 17},
                                    {12, 13, 10}, {13, 16, 9},  {7, 15, 11},  {5, 11, 14},
                                    {18, 12, 20}, {21, 7, 16}};
/* By successor; tasks from 0. */
static const uint32_t from[N_EDGES] = {0, 0, 0, 0, 0, 2, 1, 3, 5, 1, 3, 4, 6, 7, 8};
static const uint32_t n_before[N_TASKS] = {0, 1, 1, 1, 1, 1, 1, 3, 3, 3};
static uint64_t edge[N_EDGES] = {18, 12, 9, 11, 14, 23, 19, 27, 15, 16, 23, 13, 17, 11, 13};
static const uint8_t kind[3] = {0, 1, 2};
static const bpt_machine published = {
    .n_workers = 3, .n_kinds = 3, .kind = kind, .cost_ns = cost[0], .edge_ns = edge};

static bpt_graph *create_published(void) {
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(N_TASKS, N_EDGES, &g), BPT_OK);
    for (uint32_t i = 0, e = 0; i < N_TASKS; e += n_before[i++]) {
        uint32_t id;
        assert_int_equal(
            bpt_graph_add(g, NULL, NULL, (bpt_task_info){0}, 0, &from[e], n_before[i], &id),
            BPT_OK);
    }
    return g;
}

static int scale(void **state) {
    (void)state;
    for (size_t i = 0; i < N_TASKS; i++)
        for (size_t w = 0; w < 3; w++) cost[i][w] *= SCALE;
    for (size_t e = 0; e < N_EDGES; e++) edge[e] *= SCALE;
    return 0;
}

static void ranks_are_the_published_ones(void **state) {
    (void)state;
    static const double expected[N_TASKS] = {108,   77,    80,    80,    69,
                                             63.33, 42.67, 35.67, 44.33, 14.67};
    uint64_t rank[N_TASKS];
    bpt_graph *const g = create_published();
    bpt_machine_ranks(&published, g, rank);
    for (size_t i = 0; i < N_TASKS; i++) assert_near((double)rank[i] / SCALE, expected[i], 0.005);
    bpt_graph_free(g);
}

static void the_timetable_is_the_published_one(void **state) {
    (void)state;
    static const uint8_t worker[N_TASKS] = {2, 0, 2, 1, 2, 1, 2, 0, 1, 1};
    static const uint64_t begin[N_TASKS] = {0, 27, 9, 18, 28, 26, 38, 57, 56, 73};
    bpt_graph *const g = create_published();
    bpt_timetable t;
    assert_int_equal(bpt_heft(g, &published, &t), BPT_OK);
    timetable_check(g, &published, &t);
    assert_int_equal(t.makespan_ns, 80 * SCALE);
    for (size_t i = 0; i < N_TASKS; i++) {
        assert_int_equal(t.worker[i], worker[i]);
        assert_int_equal(t.begin_ns[i], begin[i] * SCALE);
    }
    bpt_timetable_free(&t);
    bpt_graph_free(g);
}

/* @param on_0, on_1 costs of a task that goes into the gap of worker 1, which is 40 long */
static void check_gap(uint64_t on_0, uint64_t on_1) {
    const uint64_t costs[][2] = {{10, 99}, {100, 20}, {on_0, on_1}};
    static const uint64_t transfer[] = {30};
    static const uint8_t kinds[] = {0, 1};
    const bpt_machine m = {
        .n_workers = 2, .n_kinds = 2, .kind = kinds, .cost_ns = costs[0], .edge_ns = transfer};
    bpt_graph *g;
    uint32_t id;
    assert_int_equal(bpt_graph_create(3, 1, &g), BPT_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(
            bpt_graph_add(g, NULL, NULL, (bpt_task_info){0}, 0, &(uint32_t){0}, i == 1, &id),
            BPT_OK);
    bpt_timetable t;
    assert_int_equal(bpt_heft(g, &m, &t), BPT_OK);
    timetable_check(g, &m, &t);
    assert_int_equal(t.begin_ns[1], 40);
    assert_int_equal(t.worker[2], 1);
    assert_int_equal(t.begin_ns[2], 0);
    assert_int_equal(t.makespan_ns, 60);
    bpt_timetable_free(&t);
    bpt_graph_free(g);
}

/* Task 2 waits for task 0's transfer on the fast worker; the short task 3 of lowest rank fits into
 * the gap before it. */
static void a_gap_is_used(void **state) {
    (void)state;
    check_gap(3, 3);
    check_gap(50, 40); /* all of it */
}

static void every_timetable_is_possible(void **state) {
    (void)state;
    const uint64_t seed = dag_seed();
    static const uint8_t kinds[] = {0, 1, 0, 2, 1, 0};
    static const double speed[] = {1, 3, 0.7};
    for (uint64_t i = 0; i < 40; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        dag d;
        dag_create(&d, &r, 1 + bpt_random_below(&r, 200), NULL);
        const bpt_machine m = {.n_workers = 6,
                               .n_kinds = 3,
                               .kind = kinds,
                               .speed = speed,
                               .transfer_ns = bpt_random_below(&r, 300)};
        bpt_timetable t;
        const uint64_t live = bpt_memory_live();
        assert_int_equal(bpt_heft(d.graph, &m, &t), BPT_OK);
        timetable_check(d.graph, &m, &t);
        bpt_timetable_free(&t);
        assert_int_equal(bpt_memory_live(), live);
        dag_free(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_the_published_ones),
        cmocka_unit_test(the_timetable_is_the_published_one),
        cmocka_unit_test(a_gap_is_used),
        cmocka_unit_test(every_timetable_is_possible),
    };
    return cmocka_run_group_tests(tests, scale, NULL);
}
