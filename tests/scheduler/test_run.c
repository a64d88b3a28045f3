/* Running graphs: the same values with any number of workers, order, counts, sizes. */
#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/pool.h"
#include "tests/scheduler/graph_ranks.h"
#include "tests/scheduler/made_pool.h"
#include "tests/scheduler/random_dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_task_info info = {.kind = "test", .label = "task"};

static uint64_t sum_measured(const dag *d) {
    uint64_t sum = 0;
    for (uint32_t id = 0; id < d->n; id++) sum += bpt_graph_measured(d->graph, id);
    return sum;
}

static void any_number_of_workers_gives_the_same(void **state) {
    (void)state;
    static const unsigned n_workers[] = {1, 2, 3, 8};
    const uint64_t seed = dag_seed();
    for (uint64_t i = 0; i < 12; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        dag d;
        dag_create(&d, &r, 1 + bpt_random_below(&r, 800), NULL);
        for (size_t k = 0; k < sizeof n_workers / sizeof *n_workers; k++) {
            bpt_pool *pool = made_pool(NULL, n_workers[k]);
            for (int turn = 0; turn < 5; turn++) {
                dag_clear(&d);
                const uint64_t allocations = bpt_memory_allocations();
                const uint64_t begin = bpt_clock_ns();
                bpt_run_stats stats;
                assert_int_equal(bpt_pool_run(pool, d.graph, &stats), BPT_OK);
                assert_in_range(stats.wall_ns, 1, bpt_clock_ns() - begin);
                assert_int_equal(bpt_memory_allocations(), allocations);
                dag_check(&d); /* equal to the one right answer */
                assert_int_equal(stats.n_tasks, d.n);
                assert_in_range(stats.n_stolen, 0, n_workers[k] > 1 ? d.n : 0);
                assert_in_range(stats.busy_ns, 0, stats.wall_ns * n_workers[k]);
                const uint64_t measured = sum_measured(&d); /* what took no time counts as 1 ns */
                assert_in_range(stats.busy_ns, measured - d.n, measured);
            }
            bpt_pool_free(pool);
        }
        dag_free(&d);
    }
}

static void pools_may_take_turns(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(dag_seed(), BPT_PURPOSE_TEST, 0);
    bpt_pool *const pools[] = {made_pool(NULL, 1), made_pool(NULL, 3)};
    dag dags[2];
    for (int i = 0; i < 2; i++) dag_create(&dags[i], &r, 100, NULL);
    for (int turn = 0; turn < 200; turn++) {
        dag *const d = &dags[bpt_random_below(&r, 2)];
        dag_clear(d);
        assert_int_equal(bpt_pool_run(pools[bpt_random_below(&r, 2)], d->graph, NULL), BPT_OK);
        dag_check(d);
    }
    for (int i = 0; i < 2; i++) {
        dag_free(&dags[i]);
        bpt_pool_free(pools[i]);
    }
}

/* The ids of tasks in the order in which one worker ran them. */
static struct {
    size_t n;
    uint32_t ids[1000];
} order;

static bpt_status note(void *arg, unsigned worker) {
    (void)worker;
    order.ids[order.n++] = (uint32_t)(uintptr_t)arg;
    return BPT_OK;
}

/* List scheduling by looking at all tasks for the ready one of greatest key and lowest id. */
static uint32_t naive_next(const dag *d, const uint64_t *key, const bool *over) {
    uint32_t best = UINT32_MAX;
    for (uint32_t id = 0; id < d->n; id++) {
        bool ready = !over[id];
        for (uint32_t i = 0; i < d->tasks[id].n_before; i++) ready &= over[d->tasks[id].before[i]];
        if (ready && (best == UINT32_MAX || key[id] > key[best])) best = id;
    }
    return best;
}

static void one_worker_runs_the_greatest_key_first(void **state) {
    (void)state;
    static const bpt_machine alone = {.n_workers = 1, .n_kinds = 1};
    const uint64_t seed = dag_seed();
    bpt_pool *pool = made_pool(NULL, 1);
    for (uint64_t i = 0; i < 10; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        uint64_t key[300];
        dag d;
        dag_create(&d, &r, 300, NULL);
        bpt_graph *g; /* of the same shape */
        assert_int_equal(bpt_graph_create(d.n, d.n * DAG_MAX_BEFORE, &g), BPT_OK);
        for (uint32_t id = 0; id < d.n; id++) {
            const dag_task *const t = &d.tasks[id];
            uint32_t given;
            assert_int_equal(bpt_graph_add(g, note, (void *)(uintptr_t)id, info, t->cost_ns,
                                           t->before, t->n_before, &given),
                             BPT_OK);
        }
        for (int turn = 0; turn < 2; turn++) {
            order.n = 0;
            assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
            assert_int_equal(order.n, d.n);
            bpt_policy_critical_path.keys(&alone, g, key);
            bool over[300] = {false};
            for (size_t k = 0; k < order.n; k++) {
                assert_int_equal(order.ids[k], naive_next(&d, key, over));
                over[order.ids[k]] = true;
            }
            for (uint32_t id = 0; id < d.n; id++)
                bpt_graph_set_cost(g, id, bpt_random_below(&r, 1000));
        }
        bpt_graph_free(g);
        dag_free(&d);
    }
    bpt_pool_free(pool);
}

