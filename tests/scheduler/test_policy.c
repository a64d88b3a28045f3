/* Policies in the pool: no result depends on them, and each keeps its order. */
#include "base/memory.h"
#include "scheduler/graph_private.h"
#include "scheduler/pool.h"
#include "tests/scheduler/made_pool.h"
#include "tests/scheduler/random_dag.h"

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_task_info info = {.kind = "test", .label = "task"};

static void a_policy_is_found_by_its_name(void **state) {
    (void)state;
    static const char *const names[] = {"critical-path", "level", "eft", "fifo"};
    const bpt_policy *policy;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(bpt_policy_find(names[i], &policy), BPT_OK);
        assert_ptr_equal(policy, bpt_policy_at(i));
        assert_string_equal(policy->name, names[i]);
    }
    assert_null(bpt_policy_at(4));
    assert_int_equal(bpt_policy_find("random", &policy), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "\"random\""));
    assert_non_null(strstr(bpt_error_last()->hint, "critical-path, level, eft, fifo"));
    assert_ptr_equal(policy, bpt_policy_at(3)); /* untouched */
}

static void a_pool_opens_by_the_name_of_its_policy(void **state) {
    (void)state;
    bpt_pool *pool = NULL;
    assert_int_equal(bpt_pool_open("random", 1, &pool), BPT_EUSAGE);
    assert_int_equal(bpt_pool_open("eft", BPT_MAX_WORKERS + 1, &pool), BPT_EUSAGE);
    assert_null(pool);
    assert_int_equal(bpt_pool_open("eft", 2, &pool), BPT_OK);
    assert_int_equal(bpt_pool_n_workers(pool), 2);
    bpt_pool_free(pool);
}

/* Started events are over at once: who started them completes them. */
static void complete_at_once(dag_task *t) {
    bpt_graph *const g = t->owner->graph;
    const bpt_status status = dag_compute(t);
    (void)bpt_graph_complete(g, bpt_graph_run_number(g), t->id, status);
}

/* One graph goes from policy to policy, so that keys of one would show in the next. */
static void no_policy_changes_a_result(void **state) {
    (void)state;
    static const unsigned n_workers[] = {1, 2, 3, 8};
    const uint64_t seed = dag_seed();
    for (uint64_t i = 0; i < 8; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        dag d;
        dag_create(&d, &r, 1 + bpt_random_below(&r, 500), i % 2 ? complete_at_once : NULL);
        for (size_t k = 0; k < 16; k++) {
            const bpt_policy *const policy = bpt_policy_at(k % 4);
            bpt_pool *const pool = made_pool(policy, n_workers[k / 4]);
            for (int turn = 0; turn < 3; turn++) {
                dag_clear(&d);
                const uint64_t allocations = bpt_memory_allocations();
                bpt_run_stats stats;
                assert_int_equal(bpt_pool_run(pool, d.graph, &stats), BPT_OK);
                assert_int_equal(bpt_memory_allocations(), allocations);
                dag_check(&d);
                assert_int_equal(stats.n_tasks, d.n);
                if (policy->stealing == BPT_STEAL_NEVER) assert_int_equal(stats.n_stolen, 0);
            }
            bpt_pool_free(pool);
        }
        dag_free(&d);
    }
}

static void any_policy_survives_a_failure(void **state) {
    (void)state;
    const uint64_t seed = dag_seed();
    for (size_t k = 0; k < 8; k++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, k);
        bpt_pool *const pool = made_pool(bpt_policy_at(k % 4), 1 + (unsigned)k / 4);
        dag d;
        dag_create(&d, &r, 100, complete_at_once);
        for (uint32_t id = 0; id < d.n; id += 7) {
            dag_clear(&d);
            d.fails = id;
            assert_int_equal(bpt_pool_run(pool, d.graph, NULL), BPT_ENUMERIC);
            assert_int_equal(atomic_load(&d.too_early), 0);
            assert_int_equal(atomic_load(&d.tasks[id].ran), 1);
            dag_clear(&d);
            d.fails = DAG_NONE;
            assert_int_equal(bpt_pool_run(pool, d.graph, NULL), BPT_OK);
            dag_check(&d);
        }
        dag_free(&d);
        bpt_pool_free(pool);
    }
}

