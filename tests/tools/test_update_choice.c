/* What --update auto decides by. */
#include "tools/train/job/batch_cut.h"
#include "tools/train/job/update_choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_RANKS = 4 };

static bpt_step_costs even_costs(const double *images_per_s, uint32_t n, uint64_t batch,
                                 double exchange_s) {
    uint64_t cut[MAX_RANKS + 1];
    for (uint32_t r = 0; r <= n; r++) cut[r] = batch * r / n;
    return bpt_allreduce_costs(images_per_s, n, cut, exchange_s);
}

static bpt_step_costs costs_by_speed(const double *images_per_s, uint32_t n, uint64_t batch,
                                     double exchange_s) {
    uint64_t cut[MAX_RANKS + 1];
    bpt_batch_cut(images_per_s, n, batch, cut);
    return bpt_allreduce_costs(images_per_s, n, cut, exchange_s);
}

static bool prefers(const double *images_per_s, uint32_t n, uint64_t batch, double exchange_s) {
    const bpt_step_costs costs = even_costs(images_per_s, n, batch, exchange_s);
    return bpt_prefers_allreduce(&costs);
}

static bool prefers_by_speed(const double *images_per_s, uint32_t n, uint64_t batch,
                             double exchange_s) {
    const bpt_step_costs costs = costs_by_speed(images_per_s, n, batch, exchange_s);
    return bpt_prefers_allreduce(&costs);
}

/* Two ranks of 400 images a second, 128 images a step: 160 ms, and an exchange of 40. */
static void test_costs(void **state) {
    (void)state;
    const bpt_step_costs costs = even_costs((const double[]){400, 400}, 2, 128, 0.04);
    assert_true(fabs(costs.compute_s - 0.16) < 1e-12);
    assert_true(costs.exchange_s == 0.04);
    assert_true(fabs(costs.part - 128 / 0.2 / 800) < 1e-12);
}

/* 4 : 1, and 130 images: 104 and 26, 260 ms on both, where even parts would take 650. */
static void test_costs_by_speed(void **state) {
    (void)state;
    const bpt_step_costs costs = costs_by_speed((const double[]){400, 100}, 2, 130, 0.04);
    assert_true(fabs(costs.compute_s - 0.26) < 1e-12);
    assert_true(fabs(costs.part - 130 / 0.3 / 500) < 1e-12);
    assert_true(fabs(even_costs((const double[]){400, 100}, 2, 130, 0.04).compute_s - 0.65) <
                1e-12);
}

static void test_equal_machines(void **state) {
    (void)state;
    assert_true(prefers((const double[]){400, 400}, 2, 128, 0.03));
    assert_true(prefers((const double[]){400, 380, 410, 390}, 4, 128, 0.005));
    assert_false(prefers((const double[]){400, 400}, 2, 128, 0.05)); /* a slow network */
    assert_false(prefers((const double[]){400, 400}, 2, 32, 0.03));  /* short steps */
}

static void test_unequal_machines(void **state) {
    (void)state;
    assert_false(prefers((const double[]){400, 100}, 2, 128, 1e-6));
    assert_false(prefers((const double[]){400, 200, 100, 100}, 4, 128, 1e-6));
    assert_false(prefers((const double[]){400, 400, 400, 200}, 4, 128, 1e-6));
    assert_true(prefers((const double[]){400, 360}, 2, 128, 1e-6));
}

/* Where batches are cut by speed only the network counts, and what whole samples leave. */
static void test_unequal_machines_by_speed(void **state) {
    (void)state;
    assert_true(prefers_by_speed((const double[]){400, 100}, 2, 128, 1e-6));
    assert_true(prefers_by_speed((const double[]){400, 200, 100, 100}, 4, 128, 1e-6));
    assert_false(prefers_by_speed((const double[]){400, 100}, 2, 128, 0.1));
    assert_false(prefers_by_speed((const double[]){400, 10}, 2, 2, 1e-6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_costs_by_speed),
        cmocka_unit_test(test_equal_machines),
        cmocka_unit_test(test_unequal_machines),
        cmocka_unit_test(test_unequal_machines_by_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
