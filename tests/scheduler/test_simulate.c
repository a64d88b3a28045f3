/* The simulator: cases by hand, rules that every timetable keeps, Graham's bound, and the order of
 * the pool. */
#include "base/memory.h"
#include "scheduler/pool.h"
#include "scheduler/simulate.h"
#include "tests/scheduler/graph_ranks.h"
#include "tests/scheduler/random_dag.h"
#include "tests/scheduler/timetable_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_task_info info = {.kind = "test", .label = "task"};
static const bpt_policy *const critical_path = &bpt_policy_critical_path;
static const bpt_policy *const level = &bpt_policy_level;
static const bpt_policy *const eft = &bpt_policy_eft;
static const bpt_policy *const fifo = &bpt_policy_fifo;

static bpt_machine alike(unsigned n_workers) {
    return (bpt_machine){.n_workers = n_workers, .n_kinds = 1};
}

static bpt_graph *create(size_t max_tasks, size_t max_edges) {
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(max_tasks, max_edges, &g), BPT_OK);
    return g;
}

static uint32_t add(bpt_graph *g, uint64_t cost, const uint32_t *after, size_t n_after) {
    uint32_t id;
    assert_int_equal(bpt_graph_add(g, NULL, NULL, info, cost, after, n_after, &id), BPT_OK);
    return id;
}

static uint64_t makespan(bpt_graph *g, bpt_machine m, const bpt_policy *policy) {
    bpt_timetable t;
    assert_int_equal(bpt_simulate(g, &m, policy, &t), BPT_OK);
    timetable_check(g, &m, &t);
    const uint64_t ns = t.makespan_ns;
    bpt_timetable_free(&t);
    return ns;
}

static void a_chain_takes_its_sum(void **state) {
    (void)state;
    bpt_graph *const g = create(20, 19);
    for (uint32_t i = 0; i < 20; i++) add(g, 10 + i, &(uint32_t){i - 1}, i > 0);
    for (size_t p = 0; bpt_policy_at(p); p++)
        for (unsigned n = 1; n <= 4; n++)
            assert_int_equal(makespan(g, alike(n), bpt_policy_at(p)), 390);
    bpt_graph_free(g);
}

static void a_fork_joins_after_its_rounds(void **state) {
    (void)state;
    static const uint64_t expected[] = {[1] = 44, [2] = 32, [3] = 26, [4] = 26, [5] = 20, [8] = 20};
    bpt_graph *const g = create(7, 10);
    add(g, 10, NULL, 0);
    for (uint32_t i = 0; i < 5; i++) add(g, 6, &(uint32_t){0}, 1);
    add(g, 4, (const uint32_t[]){1, 2, 3, 4, 5}, 5);
    for (size_t p = 0; bpt_policy_at(p); p++)
        for (unsigned n = 1; n <= 8; n++)
            if (expected[n] && !(n == 5 && bpt_policy_at(p) == level))
                assert_int_equal(makespan(g, alike(n), bpt_policy_at(p)), expected[n]);
    /* The first worker was given the root: it counts as the busiest, and idles in the fork. */
    assert_int_equal(makespan(g, alike(5), level), 26);
    bpt_graph_free(g);
}

static void the_long_task_goes_first_where_costs_count(void **state) {
    (void)state;
    bpt_graph *const g = create(4, 0);
    for (uint32_t i = 0; i < 4; i++) add(g, i < 3 ? 2 : 6, NULL, 0);
    assert_int_equal(makespan(g, alike(2), critical_path), 6);
    assert_int_equal(makespan(g, alike(2), eft), 6);
    assert_int_equal(makespan(g, alike(2), fifo), 8);
    assert_int_equal(makespan(g, alike(2), level), 8);
    bpt_graph_free(g);
}

/* By assigned work, not by what is left of it: after 4 | 1 the third goes behind the 1, and when
 * the fourth becomes ready, at 5, both are idle, but worker 1 has been given 3 and worker 0 was
 * given 4.
 */