/* The ids of tasks in the order in which one worker ran them. */
static struct {
    size_t n;
    uint32_t ids[8];
} order;

static bpt_status note(void *arg, unsigned worker) {
    (void)worker;
    order.ids[order.n++] = (uint32_t)(uintptr_t)arg;
    return BPT_OK;
}

static void check_order(const bpt_policy *policy, bpt_graph *g, const uint32_t *expected) {
    bpt_pool *const pool = made_pool(policy, 1);
    for (int turn = 0; turn < 2; turn++) {
        order.n = 0;
        assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
        assert_int_equal(order.n, 7);
        assert_memory_equal(order.ids, expected, 7 * sizeof *expected);
    }
    bpt_pool_free(pool);
}

/* Two entries; behind 1 a long branch (4, 6), so that each policy has an order of its own:
 *     0 -> 2 -> 5,   0 -> 3,   1 -> 4 -> 6 */
static void each_policy_has_its_order(void **state) {
    (void)state;
    static const uint32_t before[7] = {0, 0, 0, 0, 1, 2, 4};
    static const uint64_t cost[7] = {10, 10, 10, 50, 20, 10, 100};
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(7, 5, &g), BPT_OK);
    for (uint32_t i = 0; i < 7; i++) {
        uint32_t id;
        assert_int_equal(
            bpt_graph_add(g, note, (void *)(uintptr_t)i, info, cost[i], &before[i], i >= 2, &id),
            BPT_OK);
    }
    static const uint32_t by_rank[] = {1, 4, 6, 0, 3, 2, 5};
    static const uint32_t by_level[] = {0, 1, 2, 3, 4, 5, 6};
    static const uint32_t by_arrival[] = {0, 1, 2, 3, 4, 5, 6};
    check_order(&bpt_policy_critical_path, g, by_rank);
    check_order(&bpt_policy_level, g, by_level);
    check_order(&bpt_policy_eft, g, by_rank);
    check_order(&bpt_policy_fifo, g, by_arrival);
    bpt_graph_set_cost(g, 5, 1000);
    static const uint32_t by_new_rank[] = {0, 2, 5, 3, 1, 4, 6}; /* 3 is drawn to its sibling 2 */
    check_order(&bpt_policy_critical_path, g, by_new_rank);
    check_order(&bpt_policy_level, g, by_level);
    bpt_graph_free(g);
}

/* Within a level fifo goes by arrival, level by id:  0 -> 3 -> 5,  1 -> 2 -> 4 -> 6 */
static void fifo_is_not_by_id(void **state) {
    (void)state;
    static const uint32_t before[7] = {0, 0, 1, 0, 2, 3, 4};
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(7, 5, &g), BPT_OK);
    for (uint32_t i = 0; i < 7; i++) {
        uint32_t id;
        assert_int_equal(
            bpt_graph_add(g, note, (void *)(uintptr_t)i, info, 1, &before[i], i >= 2, &id), BPT_OK);
    }
    static const uint32_t by_arrival[] = {0, 1, 3, 2, 5, 4, 6};
    static const uint32_t by_level[] = {0, 1, 2, 3, 4, 5, 6};
    static const uint32_t by_rank[] = {1, 0, 2, 3, 4, 5, 6};
    check_order(&bpt_policy_fifo, g, by_arrival);
    check_order(&bpt_policy_level, g, by_level);
    check_order(&bpt_policy_critical_path, g, by_rank);
    bpt_graph_free(g);
}

/* When the roots are over, one worker has the ends of both long chains, the other many short tasks.
 * It must not do all of them first. */
