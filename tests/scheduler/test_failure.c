/* Tasks that fail: what is reported, what still runs, and that the graph can be run again. */
#include "base/memory.h"
#include "scheduler/pool.h"
#include "tests/scheduler/made_pool.h"
#include "tests/scheduler/random_dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* After a run in which task d->fails failed. */
static void check_failed_run(const dag *d, const bpt_run_stats *stats) {
    uint64_t n_ran = 0;
    assert_int_equal(atomic_load(&d->too_early), 0);
    for (uint32_t id = 0; id < d->n; id++) {
        const dag_task *const t = &d->tasks[id];
        const uint32_t ran = atomic_load(&t->ran);
        assert_in_range(ran, 0, 1);
        n_ran += ran;
        assert_int_equal(bpt_graph_measured(d->graph, id) > 0, ran);
        if (d->fails == id) assert_int_equal(ran, 1);
        for (uint32_t i = 0; ran && i < t->n_before; i++)
            assert_int_not_equal(d->tasks[t->before[i]].value, 0);
    }
    assert_int_equal(stats->n_tasks, n_ran);
}

static void any_task_may_fail(void **state) {
    (void)state;
    static const unsigned n_workers[] = {1, 2, 4};
    const uint64_t seed = dag_seed();
    for (size_t k = 0; k < sizeof n_workers / sizeof *n_workers; k++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, k);
        bpt_pool *pool = made_pool(NULL, n_workers[k]);
        dag d;
        dag_create(&d, &r, 120, NULL);
        for (uint32_t id = 0; id < d.n; id++) {
            bpt_run_stats stats;
            const uint64_t allocations = bpt_memory_allocations();
            dag_clear(&d);
            d.fails = id;
            bpt_error_record(BPT_EIO, "an older failure of this thread");
            assert_int_equal(bpt_pool_run(pool, d.graph, &stats), BPT_ENUMERIC);
            char text[64];
            snprintf(text, sizeof text, "task %u was told to fail", id);
            assert_string_equal(bpt_error_last()->text, text);
            assert_int_equal(bpt_error_last()->status, BPT_ENUMERIC);
            check_failed_run(&d, &stats);
            dag_clear(&d);
            d.fails = DAG_NONE;
            assert_int_equal(bpt_pool_run(pool, d.graph, &stats), BPT_OK);
            dag_check(&d);
            assert_int_equal(stats.n_tasks, d.n);
            assert_int_equal(bpt_memory_allocations(), allocations);
        }
        dag_free(&d);
        bpt_pool_free(pool);
    }
}

static _Atomic int n_bodies;

static bpt_status count(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    atomic_fetch_add(&n_bodies, 1);
    return BPT_OK;
}

static bpt_status fail_with_hint(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    const bpt_status status = bpt_fail(BPT_EBACKEND, "kernel refused, conv1");
    bpt_hint("use another one");
    return status;
}

static bpt_status fail_without_a_word(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    return BPT_EDATA;
}

static void nothing_starts_after_a_failure(void **state) {
    (void)state;
    const bpt_task_info info = {.kind = "conv forward", .label = "conv1 tile 3"};
    bpt_graph *g;
    assert_int_equal(bpt_graph_create(1001, 0, &g), BPT_OK);
    uint32_t id;
    assert_int_equal(bpt_graph_add(g, fail_with_hint, NULL, info, 100, NULL, 0, &id), BPT_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(bpt_graph_add(g, count, NULL, info, 1, NULL, 0, &id), BPT_OK);
    bpt_pool *pool = made_pool(NULL, 1);
    atomic_store(&n_bodies, 0);
    assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_EBACKEND);
    assert_int_equal(atomic_load(&n_bodies), 0); /* the failing task has the greatest rank */
    assert_string_equal(bpt_error_last()->text, "kernel refused, conv1");
    assert_string_equal(bpt_error_last()->hint, "use another one");
    bpt_pool_free(pool);
    bpt_graph_free(g);
}

static void a_failure_without_a_text_gets_one(void **state) {
    (void)state;
    for (unsigned n_workers = 1; n_workers <= 2; n_workers++) {
        const bpt_task_info info = {.kind = "conv forward", .label = "conv1 tile 3"};
        bpt_graph *g;
        uint32_t id;
        assert_int_equal(bpt_graph_create(1, 0, &g), BPT_OK);
        assert_int_equal(bpt_graph_add(g, fail_without_a_word, NULL, info, 1, NULL, 0, &id),
                         BPT_OK);
        bpt_pool *pool = made_pool(NULL, n_workers);
        bpt_error_record(BPT_EIO, "an older failure of this thread");
        assert_int_equal(bpt_pool_run(pool, g, NULL), BPT_EDATA);
        assert_non_null(strstr(bpt_error_last()->text, "conv forward"));
        assert_non_null(strstr(bpt_error_last()->text, "conv1 tile 3"));
        bpt_pool_free(pool);
        bpt_graph_free(g);
    }
}

static void many_failures_at_once_give_one(void **state) {
    (void)state;
    const bpt_task_info info = {.kind = "test", .label = NULL};
    bpt_graph *g;
    uint32_t id;
    assert_int_equal(bpt_graph_create(64, 0, &g), BPT_OK);
    for (int i = 0; i < 64; i++)
        assert_int_equal(bpt_graph_add(g, i % 2 ? fail_with_hint : fail_without_a_word, NULL, info,
                                       1, NULL, 0, &id),
                         BPT_OK);
    bpt_pool *pool = made_pool(NULL, 4);
    for (int turn = 0; turn < 300; turn++) {
        const bpt_status status = bpt_pool_run(pool, g, NULL);
        assert_true(status == BPT_EBACKEND || status == BPT_EDATA);
        assert_int_equal(bpt_error_last()->status, status);
        assert_int_equal(bpt_error_last()->hint[0] != 0, status == BPT_EBACKEND);
    }
    bpt_pool_free(pool);
    bpt_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_task_may_fail),
        cmocka_unit_test(nothing_starts_after_a_failure),
        cmocka_unit_test(a_failure_without_a_text_gets_one),
        cmocka_unit_test(many_failures_at_once_give_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
