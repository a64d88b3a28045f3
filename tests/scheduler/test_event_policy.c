/* Under every policy what an event releases finds an idle worker, however busy its home is. */
#include "base/clock.h"
#include "scheduler/pool.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_task_info info = {.kind = "test", .label = "task"};

/* Two workers. One runs entry, starts event and runs busy, which waits for last; the other is held
 * until busy has begun, and sleeps when event ends. Costs make each policy go that way. */
typedef struct scene {
    bpt_graph *g;
    uint32_t event;
    _Atomic bool holds, busy, last;
    bool late; /* last did not run while busy waited */
} scene;

static bool wait_for(_Atomic bool *flag) {
    const uint64_t begin = bpt_clock_ns();
    while (!atomic_load(flag)) {
        if (bpt_clock_seconds_since(begin) > 10) return false;
        sched_yield();
    }
    return true;
}

static bpt_status run_entry(void *arg, unsigned worker) {
    scene *const s = arg;
    (void)worker;
    return wait_for(&s->holds) ? BPT_OK : bpt_fail(BPT_EDATA, "the other worker does not come");
}

static bpt_status run_hold(void *arg, unsigned worker) {
    scene *const s = arg;
    (void)worker;
    atomic_store(&s->holds, true);
    return wait_for(&s->busy) ? BPT_OK : bpt_fail(BPT_EDATA, "the busy task does not begin");
}

static bpt_status run_busy(void *arg, unsigned worker) {
    scene *const s = arg;
    (void)worker;
    atomic_store(&s->busy, true);
    s->late = !wait_for(&s->last);
    return BPT_OK;
}

static bpt_status run_last(void *arg, unsigned worker) {
    scene *const s = arg;
    (void)worker;
    atomic_store(&s->last, true);
    return BPT_OK;
}

static void *end_event(void *arg) {
    scene *const s = arg;
    if (!wait_for(&s->busy)) return NULL;
    /* Time for the other worker to fall asleep; awake it would find the task itself. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    (void)bpt_graph_complete(s->g, bpt_graph_run_number(s->g), s->event, BPT_OK);
    return NULL;
}

static void build(scene *s) {
    const uint64_t second = 1000000000;
    uint32_t entry, hold, busy, last;
    assert_int_equal(bpt_graph_create(5, 3, &s->g), BPT_OK);
    assert_int_equal(bpt_graph_add(s->g, run_entry, s, info, 1, NULL, 0, &entry), BPT_OK);
    assert_int_equal(bpt_graph_add(s->g, run_hold, s, info, 50 * second, NULL, 0, &hold), BPT_OK);
    assert_int_equal(bpt_graph_add_event(s->g, NULL, s, info, 1, &entry, 1, &s->event), BPT_OK);
    assert_int_equal(bpt_graph_add(s->g, run_busy, s, info, 100 * second, &entry, 1, &busy),
                     BPT_OK);
    assert_int_equal(bpt_graph_add(s->g, run_last, s, info, 200 * second, &s->event, 1, &last),
                     BPT_OK);
}

static void what_an_event_releases_runs_while_its_home_is_busy(void **state) {
    (void)state;
    const bpt_policy *policy;
    for (size_t k = 0; (policy = bpt_policy_at(k)); k++) {
        bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
        options.n_workers = 2;
        options.policy = policy;
        bpt_pool *pool;
        scene s = {0};
        pthread_t thread;
        build(&s);
        assert_int_equal(bpt_pool_create(&options, &pool), BPT_OK);
        assert_int_equal(pthread_create(&thread, NULL, end_event, &s), 0);
        assert_int_equal(bpt_pool_run(pool, s.g, NULL), BPT_OK);
        pthread_join(thread, NULL);
        if (s.late) fail_msg("%s left an idle worker asleep", policy->name);
        bpt_pool_free(pool);
        bpt_graph_free(s.g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_event_releases_runs_while_its_home_is_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