typedef enum {
    AT_ONCE,      /* both chains are there before a short task begins */
    LATER,        /* not before two short tasks have begun */
    BEHIND_EVENT, /* the second is behind an event that a short task ends */
    PATIENT,      /* there is more work, so that for some time no move is worth it */
} chains_come;

enum { N_SHORT = 20, N_MORE = 16 };
static const uint32_t no_event = UINT32_MAX;

static struct {
    bpt_graph *g;
    uint32_t event;           /* no_event, or what the second short task ends */
    _Atomic bool first_chain; /* has begun: both were made ready */
    _Atomic uint32_t n_started, second_chain, last_short;
} race;

static bpt_status end_short_root(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    while (!atomic_load(&race.first_chain)) sched_yield();
    return BPT_OK;
}

static bpt_status wait_for_short(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    while (atomic_load(&race.n_started) < 2) sched_yield();
    return BPT_OK;
}

static bpt_status nap(void *arg, unsigned worker) {
    (void)worker;
    _Atomic uint32_t *const when = arg;
    if (when) atomic_store(when, atomic_fetch_add(&race.n_started, 1));
    if (!when) atomic_store(&race.first_chain, true);
    const struct timespec ms = {.tv_nsec = when ? 2000000 : 90000000};
    if (race.event != no_event && when == &race.last_short && atomic_load(when) == 1)
        (void)bpt_graph_complete(race.g, bpt_graph_run_number(race.g), race.event, BPT_OK);
    return nanosleep(&ms, NULL) == 0 ? BPT_OK : BPT_EIO;
}

static void build_race(chains_come when) {
    const uint64_t unit = 1000000;
    const bpt_task_fn long_root = when == LATER ? wait_for_short : NULL;
    const bpt_task_fn short_root = when == LATER ? NULL : end_short_root;
    uint32_t id, behind = 0;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(5 + N_SHORT + N_MORE, 3 + N_SHORT, &g), BPT_OK);
    (void)bpt_graph_add(g, long_root, NULL, info, 1, NULL, 0, &id);
    (void)bpt_graph_add(g, short_root, NULL, info, 1, NULL, 0, &id);
    race.g = g;
    race.event = no_event;
    if (when == BEHIND_EVENT) {
        (void)bpt_graph_add_event(g, NULL, NULL, info, unit, &(uint32_t){0}, 1, &race.event);
        behind = race.event;
    }
    (void)bpt_graph_add(g, nap, NULL, info, unit, &(uint32_t){0}, 1, &id);
    (void)bpt_graph_add(g, nap, &race.second_chain, info, unit, &behind, 1, &id);
    for (int i = 0; i < N_SHORT; i++)
        (void)bpt_graph_add(g, nap, &race.last_short, info, 1000, &(uint32_t){1}, 1, &id);
    for (int i = 0; i < N_MORE && when == PATIENT; i++)
        (void)bpt_graph_add(g, NULL, NULL, info, unit * 9 / 10, NULL, 0, &id);
}

static void a_long_path_is_fetched_from_a_busy_worker(void **state) {
    (void)state;
    bpt_pool *const pool = made_pool(&bpt_policy_critical_path, 2);
    for (int when = AT_ONCE; when <= PATIENT; when++) {
        build_race((chains_come)when);
        for (int turn = 0; turn < 2; turn++) {
            atomic_store(&race.first_chain, false);
            atomic_store(&race.n_started, 0);
            assert_int_equal(bpt_pool_run(pool, race.g, NULL), BPT_OK);
            if (atomic_load(&race.second_chain) > atomic_load(&race.last_short))
                fail_msg("all short tasks were first, case %d, turn %d", when, turn);
        }
        bpt_graph_free(race.g);
    }
    bpt_pool_free(pool);
}