static void level_balances_what_it_gave(void **state) {
    (void)state;
    bpt_graph *const g = create(5, 2);
    add(g, 4, NULL, 0);
    add(g, 1, NULL, 0);
    add(g, 2, NULL, 0);
    add(g, 7, &(uint32_t){0}, 1);
    add(g, 5, &(uint32_t){0}, 1);
    const bpt_machine m = alike(2);
    bpt_timetable t;
    assert_int_equal(bpt_simulate(g, &m, level, &t), BPT_OK);
    static const uint8_t worker[] = {0, 1, 1, 1, 0};
    assert_memory_equal(t.worker, worker, sizeof worker);
    assert_int_equal(t.makespan_ns, 11);
    assert_int_equal(t.busy_ns[0], 9);
    assert_int_equal(t.busy_ns[1], 10);
    bpt_timetable_free(&t);
    bpt_graph_free(g);
}

/* A core and a device ten times as fast. Task 0 is the core's; task 1 waits for it. */
static void eft_weighs_transfers(void **state) {
    (void)state;
    static const uint8_t kind[] = {0, 1};
    static const uint64_t cost[][2] = {{10, 1000}, {100, 10}};
    bpt_graph *const g = create(2, 1);
    add(g, 0, NULL, 0);
    add(g, 0, &(uint32_t){0}, 1);
    bpt_machine m = {.n_workers = 2, .n_kinds = 2, .kind = kind, .cost_ns = cost[0]};
    assert_int_equal(makespan(g, m, eft), 20);
    m.transfer_ns = 50;
    assert_int_equal(makespan(g, m, eft), 70);
    m.transfer_ns = 91;
    assert_int_equal(makespan(g, m, eft), 110);
    static const uint64_t edge[] = {30};
    m.edge_ns = edge;
    assert_int_equal(makespan(g, m, eft), 50);
    bpt_graph_free(g);
}

static void eft_leaves_the_slow_ones_out_where_they_would_be_late(void **state) {
    (void)state;
    static const uint8_t kind[] = {0, 0, 1};
    static const double speed[] = {1, 10};
    const bpt_machine m = {.n_workers = 3, .n_kinds = 2, .kind = kind, .speed = speed};
    bpt_graph *const g = create(20, 0);
    for (int i = 0; i < 9; i++) add(g, 1000, NULL, 0);
    assert_int_equal(makespan(g, m, eft), 900);
    assert_int_equal(makespan(g, m, fifo), 1000); /* two are on the cores */
    for (int i = 9; i < 12; i++) add(g, 1000, NULL, 0);
    assert_int_equal(makespan(g, m, eft), 1000); /* ten on the device, or as late on a core */
    bpt_graph_free(g);
}

/* Two chains of 200 wait in the queue of the worker that freed both, while the other has freed four
 * tasks of 50: it takes a chain first, if the gain is worth a move. */
static void a_long_path_is_fetched_from_a_busy_worker(void **state) {
    (void)state;
    enum { SHORT = BPT_MOVE_NS / 8, UNIT = BPT_MOVE_NS };
    for (uint64_t unit = SHORT; unit <= UNIT; unit += UNIT - SHORT) {
        bpt_graph *const g = create(10, 8);
        const uint32_t long_root = add(g, 2 * unit, NULL, 0);
        const uint32_t short_root = add(g, 2 * unit, NULL, 0);
        for (int chain = 0; chain < 2; chain++) {
            const uint32_t first = add(g, 4 * unit, &long_root, 1);
            add(g, 4 * unit, &first, 1);
        }
        for (int i = 0; i < 4; i++) add(g, unit, &short_root, 1);
        assert_int_equal(makespan(g, alike(2), critical_path), (unit == UNIT ? 12 : 14) * unit);
        assert_int_equal(makespan(g, alike(2), fifo), (2 + 4 + 4 + 2) * unit);
        bpt_graph_free(g);
    }
}

/* Chains of unlike length, far more than there are workers: no task is late, so each runs where its
 * input lies; only who has nothing left takes from the other. */
static void tasks_stay_where_there_is_time(void **state) {
    (void)state;
    enum { CHAINS = 16, LENGTH = 10, N = CHAINS * LENGTH, UNIT = 4 * BPT_MOVE_NS };
    const bpt_policy *const policies[] = {critical_path, eft};
    const bpt_machine m = alike(2);
    bpt_graph *const g = create(N, N);
    for (uint32_t i = 0; i < N; i++)
        add(g, UNIT + i / LENGTH * 7 % 5 * UNIT, &(uint32_t){i - 1}, i % LENGTH > 0);
    for (size_t p = 0; p < 2; p++) {
        bpt_timetable t;
        assert_int_equal(bpt_simulate(g, &m, policies[p], &t), BPT_OK);
        for (uint32_t i = 0; i < N; i++)
            if (i % LENGTH && t.begin_ns[i] < 0.7 * (double)t.makespan_ns)
                assert_int_equal(t.worker[i], t.worker[i - 1]);
        bpt_timetable_free(&t);
    }
    bpt_graph_free(g);
}

