/* What is ready runs on as many workers as there are, under every policy; who has nothing to do
 * sleeps. */
#include "base/clock.h"
#include "scheduler/pool.h"
#include "scheduler/simulate.h"
#include "tests/scheduler/made_pool.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_WORKERS = 4 };

static const bpt_task_info info = {.kind = "test", .label = "task"};

static bpt_graph *create_graph(size_t max_tasks, size_t max_edges) {
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(max_tasks, max_edges, &g), BPT_OK);
    return g;
}

/* ---- tasks that wait for each other ---- */

static struct {
    uint32_t n;               /* that meet */
    _Atomic uint32_t n_begun; /* of these */
} meeting;

static bpt_status meet(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    const uint64_t begin = bpt_clock_ns();
    atomic_fetch_add(&meeting.n_begun, 1);
    while (atomic_load(&meeting.n_begun) < meeting.n) {
        if (bpt_clock_seconds_since(begin) > 10) return bpt_fail(BPT_EDATA, "somebody is missing");
        sched_yield();
    }
    return BPT_OK;
}

/* As many tasks as workers, all behind one or behind none. They cost nearly the same, so that a
 * policy that leaves tasks where they are has one for each worker. */
static void check_meeting(const bpt_policy *policy, unsigned n_workers, size_t n_before) {
    bpt_graph *const g = create_graph(1 + MAX_WORKERS, MAX_WORKERS);
    bpt_pool *const pool = made_pool(policy, n_workers);
    uint32_t id = 0;
    meeting.n = n_workers;
    if (n_before) assert_int_equal(bpt_graph_add(g, NULL, NULL, info, 1, NULL, 0, &id), BPT_OK);
    const uint32_t first = id;
    for (unsigned i = 0; i < n_workers; i++)
        assert_int_equal(bpt_graph_add(g, meet, NULL, info, 1000000000 + i, &first, n_before, &id),
                         BPT_OK);
    for (int turn = 0; turn < 20; turn++) {
        bpt_run_stats stats;
        atomic_store(&meeting.n_begun, 0);
        if (bpt_pool_run(pool, g, &stats) != BPT_OK)
            fail_msg("%s, %u workers, turn %d: %s", policy->name, n_workers, turn,
                     bpt_error_last()->text);
        if (policy->stays && n_before) /* the first may have been taken, too */
            assert_in_range(stats.n_stolen, n_workers - 1, n_workers);
        if (policy->stealing == BPT_STEAL_NEVER) assert_int_equal(stats.n_stolen, 0);
    }
    bpt_pool_free(pool);
    bpt_graph_free(g);
}

static void all_workers_come_for_what_is_ready(void **state) {
    (void)state;
    for (size_t p = 0; bpt_policy_at(p); p++)
        for (unsigned n_workers = 2; n_workers <= MAX_WORKERS; n_workers++)
            for (size_t n_before = 0; n_before < 2; n_before++)
                check_meeting(bpt_policy_at(p), n_workers, n_before);
}

/* ---- where tasks stay ---- */

enum { N_PLACED = 13 };

static uint8_t ran_on[N_PLACED];

static bpt_status note_worker(void *arg, unsigned worker) {
    ran_on[(uintptr_t)arg] = (uint8_t)worker;
    return BPT_OK;
}

/* In every run: what was given in the one before does not count. */
static void level_gives_to_whom_was_played(void **state) {
    (void)state;
    const bpt_machine alike = {.n_workers = 3, .n_kinds = 1};
    bpt_graph *const g = create_graph(N_PLACED, N_PLACED);
    bpt_pool *const pool = made_pool(&bpt_policy_level, 3);
    bpt_timetable t;
    for (uintptr_t i = 0; i < N_PLACED; i++) {
        uint32_t id;
        assert_int_equal(bpt_graph_add(g, note_worker, (void *)i, info, 100 + 37 * (i * i % 11),
                                       &(uint32_t){0}, i > 0, &id),
                         BPT_OK);
    }
    assert_int_equal(bpt_simulate(g, &alike, &bpt_policy_level, &t), BPT_OK);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
        assert_memory_equal(ran_on, t.worker, sizeof ran_on);
    }
    bpt_timetable_free(&t);
    bpt_pool_free(pool);
    bpt_graph_free(g);
}

/* ---- who has nothing to do ---- */

static bpt_status nap(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    const struct timespec tenth = {.tv_nsec = 100000000};
    return nanosleep(&tenth, NULL) == 0 ? BPT_OK : BPT_EIO;
}

static uint64_t process_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* One worker has two long tasks, of which the others may take one, or none. Behind the first all
 * others have nothing. */
static void what_another_has_queued_keeps_nobody_awake(void **state) {
    (void)state;
    bpt_graph *const g = create_graph(5, 1);
    uint32_t id, first;
    assert_int_equal(bpt_graph_add(g, nap, NULL, info, 1, NULL, 0, &first), BPT_OK);
    assert_int_equal(bpt_graph_add(g, NULL, NULL, info, 1000, NULL, 0, &id), BPT_OK);
    assert_int_equal(bpt_graph_add(g, NULL, NULL, info, 1000, NULL, 0, &id), BPT_OK);
    assert_int_equal(bpt_graph_add(g, nap, NULL, info, 1, NULL, 0, &id), BPT_OK);
    assert_int_equal(bpt_graph_add(g, nap, NULL, info, 1, &first, 1, &id), BPT_OK);
    for (size_t p = 0; bpt_policy_at(p); p++) {
        bpt_pool *const pool = made_pool(bpt_policy_at(p), 3);
        const uint64_t begin = process_cpu_ns();
        assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
        const uint64_t ns = process_cpu_ns() - begin;
        if (ns > 50000000)
            fail_msg("%s: %.0f ms of the processor", bpt_policy_at(p)->name, (double)ns * 1e-6);
        bpt_pool_free(pool);
    }
    bpt_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_workers_come_for_what_is_ready),
        cmocka_unit_test(level_gives_to_whom_was_played),
        cmocka_unit_test(what_another_has_queued_keeps_nobody_awake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
