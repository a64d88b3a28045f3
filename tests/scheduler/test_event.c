/* External events: ended from other threads, before and after their start, late, wrongly, never.
 * ctest: TIMEOUT=120 */
#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/pool.h"
#include "tests/scheduler/made_pool.h"
#include "tests/scheduler/random_dag.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_task_info info = {.kind = "message", .label = "halo"};

static void sleep_ns(long ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* A thread that stands for the one that calls MPI: ends events that were posted to it, not in their
 * order. */
typedef struct mailbox {
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t posted;
    dag_task *tasks[1000];
    uint64_t runs[1000];
    size_t n;
    bool stop;
    bpt_random random; /* of the thread */
    int n_refused;     /* completions that were not accepted */
} mailbox;

static mailbox box = {.lock = PTHREAD_MUTEX_INITIALIZER, .posted = PTHREAD_COND_INITIALIZER};

static void post(dag_task *t) {
    pthread_mutex_lock(&box.lock);
    box.runs[box.n] = bpt_graph_run_number(t->owner->graph);
    box.tasks[box.n++] = t;
    pthread_cond_signal(&box.posted);
    pthread_mutex_unlock(&box.lock);
}

static void *end_events(void *unused) {
    (void)unused;
    pthread_mutex_lock(&box.lock);
    for (;;) {
        while (box.n == 0 && !box.stop) pthread_cond_wait(&box.posted, &box.lock);
        if (box.n == 0) break;
        const uint32_t i = bpt_random_below(&box.random, (uint32_t)box.n);
        dag_task *const t = box.tasks[i];
        const uint64_t run = box.runs[i];
        box.n--;
        box.tasks[i] = box.tasks[box.n];
        box.runs[i] = box.runs[box.n];
        const uint32_t mood = bpt_random_below(&box.random, 20);
        pthread_mutex_unlock(&box.lock);
        if (mood == 0) sleep_ns(300000); /* let everybody fall asleep */
        const bool computes = run == bpt_graph_run_number(t->owner->graph);
        const bpt_status computed = computes ? dag_compute(t) : BPT_OK;
        const bpt_status status = bpt_graph_complete(t->owner->graph, run, t->id, computed);
        pthread_mutex_lock(&box.lock);
        box.n_refused += status != BPT_OK;
    }
    pthread_mutex_unlock(&box.lock);
    return NULL;
}

static void open_mailbox(uint64_t seed) {
    box.random = bpt_random_stream(seed, BPT_PURPOSE_TEST, 1000);
    box.stop = false;
    box.n_refused = 0;
    assert_int_equal(pthread_create(&box.thread, NULL, end_events, NULL), 0);
}

static void close_mailbox(void) {
    pthread_mutex_lock(&box.lock);
    box.stop = true;
    pthread_cond_signal(&box.posted);
    pthread_mutex_unlock(&box.lock);
    pthread_join(box.thread, NULL);
}

static void graphs_with_events_give_the_same(void **state) {
    (void)state;
    static const unsigned n_workers[] = {1, 2, 3, 8};
    const uint64_t seed = dag_seed();
    open_mailbox(seed);
    for (uint64_t i = 0; i < 16; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        bpt_pool *pool = made_pool(NULL, n_workers[i % 4]);
        dag d;
        dag_create(&d, &r, 1 + bpt_random_below(&r, 300), post);
        for (int turn = 0; turn < 3; turn++) {
            dag_clear(&d);
            const uint64_t allocations = bpt_memory_allocations();
            bpt_run_stats stats;
            assert_int_equal(bpt_pool_run(pool, d.graph, &stats), BPT_OK);
            assert_int_equal(bpt_memory_allocations(), allocations);
            assert_int_equal(stats.n_tasks, d.n);
            dag_check(&d);
        }
        dag_free(&d);
        bpt_pool_free(pool);
    }
    close_mailbox();
    assert_int_equal(box.n_refused, 0);
}

static void any_task_or_event_may_fail(void **state) {
    (void)state;
    const uint64_t seed = dag_seed();
    bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, 0);
    dag d;
    dag_create(&d, &r, 60, post);
    for (unsigned n_workers = 1; n_workers <= 3; n_workers++) {
        bpt_pool *pool = made_pool(NULL, n_workers);
        for (uint32_t id = 0; id < d.n; id++) {
            open_mailbox(seed + id);
            dag_clear(&d);
            d.fails = id;
            assert_int_equal(bpt_pool_run(pool, d.graph, NULL), BPT_ENUMERIC);
            assert_non_null(strstr(bpt_error_last()->text, "was told to fail"));
            close_mailbox(); /* late ends come here, or were accepted without effect */
            open_mailbox(seed + id);
            dag_clear(&d);
            d.fails = DAG_NONE;
            assert_int_equal(bpt_pool_run(pool, d.graph, NULL), BPT_OK);
            close_mailbox();
            assert_int_equal(box.n_refused, 0);
            dag_check(&d);
        }
        bpt_pool_free(pool);
    }
    dag_free(&d);
}