/* Tasks that run till nearly the end, then two of 8 in the queue of one worker and four of 1 in
 * that of the other: who took the four first would take the second of 8 too late. */
static void long_tasks_are_fetched_near_the_end(void **state) {
    (void)state;
    enum { LONG = 16, UNIT = 2 * BPT_MOVE_NS };
    bpt_graph *const g = create(LONG + 8, 6);
    for (int i = 0; i < LONG; i++) add(g, 12 * UNIT, NULL, 0);
    const uint32_t of_long = add(g, 2 * UNIT, NULL, 0), of_short = add(g, 2 * UNIT, NULL, 0);
    for (int i = 0; i < 2; i++) add(g, 8 * UNIT, &of_long, 1);
    for (int i = 0; i < 4; i++) add(g, UNIT, &of_short, 1);
    assert_int_equal(makespan(g, alike(2), critical_path), (8 * 12 + 2 + 8 + 2) * UNIT);
    assert_int_equal(makespan(g, alike(2), eft), (8 * 12 + 2 + 8 + 2) * UNIT);
    bpt_graph_free(g);
}

static void draw_machine(bpt_random *r, bpt_machine *m, uint8_t *kind, double *speed) {
    *m = alike(1 + bpt_random_below(r, 9));
    m->n_kinds = 1 + bpt_random_below(r, m->n_workers < 3 ? m->n_workers : 3);
    m->kind = kind;
    m->speed = speed;
    m->transfer_ns = bpt_random_below(r, 300);
    for (unsigned w = 0; w < m->n_workers; w++) kind[w] = (uint8_t)(w % m->n_kinds);
    for (unsigned k = 0; k < m->n_kinds; k++) speed[k] = 0.5 + bpt_random_below(r, 10);
}

static void every_timetable_is_possible_and_repeats(void **state) {
    (void)state;
    const uint64_t seed = dag_seed();
    for (uint64_t i = 0; i < 60; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        dag d;
        dag_create(&d, &r, 1 + bpt_random_below(&r, 200), NULL);
        bpt_machine m;
        uint8_t kind[16];
        double speed[3];
        draw_machine(&r, &m, kind, speed);
        for (size_t p = 0; bpt_policy_at(p); p++) {
            const uint64_t first = makespan(d.graph, m, bpt_policy_at(p));
            assert_int_equal(makespan(d.graph, m, bpt_policy_at(p)), first);
        }
        dag_free(&d);
    }
}

/* Graham 1969: a worker is idle only while a task of some longest path runs, so that
 * makespan <= work / p + (1 - 1/p) * longest path <= (2 - 1/p) * optimum. */
static void no_worker_idles_while_a_task_is_ready(void **state) {
    (void)state;
    static const bpt_policy *const greedy[] = {&bpt_policy_critical_path, &bpt_policy_eft,
                                               &bpt_policy_fifo};
    const uint64_t seed = dag_seed();
    for (uint64_t i = 0; i < 100; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        dag d;
        dag_create(&d, &r, 1 + bpt_random_below(&r, 300), NULL);
        uint64_t work = 0;
        for (uint32_t id = 0; id < d.n; id++) work += d.tasks[id].cost_ns ? d.tasks[id].cost_ns : 1;
        const uint64_t path = graph_critical_path(d.graph);
        const unsigned p = 1 + bpt_random_below(&r, 16);
        for (size_t k = 0; k < 3; k++) {
            const uint64_t ns = makespan(d.graph, alike(p), greedy[k]);
            assert_true(ns >= path && ns * p >= work);
            assert_true(ns * p <= work + (p - 1) * path);
        }
        dag_free(&d);
    }
}

/* The ids of tasks in the order in which the pool ran them. */
static struct {
    size_t n;
    uint32_t ids[200];
} order;

static bpt_status note(void *arg, unsigned worker) {
    (void)worker;
    order.ids[order.n++] = (uint32_t)(uintptr_t)arg;
    return BPT_OK;
}

/* Both run the same policies, so on one worker they must agree; the graph goes from one to the
 * other. */