static void a_graph_may_grow_between_runs(void **state) {
    (void)state;
    bpt_pool *pool = made_pool(NULL, 2);
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(100, 200, &g), BPT_OK);
    const uint64_t allocations = bpt_memory_allocations();
    assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK); /* no task at all */
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t id;
        const uint32_t after[] = {i - 1, i / 2};
        assert_int_equal(
            bpt_graph_add(g, note, (void *)(uintptr_t)i, info, 0, after, i ? 2 : 0, &id), BPT_OK);
        order.n = 0;
        bpt_run_stats stats;
        assert_int_equal(bpt_pool_run(pool, g, &stats), BPT_OK);
        assert_int_equal(stats.n_tasks, i + 1);
        assert_int_equal(order.n, i + 1);
        for (uint32_t k = 0; k <= i; k++) assert_int_equal(order.ids[k], k);
        assert_int_equal(bpt_graph_run_number(g), i + 2);
    }
    assert_int_equal(bpt_memory_allocations(), allocations);
    bpt_graph_free(g);
    bpt_pool_free(pool);
}

/* Scratch memory is the worker's own: no two tasks may be on one worker at once. */
static _Atomic int occupied[8];
static _Atomic int clashes;
static _Atomic uint32_t n_ran;

static bpt_status use_scratch(void *arg, unsigned worker) {
    const struct timespec *const nap = arg;
    if (worker >= 8 || atomic_fetch_add(&occupied[worker], 1) != 0) atomic_fetch_add(&clashes, 1);
    if (nap) nanosleep(nap, NULL);
    if (worker < 8) atomic_fetch_sub(&occupied[worker], 1);
    atomic_fetch_add(&n_ran, 1);
    return BPT_OK;
}

static void run_and_count(bpt_pool *pool, bpt_graph *g) {
    atomic_store(&n_ran, 0);
    bpt_run_stats stats;
    assert_int_equal(bpt_pool_run(pool, g, &stats), BPT_OK);
    assert_int_equal(stats.n_tasks, bpt_graph_n_tasks(g));
    assert_int_equal(atomic_load(&n_ran), bpt_graph_n_tasks(g));
    assert_int_equal(atomic_load(&clashes), 0);
}

static void sleeping_tasks_and_sleeping_workers(void **state) {
    (void)state;
    static struct timespec naps[] = {{0, 200000}, {0, 2000000}, {0, 0}};
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(100, 200, &g), BPT_OK);
    /* Wide and narrow in turn: a fork of five, a join. */
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t id;
        const uint32_t after[] = {i - 5, i - 4, i - 3, i - 2, i - 1};
        const uint32_t fork = i / 6 * 6 - 1;
        const bpt_status status =
            i % 6 == 5 ? bpt_graph_add(g, use_scratch, &naps[i % 3], info, 0, after, 5, &id)
                       : bpt_graph_add(g, use_scratch, &naps[i % 3], info, 0, &fork, i >= 6, &id);
        assert_int_equal(status, BPT_OK);
    }
    for (unsigned n_workers = 1; n_workers <= 8; n_workers *= 2) {
        bpt_pool *pool = made_pool(NULL, n_workers);
        for (int turn = 0; turn < 3; turn++) run_and_count(pool, g);
        bpt_pool_free(pool);
    }
    bpt_graph_free(g);
}

