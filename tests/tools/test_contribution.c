/* Whether a rank brings more than it costs. */
#include "tools/train/report/contribution.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Ten seconds of 100 and 1 images a second, a core each; the slow one pushes as often as the fast
 * one, which spends a fifth of a second on all pushes. */
static void test_nobody_waits(void **state) {
    (void)state;
    bpt_effort r[] = {
        {.samples = 1000, .submissions = 50, .compute_s = 10, .comm_s = 0.2, .threads = 1},
        {.samples = 10, .submissions = 50, .compute_s = 10, .comm_s = 0.2, .threads = 1},
    };
    assert_true(fabs(bpt_gain_without_async(r, 2, 1, 10) - (100 * 0.1 - 10) / 10) < 1e-12);
    r[1].samples = 5;
    assert_true(bpt_gain_without_async(r, 2, 1, 10) > 0);
    assert_true(bpt_gain_without_async(r, 2, 0, 10) < 0);
    r[0].threads = 4; /* it can spare more easily what it spends */
    assert_true(bpt_gain_without_async(r, 2, 1, 10) < 0);
    r[1].submissions = 0;
    assert_true(bpt_gain_without_async(r, 2, 1, 10) == -0.5);
}

/* The same in a twentieth of the time; and one that has computed nothing saves nothing. */
static void test_nobody_waits_for_long(void **state) {
    (void)state;
    const bpt_effort r[] = {
        {.samples = 50, .submissions = 5, .compute_s = 0.5, .comm_s = 0.01, .threads = 1},
        {.samples = 1, .submissions = 5, .compute_s = 0.5, .comm_s = 0.01, .threads = 1},
        {.samples = 0, .submissions = 0, .compute_s = 0, .comm_s = 0.01, .threads = 1},
    };
    assert_true(fabs(bpt_gain_without_async(r, 2, 1, 0.5) - (100 * 0.005 - 1) / 0.5) < 1e-12);
    assert_true(fabs(bpt_gain_without_async(r, 3, 1, 0.5) - (100 * 0.005 - 1) / 0.5) < 1e-12);
    const bpt_effort one_push[] = {
        {.samples = 50, .submissions = 0, .compute_s = 0.5, .comm_s = 0.01, .threads = 1},
        {.samples = 1, .submissions = 1, .compute_s = 0.5, .comm_s = 0.01, .threads = 1},
    };
    assert_true(fabs(bpt_gain_without_async(one_push, 2, 1, 0.5) - (100 * 0.01 - 1) / 0.5) < 1e-12);
}

/* Equal shares: a rank of less than half the speed holds two others up by more than it does. */
static void test_all_wait(void **state) {
    (void)state;
    bpt_effort r[] = {{.samples = 100, .compute_s = 1},
                      {.samples = 100, .compute_s = 1},
                      {.samples = 100, .compute_s = 2}};
    const bpt_effort short_run[] = {{.samples = 100, .compute_s = 0.1},
                                    {.samples = 100, .compute_s = 0.1},
                                    {.samples = 100, .compute_s = 0.2}};
    assert_true(fabs(bpt_gain_without_sync(r, 3, 2) - 0.25) < 1e-12);
    assert_true(fabs(bpt_gain_without_sync(short_run, 3, 2) - 0.25) < 1e-12);
    assert_true(bpt_gain_without_sync(r, 3, 0) < 0);
    r[2].compute_s = 1.5;
    assert_true(fabs(bpt_gain_without_sync(r, 3, 2)) < 1e-12);
    r[2].compute_s = 1.2;
    assert_true(bpt_gain_without_sync(r, 3, 2) < 0);
    /* Shares by speed: everybody is of use. */
    r[2] = (bpt_effort){.samples = 10, .compute_s = 1};
    for (uint32_t j = 0; j < 3; j++) assert_true(bpt_gain_without_sync(r, 3, j) < 0);
}

static void test_of_one(void **state) {
    (void)state;
    const bpt_effort r[] = {{.samples = 100, .compute_s = 1}, {.samples = 0}};
    const bpt_effort untimed[] = {{.samples = 100}, {.samples = 100}};
    assert_true(bpt_gain_without_sync(untimed, 2, 0) < -1);
    assert_true(bpt_gain_without_sync(r, 2, 0) < -1);
    assert_true(bpt_gain_without_sync(r, 2, 1) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_waits),
        cmocka_unit_test(test_nobody_waits_for_long),
        cmocka_unit_test(test_all_wait),
        cmocka_unit_test(test_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