/* A graph of one event between two tasks, and what its bodies do. */
typedef struct trio {
    bpt_graph *g;
    uint32_t first, event, last;
    bpt_status first_says, start_says;
    _Atomic int n_first, n_start, n_last;
    _Atomic bool hold; /* the first task waits for it to be false */
    uint64_t run;      /* as the start function saw it */
} trio;

static bpt_status run_first(void *arg, unsigned worker) {
    trio *const t = arg;
    (void)worker;
    atomic_fetch_add(&t->n_first, 1);
    while (atomic_load(&t->hold)) sched_yield();
    return t->first_says ? bpt_fail(t->first_says, "first") : BPT_OK;
}

static bpt_status run_start(void *arg, unsigned worker) {
    trio *const t = arg;
    (void)worker;
    t->run = bpt_graph_run_number(t->g);
    atomic_fetch_add(&t->n_start, 1);
    return t->start_says ? bpt_fail(t->start_says, "start") : BPT_OK;
}

static bpt_status run_last(void *arg, unsigned worker) {
    trio *const t = arg;
    (void)worker;
    atomic_fetch_add(&t->n_last, 1);
    return BPT_OK;
}

static void trio_create(trio *t, bpt_task_fn start) {
    *t = (trio){.first_says = BPT_OK};
    assert_int_equal(bpt_graph_create(3, 2, &t->g), BPT_OK);
    assert_int_equal(bpt_graph_add(t->g, run_first, t, info, 1, NULL, 0, &t->first), BPT_OK);
    assert_int_equal(bpt_graph_add_event(t->g, start, t, info, 1, &t->first, 1, &t->event), BPT_OK);
    assert_int_equal(bpt_graph_add(t->g, run_last, t, info, 1, &t->event, 1, &t->last), BPT_OK);
}

/* What another thread does to a trio's event while it runs. */
typedef struct meddler {
    pthread_t thread;
    trio *t;
    enum { BEFORE_START, AFTER_START, TWICE, WITH_ERROR, AFTER_5_MS } when;
    bpt_status results[2];
} meddler;

static void *meddle(void *arg) {
    meddler *const m = arg;
    trio *const t = m->t;
    while (atomic_load(m->when == BEFORE_START || m->when == TWICE ? &t->n_first : &t->n_start) ==
           0)
        sched_yield();
    if (m->when == AFTER_5_MS) sleep_ns(5000000);
    const uint64_t run = bpt_graph_run_number(t->g);
    const bpt_status status =
        m->when == WITH_ERROR ? bpt_fail(BPT_ECOMM, "message from rank 3 was cut") : BPT_OK;
    m->results[0] = bpt_graph_complete(t->g, run, t->event, status);
    if (m->when == TWICE) m->results[1] = bpt_graph_complete(t->g, run, t->event, BPT_OK);
    atomic_store(&t->hold, false);
    return NULL;
}

/* @return what was measured of the event */
static uint64_t end_from_elsewhere(unsigned n_workers, int when, bool has_start) {
    trio t;
    trio_create(&t, has_start ? run_start : NULL);
    bpt_pool *pool = made_pool(NULL, n_workers);
    meddler m = {.t = &t, .when = when};
    atomic_store(&t.hold, when == BEFORE_START || when == TWICE);
    assert_int_equal(pthread_create(&m.thread, NULL, meddle, &m), 0);
    const bpt_status status = bpt_pool_run(pool, t.g, NULL);
    pthread_join(m.thread, NULL);
    assert_int_equal(m.results[0], BPT_OK);
    assert_int_equal(m.results[1], when == TWICE ? BPT_EUSAGE : BPT_OK);
    assert_int_equal(atomic_load(&t.n_start), has_start);
    if (when == WITH_ERROR) {
        assert_int_equal(status, BPT_ECOMM);
        assert_string_equal(bpt_error_last()->text, "message from rank 3 was cut");
        assert_int_equal(atomic_load(&t.n_last), 0);
    } else {
        assert_int_equal(status, BPT_OK);
        assert_int_equal(atomic_load(&t.n_last), 1);
        assert_true(bpt_graph_measured(t.g, t.event) > 0);
    }
    const uint64_t measured = bpt_graph_measured(t.g, t.event);
    bpt_pool_free(pool);
    bpt_graph_free(t.g);
    return measured;
}