static void wide_and_long_graphs(void **state) {
    (void)state;
    enum { N = 10000 };
    bpt_graph *wide, *chain, *fan;
    uint32_t id;
    static uint32_t middle[N];
    assert_int_equal(bpt_graph_create(N, 0, &wide), BPT_OK);
    assert_int_equal(bpt_graph_create(N, N, &chain), BPT_OK);
    assert_int_equal(bpt_graph_create(N + 2, 2 * N, &fan), BPT_OK);
    assert_int_equal(bpt_graph_add(fan, use_scratch, NULL, info, 0, NULL, 0, &id), BPT_OK);
    const uint32_t root = id;
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t last = i - 1;
        assert_int_equal(bpt_graph_add(wide, use_scratch, NULL, info, 0, NULL, 0, &id), BPT_OK);
        assert_int_equal(bpt_graph_add(chain, use_scratch, NULL, info, 0, &last, i > 0, &id),
                         BPT_OK);
        assert_int_equal(bpt_graph_add(fan, use_scratch, NULL, info, i, &root, 1, &middle[i]),
                         BPT_OK);
    }
    assert_int_equal(bpt_graph_add(fan, use_scratch, NULL, info, 0, middle, N, &id), BPT_OK);
    assert_int_equal(graph_critical_path(chain), N);
    for (unsigned n_workers = 1; n_workers <= 3; n_workers++) {
        bpt_pool *pool = made_pool(NULL, n_workers);
        run_and_count(pool, wide);
        run_and_count(pool, chain);
        run_and_count(pool, fan);
        bpt_pool_free(pool);
    }
    bpt_graph_free(wide);
    bpt_graph_free(chain);
    bpt_graph_free(fan);
}

static void a_task_without_a_body_joins_edges(void **state) {
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(3, 2, &g), BPT_OK);
    uint32_t first, join, last;
    order.n = 0;
    void *const one = (void *)1, *const two = (void *)2;
    assert_int_equal(bpt_graph_add(g, note, one, info, 0, NULL, 0, &first), BPT_OK);
    assert_int_equal(bpt_graph_add(g, NULL, NULL, info, 0, &first, 1, &join), BPT_OK);
    assert_int_equal(bpt_graph_add(g, note, two, info, 0, &join, 1, &last), BPT_OK);
    bpt_pool *pool = made_pool(NULL, 1);
    assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
    assert_int_equal(order.n, 2);
    assert_int_equal(order.ids[0], 1);
    assert_int_equal(order.ids[1], 2);
    bpt_graph_free(g);
    bpt_pool_free(pool);
}

/* The longest path, by what the last run measured; the costs say otherwise. */
static void the_measured_path_is_the_longest(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(dag_seed(), BPT_PURPOSE_TEST, 0);
    dag d;
    dag_create(&d, &r, 300, NULL);
    bpt_pool *const pool = made_pool(NULL, 3);
    assert_int_equal(bpt_graph_measured_path(d.graph), 0);
    for (int turn = 0; turn < 2; turn++) {
        uint64_t end[300], longest = 0;
        dag_clear(&d);
        bpt_run_stats stats;
        assert_int_equal(bpt_pool_run(pool, d.graph, &stats), BPT_OK);
        for (uint32_t id = 0; id < d.n; id++) {
            const dag_task *const t = &d.tasks[id];
            end[id] = 0;
            for (uint32_t i = 0; i < t->n_before; i++)
                if (end[id] < end[t->before[i]]) end[id] = end[t->before[i]];
            end[id] += bpt_graph_measured(d.graph, id);
            if (longest < end[id]) longest = end[id];
        }
        assert_int_equal(bpt_graph_measured_path(d.graph), longest);
        assert_true(longest <= stats.wall_ns);
    }
    bpt_pool_free(pool);
    dag_free(&d);
}

/* Thousands of short runs, where workers fall asleep and wake all the time: a lost wake-up hangs.
 */
static void no_wake_up_is_lost(void **state) {
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(12, 30, &g), BPT_OK);
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t id;
        const uint32_t after[] = {i - 3, i - 2, i - 1};
        const bool join = i % 4 == 3;
        const uint32_t fork = i / 4 * 4 - 1;
        assert_int_equal(bpt_graph_add(g, use_scratch, NULL, info, 0, join ? after : &fork,
                                       join ? 3 : i >= 4, &id),
                         BPT_OK);
    }
    for (unsigned n_workers = 2; n_workers <= 5; n_workers++) {
        bpt_pool *pool = made_pool(NULL, n_workers);
        for (int turn = 0; turn < 1500; turn++) run_and_count(pool, g);
        bpt_pool_free(pool);
    }
    bpt_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_workers_gives_the_same),
        cmocka_unit_test(pools_may_take_turns),
        cmocka_unit_test(one_worker_runs_the_greatest_key_first),
        cmocka_unit_test(a_graph_may_grow_between_runs),
        cmocka_unit_test(sleeping_tasks_and_sleeping_workers),
        cmocka_unit_test(wide_and_long_graphs),
        cmocka_unit_test(a_task_without_a_body_joins_edges),
        cmocka_unit_test(the_measured_path_is_the_longest),
        cmocka_unit_test(no_wake_up_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
