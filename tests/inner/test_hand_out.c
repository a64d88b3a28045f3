/* Gradients that are handed out part by part while others are computed: each part once a step,
 * whole when it is handed out, and the same bits as without. ctest: cpu TIMEOUT=60 */
#include "inner/network/network_private.h"
#include "scheduler/graph_private.h"
#include "tests/inner/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 9, MAX_PARTS = 64 };

typedef struct taker {
    const size_t *begin;
    const float *flat;
    float *taken; /* what the parts were when they came */
    atomic_int times[MAX_PARTS];
} taker;

static void take(void *context, uint32_t part) {
    taker *t = context;
    const size_t begin = t->begin[part], n = t->begin[part + 1] - begin;
    memcpy(t->taken + begin, t->flat + begin, n * sizeof *t->taken);
    atomic_fetch_add(&t->times[part], 1);
}

/* @param step segments a part */
static uint32_t cut(const bpt_model *m, size_t step, size_t *begin) {
    const size_t frozen = bpt_model_frozen_elements(m);
    uint32_t n = 0;
    for (size_t s = bpt_model_frozen_segments(m); s < m->segments.n; s += step)
        begin[n++] = m->segments.items[s].offset - frozen;
    begin[n] = bpt_model_learned_elements(m);
    assert_true(n <= MAX_PARTS);
    return n;
}

static void gradient(net_fixture *f) {
    bpt_batch_result result;
    assert_int_equal(bpt_network_gradient(f->net, f->pixels, f->labels, BATCH, &result), BPT_OK);
}

/* @param first layer that learns; NULL: all do */
static net_fixture open_mixed(net_options options, const char *first) {
    net_fixture f = net_open(net_mixed, BATCH, options);
    if (first) net_freeze(&f, first, options);
    return f;
}

static void check_from(const char *first, unsigned n_workers, size_t step, bpt_learning learning) {
    enum { STEPS = 3 };
    const net_options options = {n_workers, learning, 1, BPT_F32};
    net_fixture plain = open_mixed(options, first), f = open_mixed(options, first);
    size_t begin[MAX_PARTS + 1];
    const size_t n_learned = bpt_model_learned_elements(f.model);
    float *flat = net_floats(n_learned), *taken = net_floats(n_learned);
    const uint32_t n = cut(f.model, step, begin);
    taker t = {.begin = begin, .flat = flat, .taken = taken};
    const bpt_gradient_parts parts = {n, begin, flat, take, &t};
    assert_int_equal(bpt_network_hand_out(f.net, &parts), BPT_OK);
    for (int i = 1; i <= STEPS; i++) {
        gradient(&plain);
        gradient(&f);
        float *wanted = net_vector(&plain, BPT_VECTOR_GRADIENTS);
        float *kept = net_vector(&f, BPT_VECTOR_GRADIENTS);
        for (uint32_t p = 0; p < n; p++) assert_int_equal(t.times[p], i);
        const uint64_t path = bpt_network_critical_path(f.net);
        assert_true(path > 0 && path <= bpt_network_last_run(f.net).busy_ns);
        assert_memory_equal(taken, wanted + f.n_weights - n_learned, n_learned * sizeof *taken);
        assert_memory_equal(kept, wanted, f.n_weights * sizeof *kept);
        free(kept);
        free(wanted);
        assert_int_equal(bpt_network_apply(plain.net, 0.01F), BPT_OK);
        assert_int_equal(bpt_network_apply(f.net, 0.01F), BPT_OK);
    }
    free(taken);
    free(flat);
    net_close(&f);
    net_close(&plain);
}

static void check(unsigned n_workers, size_t step, bpt_learning learning) {
    check_from(NULL, n_workers, step, learning);
}

static void test_parts(void **state) {
    (void)state;
    for (unsigned n_workers = 1; n_workers <= 3; n_workers++)
        for (size_t step = 1; step <= 7; step += 3)
            check(n_workers, step, (bpt_learning){.momentum = 0.9});
    check(2, 1000, (bpt_learning){.momentum = 0.9}); /* all in one */
}

/* With norms, which are those of what bpt_network_set() sets. */
static void test_with_norms(void **state) {
    (void)state;
    check(2, 2, (bpt_learning){.clip_norm = 0.01});
}

/* Parts are of what learns. */
static void test_frozen(void **state) {
    (void)state;
    check_from("conv5", 2, 1, (bpt_learning){.momentum = 0.9});
    check_from("fc2", 2, 4, (bpt_learning){.momentum = 0.9, .clip_norm = 0.01});
}

/* @return tasks of a kind and label; a label of NULL is any */
static uint32_t count(const bpt_graph *g, const char *kind, const char *label) {
    uint32_t n = 0;
    for (size_t i = 0; i < g->n_tasks; i++)
        n += strcmp(g->plans[i].info.kind, kind) == 0 &&
             (!label || strcmp(g->plans[i].info.label, label) == 0);
    return n;
}

/* A gradient of several ranges is exported behind the sums of all of them. */
static void test_exports_wait_for_every_sum(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1});
    const bpt_segments *segments = &f.model->segments;
    size_t begin[MAX_PARTS + 1];
    float *flat = net_floats(f.n_weights), *taken = net_floats(f.n_weights);
    const uint32_t n = cut(f.model, 1, begin);
    taker t = {.begin = begin, .flat = flat, .taken = taken};
    const bpt_gradient_parts parts = {n, begin, flat, take, &t};
    assert_int_equal(bpt_network_hand_out(f.net, &parts), BPT_OK);
    const bpt_graph *g = f.net->graphs[BPT_GRAPH_GRADIENT];
    assert_int_equal(count(g, "export", NULL), segments->n);
    assert_true(count(g, "reduce", NULL) > segments->n); /* one has more ranges */
    for (size_t i = 0; i < g->n_tasks; i++) {
        const bpt__plan *plan = &g->plans[i];
        if (strcmp(plan->info.kind, "export") != 0) continue;
        assert_int_equal(plan->n_before, count(g, "reduce", plan->info.label));
        for (uint32_t k = 0; k < plan->n_before; k++) {
            const uint32_t before = g->before[plan->first_before + k];
            assert_true(k == 0 || before > g->before[plan->first_before + k - 1]);
            assert_string_equal(g->plans[before].info.kind, "reduce");
            assert_string_equal(g->plans[before].info.label, plan->info.label);
        }
    }
    free(taken);
    free(flat);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_with_norms),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_exports_wait_for_every_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
