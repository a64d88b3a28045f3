/* The estimate of a rank's speed: noise, sudden and slow changes. */
#include "outer/data/speed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { ENOUGH = 10000000 }; /* samples: a second at 100 ns each */

/* @return the estimate after a measurement of @p ns a sample */
static double after(bpt_speed *s, uint64_t ns) {
    bpt_speed_measure(s, (bpt_timing){ENOUGH, ENOUGH * ns});
    return bpt_speed_sample_ns(s);
}

static void test_mean(void **state) {
    (void)state;
    bpt_speed s = {0};
    assert_true(bpt_speed_sample_ns(&s) == 0);
    bpt_speed_measure(&s, (bpt_timing){0, 7});
    bpt_speed_measure(&s, (bpt_timing){7, 0});
    assert_true(bpt_speed_sample_ns(&s) == 0);
    assert_true(after(&s, 100) == 100);
    assert_true(after(&s, 120) == 110);
    /* by samples, not by measurements */
    bpt_speed_measure(&s, (bpt_timing){8 * ENOUGH, 110.0 * 8 * ENOUGH});
    assert_true(bpt_speed_sample_ns(&s) == 110);
}

/* Short times are a measurement together; until there is one they count as they are. */
static void test_short_times(void **state) {
    (void)state;
    bpt_speed s = {0};
    for (int i = 0; i < 240; i++) {
        bpt_speed_measure(&s, (bpt_timing){10, i % 10 < 9 ? 1000 : 10 * 1000 * 1000});
        if (i == 0) assert_true(bpt_speed_sample_ns(&s) == 100);
    }
    assert_int_equal(s.n, 0); /* 240 of a tenth of a millisecond: 0.24 s */
    assert_true(fabs(bpt_speed_sample_ns(&s) - 100090) < 1);
    assert_false(bpt_speed_settled(&s));
    for (int i = 0; i < 1760; i++)
        bpt_speed_measure(&s, (bpt_timing){10, i % 10 < 9 ? 1000 : 10 * 1000 * 1000});
    assert_int_equal(s.n, 8);
    assert_true(bpt_speed_settled(&s));
    assert_true(fabs(bpt_speed_sample_ns(&s) - 100090) < 5000);
}

static void test_one_outlier_is_noise_two_are_a_change(void **state) {
    (void)state;
    bpt_speed s = {0};
    for (int i = 0; i < 20; i++) after(&s, 100);
    assert_true(after(&s, 400) < 116);
    for (int i = 0; i < 10; i++) after(&s, 100);
    assert_true(fabs(bpt_speed_sample_ns(&s) - 110) < 2);
    after(&s, 400);
    assert_true(after(&s, 420) == 410);
    after(&s, 100);
    assert_true(after(&s, 100) == 100);
}

/* Off by more than a quarter, to either side. */
static void test_how_far_is_a_change(void **state) {
    (void)state;
    const struct {
        uint64_t ns;
        bool changes;
    } rows[] = {{130, true}, {120, false}, {70, true}, {80, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bpt_speed s = {0};
        for (int k = 0; k < 20; k++) after(&s, 100);
        after(&s, rows[i].ns);
        const double mean = after(&s, rows[i].ns);
        assert_true(rows[i].changes == (mean == (double)rows[i].ns));
    }
}

/* The window is 32 measurements, and half as many as it goes on. */
static void test_a_long_window_counts_half(void **state) {
    (void)state;
    bpt_speed s = {0};
    for (int i = 0; i < 32; i++) after(&s, 100);
    assert_int_equal(s.n, 32);
    assert_true(after(&s, 117) == 101); /* (16 x 100 + 117) / 17 */
    assert_int_equal(s.n, 17);
}

/* High and low by turns is noise too. */
static void test_outliers_to_both_sides(void **state) {
    (void)state;
    bpt_speed s = {0};
    for (int i = 0; i < 40; i++) after(&s, i % 2 ? 150 : 50);
    assert_true(fabs(bpt_speed_sample_ns(&s) - 100) < 5);
}

/* Steps too small to be seen as such are followed all the same. */
static void test_slow_change(void **state) {
    (void)state;
    bpt_speed s = {0};
    for (int i = 0; i < 1000; i++) after(&s, 100);
    for (int i = 0; i < 100; i++) after(&s, 115);
    assert_true(fabs(bpt_speed_sample_ns(&s) - 115) < 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_short_times),
        cmocka_unit_test(test_one_outlier_is_noise_two_are_a_change),
        cmocka_unit_test(test_how_far_is_a_change),
        cmocka_unit_test(test_a_long_window_counts_half),
        cmocka_unit_test(test_outliers_to_both_sides),
        cmocka_unit_test(test_slow_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