static void ends_before_and_after_the_start(void **state) {
    (void)state;
    for (unsigned n_workers = 1; n_workers <= 3; n_workers++)
        for (int when = BEFORE_START; when <= WITH_ERROR; when++)
            for (int has_start = when == BEFORE_START || when == TWICE ? 0 : 1; has_start < 2;
                 has_start++)
                end_from_elsewhere(n_workers, when, has_start != 0);
}

/* A worker may lose its processor just behind the start function, so that the event has not started
 * when it ends: that is rare, and does not come time after time. */
static void an_event_is_measured_to_its_end(void **state) {
    (void)state;
    for (unsigned n_workers = 1; n_workers <= 3; n_workers++) {
        uint64_t measured = 0;
        for (int turn = 0; turn < 10 && measured < 5000000; turn++) {
            const uint64_t begin = bpt_clock_ns();
            measured = end_from_elsewhere(n_workers, AFTER_5_MS, true);
            assert_true(measured <= bpt_clock_ns() - begin);
        }
        assert_true(measured >= 5000000);
    }
}

static void wrong_ends_are_refused(void **state) {
    (void)state;
    trio t;
    trio_create(&t, run_start);
    assert_int_equal(bpt_graph_run_number(t.g), 0);
    assert_int_equal(bpt_graph_complete(t.g, 0, t.event, BPT_OK), BPT_EUSAGE); /* before a run */
    assert_int_equal(bpt_graph_complete(t.g, 1, t.event, BPT_OK), BPT_EUSAGE);
    bpt_pool *pool = made_pool(NULL, 1);
    meddler m = {.t = &t, .when = AFTER_START};
    assert_int_equal(pthread_create(&m.thread, NULL, meddle, &m), 0);
    assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_OK);
    pthread_join(m.thread, NULL);
    assert_int_equal(bpt_graph_complete(t.g, 1, t.event, BPT_OK), BPT_EUSAGE); /* after it */
    bpt_pool_free(pool);
    bpt_graph_free(t.g);
}

static bpt_status complete_what_is_none(void *arg, unsigned worker) {
    trio *const t = arg;
    (void)worker;
    const uint64_t run = bpt_graph_run_number(t->g);
    if (bpt_graph_complete(t->g, run, t->first, BPT_OK) != BPT_EUSAGE) return BPT_EDATA;
    if (bpt_graph_complete(t->g, run, 3, BPT_OK) != BPT_EUSAGE) return BPT_EDATA;
    if (bpt_graph_complete(t->g, run + 1, t->event, BPT_OK) != BPT_EUSAGE) return BPT_EDATA;
    return bpt_graph_complete(t->g, run, t->event, BPT_OK); /* by its own start: allowed */
}

static void only_events_can_be_ended(void **state) {
    (void)state;
    trio t;
    trio_create(&t, complete_what_is_none);
    bpt_pool *pool = made_pool(NULL, 2);
    assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_OK);
    assert_int_equal(atomic_load(&t.n_last), 1);
    bpt_pool_free(pool);
    bpt_graph_free(t.g);
}

static void a_start_may_fail(void **state) {
    (void)state;
    trio t;
    trio_create(&t, run_start);
    t.start_says = BPT_ECOMM;
    for (unsigned n_workers = 1; n_workers <= 2; n_workers++) {
        bpt_pool *pool = made_pool(NULL, n_workers);
        assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_ECOMM);
        assert_string_equal(bpt_error_last()->text, "start");
        assert_int_equal(atomic_load(&t.n_last), 0);
        assert_int_equal(bpt_graph_complete(t.g, t.run, t.event, BPT_OK), BPT_EUSAGE);
        bpt_pool_free(pool);
    }
    bpt_graph_free(t.g);
}

static bpt_status complete_without_a_word(void *arg, unsigned worker) {
    const trio *const t = arg;
    (void)worker;
    return bpt_graph_complete(t->g, bpt_graph_run_number(t->g), t->event, BPT_ECOMM);
}

static void an_end_with_an_error_gets_a_text(void **state) {
    (void)state;
    trio t;
    trio_create(&t, complete_without_a_word);
    bpt_pool *pool = made_pool(NULL, 1);
    bpt_error_record(BPT_EIO, "an older failure of this thread");
    assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_ECOMM);
    assert_int_equal(bpt_error_last()->status, BPT_ECOMM);
    assert_non_null(strstr(bpt_error_last()->text, "message halo"));
    assert_int_equal(atomic_load(&t.n_last), 0);
    bpt_pool_free(pool);
    bpt_graph_free(t.g);
}