static void keys_of_level_fall_with_depth(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(dag_seed(), BPT_PURPOSE_TEST, 0);
    dag d;
    dag_create(&d, &r, 300, NULL);
    static uint64_t key[300], depth[300];
    const bpt_machine alike = {.n_workers = 2, .n_kinds = 1};
    bpt_policy_level.keys(&alike, d.graph, key);
    for (uint32_t id = 0; id < d.n; id++) {
        const dag_task *const t = &d.tasks[id];
        depth[id] = 0;
        for (uint32_t i = 0; i < t->n_before; i++)
            if (depth[id] < depth[t->before[i]] + 1) depth[id] = depth[t->before[i]] + 1;
        assert_int_equal(UINT64_MAX - key[id], depth[id]);
    }
    dag_free(&d);
}

static uint32_t add(bpt_graph *g, uint64_t cost_ns, const uint32_t *after, size_t n_after) {
    uint32_t id;
    assert_int_equal(bpt_graph_add(g, NULL, NULL, info, cost_ns, after, n_after, &id), BPT_OK);
    return id;
}

enum { FORK, CHAIN, END, MIDDLE, SMALL, N_FORK };

/* Behind a task of 10 ns one of 50 with 20 behind it, and those of 30 and 5, which end nowhere; all
 * times @p unit. */
static void add_fork(bpt_graph *g, uint64_t unit) {
    const uint32_t fork = add(g, 10 * unit, NULL, 0), chain = add(g, 50 * unit, &fork, 1);
    (void)add(g, 20 * unit, &chain, 1);
    (void)add(g, 30 * unit, &fork, 1);
    (void)add(g, 5 * unit, &fork, 1);
}

static void siblings_run_together_where_there_is_time(void **state) {
    (void)state;
    enum { N = 8, UNIT = 1000, WORK = 115 * UNIT, PATH = 80 * UNIT };
    static const uint8_t kinds[2] = {0, 1};
    bpt_graph *g;
    uint64_t key[N_FORK * N];
    assert_int_equal(bpt_graph_create(N_FORK * N, N_FORK * N, &g), BPT_OK);
    for (int i = 0; i < N; i++) add_fork(g, UNIT);
    for (unsigned n_workers = 1; n_workers <= 16; n_workers++) {
        const bpt_machine alike = {.n_workers = n_workers, .n_kinds = 1};
        const bpt_patience p = bpt_machine_keys(&alike, g, key);
        assert_int_equal(key[FORK], PATH);
        assert_int_equal(key[CHAIN], 70 * UNIT);
        assert_int_equal(key[END], 20 * UNIT);
        const double slack = (double)N * WORK / n_workers / PATH - 1;
        const double part = slack < 0 ? 0 : slack > 1 ? 1 : slack;
        const double patience = slack < 3 ? 0 : slack > 5 ? 1 : (slack - 3) / 2;
        assert_true(fabs((double)p.gain_ns - BPT_MOVE_NS - patience * PATH) < 0.001 * PATH + 1);
        assert_true(fabs((double)p.until_ns - 0.75 * N * WORK / n_workers) < 1);
        assert_true(fabs((double)key[MIDDLE] - (30 + part * 40) * UNIT) < 0.05 * UNIT);
        assert_true(fabs((double)key[SMALL] - (5 + part * 65) * UNIT) < 0.07 * UNIT);
        assert_true(key[CHAIN] > key[MIDDLE] && key[MIDDLE] > key[SMALL]);
    }
    const bpt_machine unlike = {.n_workers = 2, .n_kinds = 2, .kind = kinds};
    assert_int_equal(bpt_patience_gain(bpt_machine_keys(&unlike, g, key), 0), BPT_MOVE_NS);
    assert_int_equal(key[MIDDLE], 30 * UNIT);
    bpt_graph_free(g);
}

