/* What a rank goes on from when an answer has come. */
#include "tests/base/near.h"
#include "tools/train/exchange/carry_over.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const float pushed[2] = {4, -4}, global[2] = {1, 0};

/* It trained from 4 to 4.5 meanwhile, and the others moved the global weights to 1. */
static void test_deltas(void **state) {
    (void)state;
    float local[2] = {4.5F, -4};
    bpt_carry_over(&(bpt_carry){.own = true}, local, pushed, global, 2);
    assert_true(local[0] == 1.5F && local[1] == 0);
    float unset[2] = {99, 99};
    bpt_carry_over(&(bpt_carry){.own = false}, unset, pushed, global, 2);
    assert_true(unset[0] == 1 && unset[1] == 0);
}

/* Alpha 1/2: half of the way to the centre before, which has gone the other half. */
static void test_easgd(void **state) {
    (void)state;
    float local[2] = {4.5F, -4};
    bpt_carry_over(&(bpt_carry){.own = true, .elasticity = 0.5}, local, pushed, global, 2);
    assert_true(local[0] == 1.5F && local[1] == 0);
    /* Alpha 1/5: a quarter of what is left of the way. */
    float unset[2] = {99, 99};
    bpt_carry_over(&(bpt_carry){.own = false, .elasticity = 0.2}, unset, pushed, global, 2);
    assert_near(unset[0], 3.25, 1e-6);
    assert_near(unset[1], -3, 1e-6);
}

/* All go on from the same weights. */
static void test_meeting(void **state) {
    (void)state;
    float local[2] = {99, 99};
    bpt_carry_over(&(bpt_carry){.met = true, .elasticity = 0.2}, local, pushed, global, 2);
    assert_true(local[0] == 1 && local[1] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deltas),
        cmocka_unit_test(test_easgd),
        cmocka_unit_test(test_meeting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