static void one_worker_of_the_pool_does_what_was_played(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(dag_seed(), BPT_PURPOSE_TEST, 0);
    dag d;
    dag_create(&d, &r, 200, NULL);
    bpt_graph *const g = create(200, 200 * DAG_MAX_BEFORE);
    for (uint32_t i = 0; i < 200; i++) {
        const dag_task *const t = &d.tasks[i];
        uint32_t id;
        assert_int_equal(bpt_graph_add(g, note, (void *)(uintptr_t)i, info, t->cost_ns, t->before,
                                       t->n_before, &id),
                         BPT_OK);
    }
    for (size_t p = 0; bpt_policy_at(p); p++) {
        const bpt_machine m = alike(1);
        bpt_timetable t;
        assert_int_equal(bpt_simulate(g, &m, bpt_policy_at(p), &t), BPT_OK);
        bpt_pool *pool;
        bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
        options.policy = bpt_policy_at(p);
        assert_int_equal(bpt_pool_create(&options, &pool), BPT_OK);
        order.n = 0;
        assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
        for (size_t i = 1; i < 200; i++)
            assert_int_equal(t.begin_ns[order.ids[i]], t.end_ns[order.ids[i - 1]]);
        bpt_pool_free(pool);
        bpt_timetable_free(&t);
    }
    bpt_graph_free(g);
    dag_free(&d);
}

/* Of as many workers, under the same policy, but with other costs. */
static void keys_of_a_run_before_do_not_count(void **state) {
    (void)state;
    static const uint64_t costs[] = {10, 10, 1, 100};
    bpt_machine m = alike(2);
    m.cost_ns = costs;
    bpt_graph *const g = create(4, 1);
    add(g, 10, NULL, 0);
    add(g, 10, NULL, 0);
    const uint32_t before = add(g, 1, NULL, 0);
    add(g, 1, &before, 1);
    assert_int_equal(makespan(g, m, critical_path), 101);
    bpt_pool *pool;
    assert_int_equal(bpt_pool_open("critical-path", 2, &pool), BPT_OK);
    assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
    bpt_pool_free(pool);
    assert_int_equal(makespan(g, m, critical_path), 101);
    bpt_graph_free(g);
}

static void nonsense_is_refused_and_nothing_leaks(void **state) {
    (void)state;
    bpt_graph *const g = create(1, 0);
    bpt_timetable t;
    bpt_machine m = alike(0);
    assert_int_equal(bpt_simulate(g, &m, fifo, &t), BPT_EUSAGE);
    m.n_workers = BPT_MAX_WORKERS + 1;
    assert_int_equal(bpt_simulate(g, &m, fifo, &t), BPT_EUSAGE);
    m.n_workers = 2;
    m.n_kinds = 3;
    assert_int_equal(bpt_simulate(g, &m, fifo, &t), BPT_EUSAGE);
    m.n_kinds = 1;
    assert_int_equal(bpt_simulate(g, &m, fifo, &t), BPT_OK); /* no task at all */
    assert_int_equal(t.makespan_ns, 0);
    bpt_timetable_free(&t);
    add(g, 1, NULL, 0);
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    for (int64_t n = 0; status != BPT_OK; n++) {
        assert_int_equal(status, BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), live);
        bpt_memory_fail_at(n);
        status = bpt_simulate(g, &m, fifo, &t);
        bpt_memory_fail_at(-1);
    }
    bpt_timetable_free(&t);
    assert_int_equal(bpt_memory_live(), live);
    bpt_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_takes_its_sum),
        cmocka_unit_test(a_fork_joins_after_its_rounds),
        cmocka_unit_test(the_long_task_goes_first_where_costs_count),
        cmocka_unit_test(level_balances_what_it_gave),
        cmocka_unit_test(eft_weighs_transfers),
        cmocka_unit_test(eft_leaves_the_slow_ones_out_where_they_would_be_late),
        cmocka_unit_test(a_long_path_is_fetched_from_a_busy_worker),
        cmocka_unit_test(tasks_stay_where_there_is_time),
        cmocka_unit_test(long_tasks_are_fetched_near_the_end),
        cmocka_unit_test(every_timetable_is_possible_and_repeats),
        cmocka_unit_test(no_worker_idles_while_a_task_is_ready),
        cmocka_unit_test(one_worker_of_the_pool_does_what_was_played),
        cmocka_unit_test(keys_of_a_run_before_do_not_count),
        cmocka_unit_test(nonsense_is_refused_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