/* Behind two tasks it is the one that ends later that tells who the siblings are. */
static void siblings_are_those_of_the_last_to_end(void **state) {
    (void)state;
    const bpt_machine alone = {.n_workers = 1, .n_kinds = 1};
    bpt_graph *g;
    uint64_t key[5 + 50];
    assert_int_equal(bpt_graph_create(5 + 50, 8, &g), BPT_OK);
    const uint32_t early = add(g, 1000, NULL, 0), late = add(g, 1000, &early, 1);
    const uint32_t urgent = add(g, 9000, &early, 1), sibling = add(g, 4000, &late, 1);
    const uint32_t both = add(g, 100, (const uint32_t[]){early, late}, 2);
    for (int i = 0; i < 50; i++) (void)add(g, 1000, NULL, 0); /* time for all */
    bpt_machine_keys(&alone, g, key);
    assert_int_equal(key[urgent], 9000);
    assert_int_equal(key[sibling], 4000);
    assert_in_range(key[both], 3990, 3999);
    bpt_graph_free(g);
}

static void keys_bear_absurd_costs(void **state) {
    (void)state;
    const bpt_machine alone = {.n_workers = 1, .n_kinds = 1};
    bpt_graph *g;
    uint64_t key[N_FORK * 4];
    assert_int_equal(bpt_graph_create(N_FORK * 4, N_FORK * 4, &g), BPT_OK);
    for (int i = 0; i < 4; i++) add_fork(g, UINT64_MAX / 80);
    bpt_machine_keys(&alone, g, key);
    for (size_t i = 0; i < bpt_graph_n_tasks(g); i++) assert_true(key[i] >= 1);
    assert_true(key[CHAIN] > key[MIDDLE] && key[MIDDLE] > key[SMALL]);
    bpt_graph_free(g);
}

/* Waiting for a message takes no worker, however long it is. */
static void events_are_no_work(void **state) {
    (void)state;
    const bpt_machine alone = {.n_workers = 1, .n_kinds = 1};
    bpt_graph *g;
    uint64_t key[4];
    uint32_t event;
    assert_int_equal(bpt_graph_create(4, 4, &g), BPT_OK);
    const uint32_t first = add(g, 10, NULL, 0);
    assert_int_equal(bpt_graph_add_event(g, NULL, NULL, info, 1000, NULL, 0, &event), BPT_OK);
    (void)add(g, 900, &first, 1);
    const uint32_t sibling = add(g, 90, &first, 1);
    bpt_machine_keys(&alone, g, key);
    assert_int_equal(key[sibling], 90);
    bpt_graph_free(g);
}

/* Keys depend on how many workers share the work. */
static void a_graph_has_the_keys_of_its_pool(void **state) {
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(2 * N_FORK, 2 * N_FORK, &g), BPT_OK);
    for (int i = 0; i < 2; i++) add_fork(g, 1000);
    for (unsigned turn = 0; turn < 4; turn++) {
        bpt_pool *const pool = made_pool(NULL, turn % 2 ? 4 : 1);
        assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
        if (turn % 2)
            assert_int_equal(g->tasks[MIDDLE].key, 30 * 1000);
        else
            assert_true(g->tasks[MIDDLE].key > 60 * 1000);
        bpt_pool_free(pool);
    }
    bpt_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_is_found_by_its_name),
        cmocka_unit_test(a_pool_opens_by_the_name_of_its_policy),
        cmocka_unit_test(no_policy_changes_a_result),
        cmocka_unit_test(any_policy_survives_a_failure),
        cmocka_unit_test(each_policy_has_its_order),
        cmocka_unit_test(fifo_is_not_by_id),
        cmocka_unit_test(a_long_path_is_fetched_from_a_busy_worker),
        cmocka_unit_test(keys_of_level_fall_with_depth),
        cmocka_unit_test(siblings_run_together_where_there_is_time),
        cmocka_unit_test(siblings_are_those_of_the_last_to_end),
        cmocka_unit_test(keys_bear_absurd_costs),
        cmocka_unit_test(events_are_no_work),
        cmocka_unit_test(a_graph_has_the_keys_of_its_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