static bpt_status fail_late(void *arg, unsigned worker) {
    trio *const t = arg;
    (void)worker;
    while (atomic_load(&t->n_start) == 0) sched_yield();
    return t->first_says ? bpt_fail(t->first_says, "other task") : BPT_OK;
}

/* Two tasks that are at work at once: one fails, the other ends the event when the first most
 * likely has. */
typedef struct pair {
    bpt_graph *g;
    uint32_t event;
    atomic_bool works, failed;
    bpt_status ended;
} pair;

static bpt_status fail_beside(void *arg, unsigned worker) {
    pair *const p = arg;
    (void)worker;
    while (!atomic_load(&p->works)) sched_yield();
    atomic_store(&p->failed, true);
    return bpt_fail(BPT_EDATA, "other task");
}

static bpt_status end_after_failure(void *arg, unsigned worker) {
    pair *const p = arg;
    (void)worker;
    atomic_store(&p->works, true);
    while (!atomic_load(&p->failed)) sched_yield();
    sleep_ns(5000000);
    p->ended = bpt_graph_complete(p->g, bpt_graph_run_number(p->g), p->event, BPT_OK);
    return BPT_OK;
}

/* Who ends it cannot know that the run has failed meanwhile. */
static void an_end_in_a_run_that_has_failed_is_right(void **state) {
    (void)state;
    pair p = {.ended = BPT_EDATA};
    uint32_t id;
    assert_int_equal(bpt_graph_create(3, 0, &p.g), BPT_OK);
    assert_int_equal(bpt_graph_add_event(p.g, NULL, NULL, info, 9, NULL, 0, &p.event), BPT_OK);
    assert_int_equal(bpt_graph_add(p.g, fail_beside, &p, info, 1, NULL, 0, &id), BPT_OK);
    assert_int_equal(bpt_graph_add(p.g, end_after_failure, &p, info, 1, NULL, 0, &id), BPT_OK);
    bpt_pool *pool = made_pool(NULL, 2);
    assert_int_equal(bpt_pool_run(pool, p.g, NULL), BPT_EDATA);
    assert_int_equal(p.ended, BPT_OK);
    bpt_pool_free(pool);
    bpt_graph_free(p.g);
}

/* A run that fails does not wait for an event that nobody ends, and the end that comes during the
 * next run is not taken for that run's. */
static void a_late_end_does_not_touch_the_next_run(void **state) {
    (void)state;
    trio t;
    t = (trio){.first_says = BPT_EDATA};
    uint32_t other;
    assert_int_equal(bpt_graph_create(3, 1, &t.g), BPT_OK);
    assert_int_equal(bpt_graph_add_event(t.g, run_start, &t, info, 9, NULL, 0, &t.event), BPT_OK);
    assert_int_equal(bpt_graph_add(t.g, run_last, &t, info, 1, &t.event, 1, &t.last), BPT_OK);
    assert_int_equal(bpt_graph_add(t.g, fail_late, &t, info, 1, NULL, 0, &other), BPT_OK);
    for (unsigned n_workers = 1; n_workers <= 3; n_workers++) {
        bpt_pool *pool = made_pool(NULL, n_workers);
        t.first_says = BPT_EDATA;
        atomic_store(&t.n_start, 0);
        atomic_store(&t.n_last, 0);
        assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_EDATA);
        assert_int_equal(bpt_graph_measured(t.g, t.event), 0);
        const uint64_t failed = t.run;
        assert_int_equal(bpt_graph_complete(t.g, failed, t.event, BPT_OK), BPT_EUSAGE);

        atomic_store(&t.n_start, 0);
        t.first_says = BPT_OK;
        meddler m = {.t = &t, .when = AFTER_5_MS};
        assert_int_equal(pthread_create(&m.thread, NULL, meddle, &m), 0);
        /* The old end, before and while the new run waits. */
        assert_int_equal(bpt_graph_complete(t.g, failed, t.event, BPT_OK), BPT_EUSAGE);
        assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_OK);
        pthread_join(m.thread, NULL);
        assert_int_equal(t.run, failed + 1);
        assert_int_equal(m.results[0], BPT_OK);
        assert_int_equal(atomic_load(&t.n_last), 1);
        bpt_pool_free(pool);
    }
    bpt_graph_free(t.g);
}

