/* Where a task should end first, of loads that are made up; and the loads that a pool keeps. */
#include "base/clock.h"
#include "scheduler/graph_private.h"
#include "scheduler/load.h"
#include "scheduler/pool.h"
#include "scheduler/pool_private.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_task_info info = {.kind = "test", .label = "task"};

/* ---- where it ends first ---- */

enum { N_WORKERS = 3, COST = 100000, GAIN = 50000, UNTIL = 1000000, NOW = 5000000, TASK = 2 };

/* Behind two tasks a third one, which is ready NOW. */
typedef struct question {
    bpt_graph *graph;
    bpt_machine machine;
    bpt_load loads[N_WORKERS];
    uint8_t ran_on[2]; /* the first two */
    uint64_t begin_ns;
} question;

static question ask(void) {
    question q = {.machine = {.n_workers = N_WORKERS, .n_kinds = 1}, .begin_ns = NOW - 10};
    static const uint32_t after[] = {0, 1};
    uint32_t id;
    assert_int_equal(bpt_graph_create(3, 2, &q.graph), BPT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            bpt_graph_add(q.graph, NULL, NULL, info, COST, after, i == TASK ? 2 : 0, &id), BPT_OK);
    q.graph->patience = (bpt_patience){GAIN, UNTIL};
    return q;
}

/* @param until_ns after NOW; may be before it */
static void load(question *q, unsigned worker, int64_t until_ns, uint64_t queued_ns) {
    atomic_store(&q->loads[worker].until_ns, (uint64_t)(NOW + until_ns));
    atomic_store(&q->loads[worker].queued_ns, queued_ns);
}

static unsigned answer(const question *q, unsigned maker) {
    const bpt_policy_view v = {
        .graph = q->graph,
        .machine = &q->machine,
        .loads = q->loads,
        .ran_on = q->ran_on,
        .begin_ns = q->begin_ns,
        .now_ns = NOW,
    };
    return bpt__earliest_finish(&v, TASK, maker);
}

static void it_stays_where_nobody_is_better(void **state) {
    (void)state;
    question q = ask();
    for (unsigned maker = 0; maker < N_WORKERS; maker++) assert_int_equal(answer(&q, maker), maker);
    load(&q, 1, 0, GAIN); /* what a move among alike workers has to gain, and no more */
    assert_int_equal(answer(&q, 1), 1);
    load(&q, 1, 0, GAIN + 1);
    assert_int_equal(answer(&q, 1), 0);
    load(&q, 1, GAIN + 1, 0); /* likewise what runs there */
    assert_int_equal(answer(&q, 1), 0);
    load(&q, 1, 0, 20001);
    assert_int_equal(answer(&q, 1), 1);
    q.begin_ns = NOW - UNTIL; /* later it takes less */
    assert_int_equal(answer(&q, 1), 0);
    load(&q, 1, 0, BPT_MOVE_NS);
    assert_int_equal(answer(&q, 1), 1);
    bpt_graph_free(q.graph);
}

static void all_that_a_worker_has_counts(void **state) {
    (void)state;
    question q = ask();
    load(&q, 0, 4 * GAIN, 0);
    load(&q, 1, 30000, 30000);
    load(&q, 2, 50000, 0);
    assert_int_equal(answer(&q, 0), 2);
    load(&q, 2, 30000, 30000); /* the first of equals */
    assert_int_equal(answer(&q, 0), 1);
    load(&q, 1, 2 * GAIN, 0); /* the best, though not by that much better than the second */
    assert_int_equal(answer(&q, 0), 2);
    /* What should have ended ends now at best. */
    load(&q, 0, 2 * GAIN, 0);
    load(&q, 1, -4000000, GAIN);
    load(&q, 2, -4000000, GAIN);
    assert_int_equal(answer(&q, 0), 0);
    bpt_graph_free(q.graph);
}

