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

/* Of 100 in ten classes alike 10 are guessed, with a standard deviation of 3. */
static void test_luck(void **state) {
    (void)state;
    const uint64_t ten[] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    assert_true(bpt_chance_reaches(0, ten, 10));
    assert_true(bpt_chance_reaches(0.21, ten, 10));
    assert_false(bpt_chance_reaches(0.23, ten, 10));
    const uint64_t many[] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
    assert_true(bpt_chance_reaches(0.111, many, 10)); /* the more are judged, the less is luck */
    assert_false(bpt_chance_reaches(0.113, many, 10));
}

/* Of 64, 16 and 20 the first is answered always: 0.64, with a deviation of 0.048. */
static void test_most_frequent(void **state) {
    (void)state;
    const uint64_t three[] = {64, 16, 20}, one[] = {0, 7};
    assert_true(bpt_chance_reaches(0.64, three, 3));
    assert_true(bpt_chance_reaches(0.83, three, 3));
    assert_false(bpt_chance_reaches(0.84, three, 3));
    assert_true(bpt_chance_reaches(1, one, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),         cmocka_unit_test(test_unlike),
        cmocka_unit_test(test_certain),       cmocka_unit_test(test_luck),
        cmocka_unit_test(test_most_frequent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
