/* Gradients that are handed out part by part while others are computed: each part once a step,
 * whole when it is handed out, and the same bits as without. ctest: cpu TIMEOUT=60 */
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
static uint32_t cut(const bpt_segments *segments, size_t step, size_t *begin) {
    uint32_t n = 0;
    for (size_t s = 0; s < segments->n; s += step) begin[n++] = segments->items[s].offset;
    begin[n] = segments->n_elements;
    assert_true(n <= MAX_PARTS);
    return n;
}

static void gradient(net_fixture *f) {
    bpt_batch_result result;
    assert_int_equal(bpt_network_gradient(f->net, f->pixels, f->labels, BATCH, &result), BPT_OK);
}

static void check(unsigned n_workers, size_t step, bpt_learning learning) {
    enum { STEPS = 3 };
    net_fixture plain = net_open(net_mixed, BATCH, (net_options){n_workers, learning, 1, BPT_F32});
    net_fixture f = net_open(net_mixed, BATCH, (net_options){n_workers, learning, 1, BPT_F32});
    size_t begin[MAX_PARTS + 1];
    float *flat = net_floats(f.n_weights), *taken = net_floats(f.n_weights);
    const uint32_t n = cut(&f.model->segments, step, begin);
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
        assert_memory_equal(taken, wanted, f.n_weights * sizeof *taken);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_with_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