static void between_kinds_transfers_count(void **state) {
    static const uint8_t kinds[N_WORKERS] = {0, 1, 1};
    static const uint64_t edges[] = {7000, 9000};
    (void)state;
    question q = ask();
    q.machine.n_kinds = 2;
    q.machine.kind = kinds;
    q.machine.transfer_ns = 10000;
    load(&q, 0, 0, 10000);
    assert_int_equal(answer(&q, 0), 0);
    load(&q, 0, 0, 10001); /* and nothing more has to be gained */
    assert_int_equal(answer(&q, 0), 1);
    q.machine.edge_ns = edges; /* the longer, at the same time as the other */
    load(&q, 0, 0, 9000);
    assert_int_equal(answer(&q, 0), 0);
    load(&q, 0, 0, 9001);
    assert_int_equal(answer(&q, 0), 1);
    q.ran_on[1] = 2; /* is there, and the first one is here */
    load(&q, 1, 0, 50000);
    load(&q, 0, 0, 0); /* which the longer edge has to reach */
    assert_int_equal(answer(&q, 0), 2);
    load(&q, 2, 0, 2001);
    load(&q, 0, 0, 9000); /* at the same time as what is queued */
    assert_int_equal(answer(&q, 0), 2);
    load(&q, 2, 0, 9000);
    assert_int_equal(answer(&q, 0), 0);
    load(&q, 2, 0, 8999);
    assert_int_equal(answer(&q, 0), 2);
    bpt_graph_free(q.graph);
}

static void each_kind_has_its_cost(void **state) {
    static const uint8_t kinds[N_WORKERS] = {0, 1, 1};
    static const uint64_t costs[3][2] = {{1, 1}, {1, 1}, {1000, 400}};
    (void)state;
    question q = ask();
    q.machine.n_kinds = 2;
    q.machine.kind = kinds;
    q.machine.cost_ns = costs[0];
    assert_int_equal(answer(&q, 0), 1);
    load(&q, 1, 0, 600);
    load(&q, 2, 0, 600);
    assert_int_equal(answer(&q, 0), 0);
    load(&q, 2, 0, 599);
    assert_int_equal(answer(&q, 0), 2);
    bpt_graph_free(q.graph);
}

/* ---- what a pool keeps ---- */

static struct {
    bpt_pool *pool;
    _Atomic bool second_began;
    _Atomic unsigned n_wrong;
    uint64_t before_ns, last_ns;
    unsigned n_placed;
} seen;

static void wrong_if(bool wrong) {
    if (wrong) atomic_fetch_add(&seen.n_wrong, 1);
}

static void open_pool(const bpt_policy *policy, unsigned n_workers) {
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    options.n_workers = n_workers;
    options.policy = policy;
    atomic_store(&seen.n_wrong, 0);
    atomic_store(&seen.second_began, false);
    seen.n_placed = 0;
    assert_int_equal(bpt_pool_create(&options, &seen.pool), BPT_OK);
}

static uint32_t add(bpt_graph *g, bpt_task_fn fn, uintptr_t arg, uint64_t cost_ns,
                    const uint32_t *after, size_t n_after) {
    uint32_t id;
    assert_int_equal(bpt_graph_add(g, fn, (void *)arg, info, cost_ns, after, n_after, &id), BPT_OK);
    return id;
}

enum { LONG_NS = 1000000000 };

/* Beside this task, which should take long, so many are queued that should, too. */
static bpt_status look(void *arg, unsigned worker) {
    const bpt_load *load = &seen.pool->loads[worker];
    const uint64_t until_ns = atomic_load(&load->until_ns), now_ns = bpt_clock_ns();
    wrong_if(until_ns < now_ns + LONG_NS / 2 || until_ns > now_ns + LONG_NS);
    wrong_if(atomic_load(&load->queued_ns) != (uintptr_t)arg * LONG_NS);
    return BPT_OK;
}

static void loads_are_kept(void **state) {
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(4, 3, &g), BPT_OK);
    const uint32_t root = add(g, look, 0, LONG_NS, NULL, 0);
    for (uintptr_t left = 3; left > 0; left--) (void)add(g, look, left - 1, LONG_NS, &root, 1);
    open_pool(&bpt_policy_eft, 1);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(bpt_pool_run(seen.pool, g, NULL), BPT_OK);
        assert_int_equal(atomic_load(&seen.n_wrong), 0);
        assert_int_equal(atomic_load(&seen.pool->loads[0].until_ns), 0);
        assert_int_equal(atomic_load(&seen.pool->loads[0].queued_ns), 0);
        assert_int_equal(atomic_load(&seen.pool->loads[0].assigned_ns), 4ull * LONG_NS);
    }
    bpt_pool_free(seen.pool);
    bpt_graph_free(g);
}

