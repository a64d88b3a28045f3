/* The pause between two polls. ctest: TIMEOUT=10 */
#include "outer/nap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000u

static void test_follows_the_quiet_time(void **state) {
    const bpt__core_share none = {0};
    (void)state;
    assert_int_equal(bpt__nap_ns(0, false, &none), 1 * MS);
    assert_int_equal(bpt__nap_ns(3 * MS, false, &none), 3 * MS);
    assert_int_equal(bpt__nap_ns(1000 * MS, false, &none), 4 * MS);
    assert_int_equal(bpt__nap_ns(0, true, &none), 20000);
    assert_int_equal(bpt__nap_ns(800000, true, &none), 100000);
    assert_int_equal(bpt__nap_ns(1000 * MS, true, &none), 200000);
}

static void test_is_longer_with_a_part_of_a_core(void **state) {
    (void)state;
    assert_int_equal(bpt__nap_ns(4 * MS, false, &(bpt__core_share){.share = 0.25}), 16 * MS);
    assert_int_equal(bpt__nap_ns(0, false, &(bpt__core_share){.share = 0.25}), 4 * MS);
    assert_int_equal(bpt__nap_ns(4 * MS, false, &(bpt__core_share){.share = 1e-6}), 32 * MS);
    assert_int_equal(bpt__nap_ns(4 * MS, false, &(bpt__core_share){.share = 1.9}), 4 * MS);
    assert_int_equal(bpt__nap_ns(1000 * MS, true, &(bpt__core_share){.share = 0.25}), 200000);
}

static void test_share_is_of_the_last_window(void **state) {
    bpt__core_share s = {0};
    (void)state;
    bpt__core_share_add(&s, 5000 * (uint64_t)MS, 7000 * (uint64_t)MS);
    assert_true(s.share == 0);
    bpt__core_share_add(&s, 5050 * (uint64_t)MS, 7050 * (uint64_t)MS);
    assert_true(s.share == 0); /* too short to tell */
    bpt__core_share_add(&s, 5200 * (uint64_t)MS, 7050 * (uint64_t)MS);
    assert_true(s.share == 0.25);
    bpt__core_share_add(&s, 5400 * (uint64_t)MS, 7450 * (uint64_t)MS);
    assert_true(s.share == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_quiet_time),
        cmocka_unit_test(test_is_longer_with_a_part_of_a_core),
        cmocka_unit_test(test_share_is_of_the_last_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