static void *end_old_run(void *arg) {
    meddler *const m = arg;
    while (atomic_load(&m->t->n_start) == 0) sched_yield();
    /* The run that failed before this one: refused. Then the right one. */
    m->results[0] = bpt_graph_complete(m->t->g, m->t->run - 1, m->t->event, BPT_OK);
    sleep_ns(1000000);
    m->results[1] = atomic_load(&m->t->n_last) ? BPT_EDATA : BPT_OK;
    bpt_graph_complete(m->t->g, m->t->run, m->t->event, BPT_OK);
    return NULL;
}

static void an_old_end_within_a_run_is_refused(void **state) {
    (void)state;
    trio t;
    trio_create(&t, run_start);
    bpt_pool *pool = made_pool(NULL, 2);
    t.first_says = BPT_EIO;
    assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_EIO);
    t.first_says = BPT_OK;
    meddler m = {.t = &t};
    assert_int_equal(pthread_create(&m.thread, NULL, end_old_run, &m), 0);
    assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_OK);
    pthread_join(m.thread, NULL);
    assert_int_equal(m.results[0], BPT_EUSAGE);
    assert_int_equal(m.results[1], BPT_OK);
    assert_int_equal(atomic_load(&t.n_last), 1);
    bpt_pool_free(pool);
    bpt_graph_free(t.g);
}

/* A chain of events, each ended the moment it starts: the worker is then on its way to sleep. */
enum { N_QUICK = 20000 };
static _Atomic uint32_t n_started;

static bpt_status announce(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    atomic_fetch_add(&n_started, 1);
    return BPT_OK;
}

static void *end_at_once(void *arg) {
    bpt_graph *const g = arg;
    intptr_t n_refused = 0;
    for (uint32_t id = 0; id < N_QUICK; id++) {
        while (atomic_load(&n_started) <= id) sched_yield();
        n_refused += bpt_graph_complete(g, 1, id, BPT_OK) != BPT_OK;
    }
    return (void *)n_refused;
}

static void an_end_is_not_missed_by_who_falls_asleep(void **state) {
    (void)state;
    for (unsigned n_workers = 1; n_workers <= 2; n_workers++) {
        bpt_graph *g;
        assert_int_equal(bpt_graph_create(N_QUICK, N_QUICK, &g), BPT_OK);
        for (uint32_t i = 0; i < N_QUICK; i++) {
            uint32_t id;
            const uint32_t last = i - 1;
            assert_int_equal(bpt_graph_add_event(g, announce, NULL, info, 0, &last, i > 0, &id),
                             BPT_OK);
        }
        atomic_store(&n_started, 0);
        bpt_pool *pool = made_pool(NULL, n_workers);
        pthread_t thread;
        void *n_refused;
        assert_int_equal(pthread_create(&thread, NULL, end_at_once, g), 0);
        assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_OK);
        pthread_join(thread, &n_refused);
        assert_null(n_refused);
        bpt_pool_free(pool);
        bpt_graph_free(g);
    }
}

static uint64_t process_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *end_after_a_long_nap(void *arg) {
    trio *const t = arg;
    sleep_ns(200000000);
    bpt_graph_complete(t->g, 1, t->event, BPT_OK);
    return NULL;
}

static void waiting_for_an_event_takes_no_processor(void **state) {
    (void)state;
    trio t;
    trio_create(&t, NULL);
    bpt_pool *pool = made_pool(NULL, 4);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_after_a_long_nap, &t), 0);
    const uint64_t begin = process_cpu_ns();
    assert_int_equal(bpt_pool_run(pool, t.g, NULL), BPT_OK);
    assert_in_range(process_cpu_ns() - begin, 0, 50000000); /* of some 200 ms, times four */
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&t.n_last), 1);
    bpt_pool_free(pool);
    bpt_graph_free(t.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_with_events_give_the_same),
        cmocka_unit_test(any_task_or_event_may_fail),
        cmocka_unit_test(ends_before_and_after_the_start),
        cmocka_unit_test(an_event_is_measured_to_its_end),
        cmocka_unit_test(wrong_ends_are_refused),
        cmocka_unit_test(only_events_can_be_ended),
        cmocka_unit_test(a_start_may_fail),
        cmocka_unit_test(an_end_with_an_error_gets_a_text),
        cmocka_unit_test(an_end_in_a_run_that_has_failed_is_right),
        cmocka_unit_test(a_late_end_does_not_touch_the_next_run),
        cmocka_unit_test(an_old_end_within_a_run_is_refused),
        cmocka_unit_test(an_end_is_not_missed_by_who_falls_asleep),
        cmocka_unit_test(waiting_for_an_event_takes_no_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