/* @return whether it comes to pass within a minute */
static bool await(bool (*happens)(void)) {
    const uint64_t end_ns = bpt_clock_ns() + 60ull * 1000000000;
    while (!happens() && bpt_clock_ns() < end_ns) sched_yield();
    return happens();
}

static bool one_is_idle(void) {
    return atomic_load(&seen.pool->n_idle) == 1;
}

static bool second_began(void) {
    return atomic_load(&seen.second_began);
}

static bpt_status await_idle(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    wrong_if(!await(one_is_idle));
    return BPT_OK;
}

static bpt_status await_second(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    wrong_if(!await(second_began));
    return BPT_OK;
}

static bpt_status begin_second(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    atomic_store(&seen.second_began, true);
    return BPT_OK;
}

/* Two tasks are too short to leave the worker that made them ready. One runs there, and waits for
 * the other: who sleeps is woken for it, and takes it from that worker's load. */
static void what_waits_behind_another_is_fetched(void **state) {
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(3, 2, &g), BPT_OK);
    const uint32_t root = add(g, await_idle, 0, 10, NULL, 0);
    (void)add(g, await_second, 0, 20, &root, 1);
    (void)add(g, begin_second, 0, 10, &root, 1);
    open_pool(&bpt_policy_eft, 2);
    for (int turn = 0; turn < 2; turn++) {
        atomic_store(&seen.second_began, false);
        assert_int_equal(bpt_pool_run(seen.pool, g, NULL), BPT_OK);
        assert_int_equal(atomic_load(&seen.n_wrong), 0);
        for (int w = 0; w < 2; w++)
            assert_int_equal(atomic_load(&seen.pool->loads[w].queued_ns), 0);
    }
    bpt_pool_free(seen.pool);
    bpt_graph_free(g);
}

static bpt_status take_time(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    const uint64_t end_ns = bpt_clock_ns() + 1000000;
    while (bpt_clock_ns() < end_ns) sched_yield();
    return BPT_OK;
}

/* The view has the time of now, and that of the begin of this run. */
static unsigned place_by_the_clock(const bpt_policy_view *v, uint32_t id, unsigned maker) {
    const uint64_t now_ns = bpt_clock_ns();
    (void)id;
    wrong_if(v->begin_ns < seen.before_ns || v->begin_ns > v->now_ns || v->now_ns > now_ns);
    wrong_if(seen.n_placed++ > 0 && v->now_ns < seen.last_ns + 1000000);
    seen.last_ns = v->now_ns;
    return maker;
}

static void a_policy_sees_the_time(void **state) {
    static const bpt_policy by_the_clock = {
        .name = "by the clock", .place = place_by_the_clock, .stealing = BPT_STEAL_NEVER};
    (void)state;
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(3, 2, &g), BPT_OK);
    uint32_t last = add(g, take_time, 0, 1, NULL, 0);
    for (int i = 0; i < 2; i++) last = add(g, take_time, 0, 1, &last, 1);
    open_pool(&by_the_clock, 1);
    for (int turn = 0; turn < 2; turn++) {
        seen.n_placed = 0;
        seen.before_ns = bpt_clock_ns();
        assert_int_equal(bpt_pool_run(seen.pool, g, NULL), BPT_OK);
        assert_int_equal(seen.n_placed, 3);
        assert_int_equal(atomic_load(&seen.n_wrong), 0);
    }
    bpt_pool_free(seen.pool);
    bpt_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_stays_where_nobody_is_better),
        cmocka_unit_test(all_that_a_worker_has_counts),
        cmocka_unit_test(between_kinds_transfers_count),
        cmocka_unit_test(each_kind_has_its_cost),
        cmocka_unit_test(loads_are_kept),
        cmocka_unit_test(what_waits_behind_another_is_fetched),
        cmocka_unit_test(a_policy_sees_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
