/* What guessing comes to, against values worked out by hand. */
#include "tools/train/job/chance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_alike(void **state) {
    (void)state;
    const uint64_t ten[] = {6, 6, 6, 6, 6, 6, 6, 6, 6, 6};
    assert_true(fabs(bpt_chance_loss(ten, 10) - 2.302585092994046) < 1e-12);
}

/* 1/2, 1/4, 1/4 and none: 1.5 bits. */
static void test_unlike(void **state) {
    (void)state;
    const uint64_t four[] = {50, 0, 25, 25};
    assert_true(fabs(bpt_chance_loss(four, 4) - 1.5 * 0.6931471805599453) < 1e-12);
}

static void test_certain(void **state) {
    (void)state;
    const uint64_t one[] = {0, 7}, none[] = {0, 0};
    assert_true(bpt_chance_loss(one, 2) == 0.0);
    assert_true(bpt_chance_loss(none, 2) == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_unlike),
        cmocka_unit_test(test_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
