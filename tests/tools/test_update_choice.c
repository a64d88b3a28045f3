/* What --update auto decides by. */
#include "tools/train/update_choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bool prefers(const double *images_per_s, uint32_t n, uint64_t batch, double exchange_s) {
    const bpt_step_costs costs = bpt_allreduce_costs(images_per_s, n, batch, exchange_s);
    return bpt_prefers_allreduce(&costs);
}

/* Two ranks of 400 images a second, 128 images a step: 160 ms, and an exchange of 40. */
static void test_costs(void **state) {
    (void)state;
    const bpt_step_costs costs = bpt_allreduce_costs((const double[]){400, 400}, 2, 128, 0.04);
    assert_true(fabs(costs.compute_s - 0.16) < 1e-12);
    assert_true(costs.exchange_s == 0.04);
    assert_true(fabs(costs.part - 128 / 0.2 / 800) < 1e-12);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_equal_machines),
        cmocka_unit_test(test_unequal_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
