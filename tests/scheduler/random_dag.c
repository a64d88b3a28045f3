#include "tests/scheduler/random_dag.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

uint64_t dag_expected(const dag *d, uint32_t id) {
    const dag_task *const t = &d->tasks[id];
    uint64_t value = id + 1;
    /* Not commutative, so that the order of predecessors counts. */
    for (uint32_t i = 0; i < t->n_before; i++)
        value = value * 6364136223846793005u + d->tasks[t->before[i]].value;
    return value ? value : 1;
}

bpt_status dag_compute(dag_task *t) {
    dag *const d = t->owner;
    atomic_fetch_add_explicit(&t->ran, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < t->n_before; i++)
        if (d->tasks[t->before[i]].value == 0) atomic_fetch_add(&d->too_early, 1);
    for (volatile uint32_t i = 0; i < t->spin;) i = i + 1;
    if (d->fails == t->id) return bpt_fail(BPT_ENUMERIC, "task %u was told to fail", t->id);
    t->value = dag_expected(d, t->id);
    return BPT_OK;
}

static bpt_status run_task(void *arg, unsigned worker) {
    (void)worker;
    return dag_compute(arg);
}

static bpt_status start_event(void *arg, unsigned worker) {
    dag_task *const t = arg;
    (void)worker;
    t->owner->post(t);
    return BPT_OK;
}

static void draw(dag_task *t, bpt_random *r) {
    t->spin = bpt_random_below(r, 10) ? bpt_random_below(r, 200) : bpt_random_below(r, 20000);
    t->cost_ns = bpt_random_below(r, 4) ? bpt_random_below(r, 1000) : 0;
    if (t->id == 0) return;
    t->n_before = bpt_random_below(r, DAG_MAX_BEFORE + 1);
    /* Mostly near predecessors, or all graphs would be shallow. */
    for (uint32_t i = 0; i < t->n_before; i++) {
        const uint32_t reach = bpt_random_below(r, 3) && t->id > 20 ? 20 : t->id;
        t->before[i] = t->id - 1 - bpt_random_below(r, reach);
    }
}

void dag_create(dag *d, bpt_random *r, uint32_t n, dag_post_fn post) {
    *d = (dag){.n = n, .post = post, .fails = DAG_NONE};
    assert_int_equal(BPT_NEW("tasks", n, &d->tasks), BPT_OK);
    size_t n_edges = 0;
    for (uint32_t i = 0; i < n; i++) {
        d->tasks[i].owner = d;
        d->tasks[i].id = i;
        draw(&d->tasks[i], r);
        n_edges += d->tasks[i].n_before;
    }
    assert_int_equal(bpt_graph_create(n, n_edges, &d->graph), BPT_OK);
    for (uint32_t i = 0; i < n; i++) {
        dag_task *const t = &d->tasks[i];
        uint32_t id;
        const bpt_task_info info = {.kind = "random", .label = NULL};
        const bool event = post && bpt_random_below(r, 3) == 0;
        const bpt_status status = (event ? bpt_graph_add_event : bpt_graph_add)(
            d->graph, event ? start_event : run_task, t, info, t->cost_ns, t->before, t->n_before,
            &id);
        assert_int_equal(status, BPT_OK);
        assert_int_equal(id, i);
    }
}

void dag_free(dag *d) {
    bpt_graph_free(d->graph);
    bpt_free(d->tasks);
}

void dag_clear(dag *d) {
    atomic_store(&d->too_early, 0);
    for (size_t i = 0; i < d->n; i++) {
        d->tasks[i].value = 0;
        atomic_store(&d->tasks[i].ran, 0);
    }
}

void dag_check(const dag *d) {
    assert_int_equal(atomic_load(&d->too_early), 0);
    for (uint32_t i = 0; i < d->n; i++) {
        assert_int_equal(atomic_load(&d->tasks[i].ran), 1);
        assert_int_equal(d->tasks[i].value, dag_expected(d, i));
        assert_true(bpt_graph_measured(d->graph, i) > 0);
    }
}

uint64_t dag_seed(void) {
    const char *const text = getenv("BPT_TEST_SEED");
    uint64_t seed = 0;
    if (text)
        seed = strtoull(text, NULL, 10);
    else
        assert_int_equal(getentropy(&seed, sizeof seed), 0);
    printf("BPT_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}
