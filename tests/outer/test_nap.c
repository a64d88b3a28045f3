/* The pause between two polls. ctest: TIMEOUT=10 */
#include "outer/comm/nap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000u

static void test_follows_the_quiet_time(void **state) {
    const bpt__lateness none = {0};
    (void)state;
    assert_int_equal(bpt__nap_ns(0, BPT__CALM, &none), 1 * MS);
    assert_int_equal(bpt__nap_ns(3 * MS, BPT__CALM, &none), 3 * MS);
    assert_int_equal(bpt__nap_ns(1000 * MS, BPT__CALM, &none), 4 * MS);
    assert_int_equal(bpt__nap_ns(0, BPT__HURRIED, &none), 20000);
    assert_int_equal(bpt__nap_ns(800000, BPT__HURRIED, &none), 100000);
    assert_int_equal(bpt__nap_ns(1000 * MS, BPT__HURRIED, &none), 200000);
    assert_int_equal(bpt__nap_ns(0, BPT__EXPECTING, &none), 20000);
    assert_int_equal(bpt__nap_ns(8 * MS, BPT__EXPECTING, &none), 1 * MS);
    assert_int_equal(bpt__nap_ns(1000 * MS, BPT__EXPECTING, &none), 4 * MS);
}

static void test_is_longer_with_a_part_of_a_core(void **state) {
    (void)state;
    assert_int_equal(bpt__nap_ns(4 * MS, BPT__CALM, &(bpt__lateness){.share = 0.25}), 16 * MS);
    assert_int_equal(bpt__nap_ns(0, BPT__CALM, &(bpt__lateness){.share = 0.25}), 4 * MS);
    assert_int_equal(bpt__nap_ns(4 * MS, BPT__CALM, &(bpt__lateness){.share = 1e-6}), 32 * MS);
    assert_int_equal(bpt__nap_ns(4 * MS, BPT__CALM, &(bpt__lateness){.share = 1}), 4 * MS);
    assert_int_equal(bpt__nap_ns(1000 * MS, BPT__HURRIED, &(bpt__lateness){.share = 0.25}), 200000);
}

static void test_share_is_of_the_last_window(void **state) {
    bpt__lateness l = {0};
    (void)state;
    bpt__lateness_add(&l, 10 * MS, 90 * MS);
    assert_true(l.share == 0); /* too short to tell */
    bpt__lateness_add(&l, 40 * MS, 110 * MS);
    assert_true(l.share == 0.25);
    bpt__lateness_add(&l, 4 * MS, 4 * MS);
    assert_true(l.share == 0.25);
    bpt__lateness_add(&l, 97 * MS, 96 * MS); /* clocks are read after each other */
    assert_true(l.share == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_quiet_time),
        cmocka_unit_test(test_is_longer_with_a_part_of_a_core),
        cmocka_unit_test(test_share_is_of_the_last_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
