/* Axes of a chart: numbers that a person would choose, for ranges of any size, and where values
 * lie between them. */
#include "tests/base/near.h"
#include "tools/train/chart/chart_axis.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The numbers at an axis, with spaces between them. */
static void assert_numbers(const bpt_chart_axis *a, const char *expected) {
    char all[512] = "";
    for (size_t i = 0; i < a->n_ticks; i++) {
        char one[BPT_CHART_NUMBER_SIZE];
        bpt_chart_axis_label(a, a->ticks[i], one);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? " " : "", one);
    }
    assert_string_equal(all, expected);
}

static bpt_chart_range range_of(double lo, double hi, unsigned n_most) {
    return (bpt_chart_range){
        .lo = lo, .hi = hi, .least = -1e300, .most = 1e300, .to_ticks = true, .n_most = n_most};
}

static void test_numbers_of_differences(void **state) {
    (void)state;
    static const struct {
        double lo, hi;
        unsigned n_most;
        const char *numbers;
    } cases[] = {
        {0, 2.31, 6, "0.0 0.5 1.0 1.5 2.0 2.5"},
        {0.8531, 0.8934, 5, "0.85 0.86 0.87 0.88 0.89 0.90"},
        {0, 10, 10, "0 1 2 3 4 5 6 7 8 9 10"},
        {0, 160, 10, "0 20 40 60 80 100 120 140 160"},
        {0, 38123, 3, "0 20000 40000"},
        {0, 0.05, 2, "0.00 0.05"},
        {0, 0.0003, 3, "0.0000 0.0001 0.0002 0.0003"},
        {0, 1e-5, 2, "0 5e-6 1e-5"},
        {0, 2.5e6, 3, "0 1e6 2e6 3e6"},
        {-1, 1, 4, "-1.0 -0.5 0.0 0.5 1.0"},
        {0, 1, 5, "0.0 0.2 0.4 0.6 0.8 1.0"},
        {2.30251, 2.30277, 6, "2.3025 2.30255 2.3026 2.30265 2.3027 2.30275 2.3028"},
        {1e6, 1.0002e6, 4, "1e6 1.00005e6 1.0001e6 1.00015e6 1.0002e6"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const bpt_chart_range r = range_of(cases[i].lo, cases[i].hi, cases[i].n_most);
        const bpt_chart_axis a = bpt_chart_axis_linear(&r);
        assert_numbers(&a, cases[i].numbers);
        assert_true(a.lo <= cases[i].lo + 1e-6 * a.step && a.hi >= cases[i].hi - 1e-6 * a.step);
    }
}

/* The ends stay where the values end; ticks are between them. */
static void test_ends_that_are_no_ticks(void **state) {
    (void)state;
    bpt_chart_range r = range_of(1.3, 4.7, 4);
    r.to_ticks = false;
    const bpt_chart_axis a = bpt_chart_axis_linear(&r);
    assert_numbers(&a, "2 3 4");
    assert_near(a.lo, 1.3, 0);
    assert_near(a.hi, 4.7, 0);
    assert_near(bpt_chart_axis_place(&a, 1.3), 0, 1e-12);
    assert_near(bpt_chart_axis_place(&a, 4.7), 1, 1e-12);
    assert_near(bpt_chart_axis_place(&a, 3), 0.5, 1e-12);
}

/* Values that are all the same have room about them, as far as there can be values. */
static void test_ranges_of_nothing(void **state) {
    (void)state;
    bpt_chart_range r = {.lo = 0, .hi = 0, .least = 0, .most = 1, .to_ticks = true, .n_most = 5};
    bpt_chart_axis a = bpt_chart_axis_linear(&r);
    assert_near(a.lo, 0, 0);
    assert_near(a.hi, 1, 1e-12);
    r.lo = r.hi = 1;
    a = bpt_chart_axis_linear(&r);
    assert_near(a.lo, 0.9, 1e-12);
    assert_near(a.hi, 1, 1e-12);
    r.lo = r.hi = 0.5;
    a = bpt_chart_axis_linear(&r);
    assert_true(a.lo < 0.46 && a.hi > 0.54);
}

/* Whatever the size: few ticks, one after the other, within the axis. */
static void test_any_size(void **state) {
    (void)state;
    for (int power = -99; power < 99; power++)
        for (double digits = 1; digits < 10; digits += 0.7) {
            const double hi = digits * pow(10, power);
            const bpt_chart_range r = range_of(digits > 5 ? 0.9 * hi : 0, hi, 6);
            const bpt_chart_axis a = bpt_chart_axis_linear(&r);
            assert_in_range(a.n_ticks, 3, 8);
            assert_true(a.lo < a.hi && a.hi >= hi * (1 - 1e-6));
            for (size_t i = 1; i < a.n_ticks; i++)
                assert_near((a.ticks[i] - a.ticks[i - 1]) / a.step, 1, 1e-6);
        }
}

static void test_numbers_of_factors(void **state) {
    (void)state;
    static const struct {
        double lo, hi;
        const char *numbers;
    } cases[] = {
        {0.15, 2.4, "0.2 0.5 1 2"},
        {0.02, 2.4, "0.02 0.05 0.1 0.2 0.5 1 2"},
        {0.0011, 2.4, "0.01 0.1 1"},
        {1, 1e10, "1 100 1e4 1e6 1e8 1e10"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const bpt_chart_range r = range_of(cases[i].lo, cases[i].hi, 6);
        const bpt_chart_axis a = bpt_chart_axis_log(&r);
        assert_true(a.log);
        assert_numbers(&a, cases[i].numbers);
    }
}

/* What has no logarithm is below the axis, and not infinitely far. */
static void test_places_of_factors(void **state) {
    (void)state;
    const bpt_chart_range r = range_of(0.1, 10, 6);
    const bpt_chart_axis a = bpt_chart_axis_log(&r);
    assert_near(bpt_chart_axis_place(&a, 0.1), 0, 1e-12);
    assert_near(bpt_chart_axis_place(&a, 1), 0.5, 1e-12);
    assert_near(bpt_chart_axis_place(&a, 10), 1, 1e-12);
    assert_near(bpt_chart_axis_place(&a, 0), -1, 0);
    assert_near(bpt_chart_axis_place(&a, -3), -1, 0);
    assert_near(bpt_chart_axis_place(&a, 1e-90), -1, 0);
}

static void test_numbers_alone(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},           {0.2580123, "0.258"}, {2.302585, "2.303"}, {64, "64"},
                 {38123.4, "38123"}, {0.00002, "2e-5"},    {1.5e12, "1.5e12"},  {-0.5, "-0.5"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[BPT_CHART_NUMBER_SIZE];
        bpt_chart_number(cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_differences),
        cmocka_unit_test(test_ends_that_are_no_ticks),
        cmocka_unit_test(test_ranges_of_nothing),
        cmocka_unit_test(test_any_size),
        cmocka_unit_test(test_numbers_of_factors),
        cmocka_unit_test(test_places_of_factors),
        cmocka_unit_test(test_numbers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
