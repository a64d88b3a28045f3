/* A quantity over a run: however many values come, few points are kept that mean the same, the
 * largest value is known, and what was lost goes; and smooth curves through noisy ones. */
#include "tests/base/near.h"
#include "tools/train/chart/chart_series.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_chart_series series;
static bpt_chart_curve curve, smooth;

static int set_up(void **state) {
    (void)state;
    series = (bpt_chart_series){0};
    return 0;
}

static void add_at(double epoch, double seconds, double value) {
    const bpt_chart_place place = {epoch, seconds, epoch};
    bpt_chart_series_add(&series, &place, value);
}

static void add(size_t first, size_t n) {
    for (size_t i = first; i < first + n; i++)
        add_at((double)i, 10 * (double)i, i == 4711 ? 1e6 : (double)(i % 2));
}

static void test_few_values_stay_as_they_are(void **state) {
    (void)state;
    add(0, BPT_CHART_POINTS);
    assert_int_equal(series.n, BPT_CHART_POINTS);
    for (size_t i = 0; i < series.n; i++) {
        const bpt_chart_point *p = &series.points[i];
        assert_near(p->epoch, i, 0);
        assert_near(p->seconds, 10 * i, 0);
        assert_near(p->value, i % 2, 0);
        assert_int_equal(p->n, 1);
    }
}

/* Of every length: no more points than can be drawn, no fewer than half, each value in one of them.
 */
static void test_many_values_are_joined(void **state) {
    (void)state;
    for (size_t i = 0, next = 1; i < 20000; i++) {
        add(i, 1);
        if (i + 1 != next) continue;
        next += next / 3 + 1;
        uint64_t n = 0;
        double sum = 0;
        for (size_t k = 0; k < series.n; k++) {
            const bpt_chart_point *p = &series.points[k];
            n += p->n;
            sum += (double)p->n * p->epoch;
            if (k > 0) assert_true(p->epoch > series.points[k - 1].last_epoch);
            assert_true(p->last_epoch >= p->epoch);
        }
        assert_int_equal(n, i + 1);
        assert_near(sum, 0.5 * (double)i * (double)(i + 1), 1e-9 * sum);
        assert_in_range(series.n, i + 1 < BPT_CHART_POINTS / 2 ? i + 1 : BPT_CHART_POINTS / 2,
                        BPT_CHART_POINTS);
    }
    const bpt_chart_point *early = &series.points[10];
    assert_int_equal(early->n, 32); /* 20000 in at most 1000 points, by powers of two */
    assert_near(early->value, 0.5, 1e-9);
    assert_near(early->seconds, 10 * early->epoch, 1e-6);
}

/* Also where it is one of many that a point is of. */
static void test_the_largest(void **state) {
    (void)state;
    assert_null(bpt_chart_series_top(&series));
    add(0, 20000);
    const bpt_chart_point *top = bpt_chart_series_top(&series);
    assert_near(top->top, 1e6, 0);
    assert_near(top->top_epoch, 4711, 0);
    assert_true(top->value < 1e5);
    series = (bpt_chart_series){0};
    for (size_t i = 0; i < 5; i++) add_at((double)i, 0, 0);
    assert_near(bpt_chart_series_top(&series)->top_epoch, 0, 0); /* the first */
}

static void test_cutting(void **state) {
    (void)state;
    add(0, 100);
    bpt_chart_series_cut(&series, 59);
    assert_int_equal(series.n, 60);
    bpt_chart_series_cut(&series, -1);
    assert_int_equal(series.n, 0);
    add(0, 20000);
    bpt_chart_series_cut(&series, 10007); /* in the midst of a point */
    assert_true(series.points[series.n - 1].last_epoch <= 10007);
    assert_true(series.points[series.n - 1].last_epoch > 10007 - 32);
    add(10008, 9000);
    assert_near(series.points[series.n - 1].last_epoch, 19007, 0);
    assert_in_range(series.n, BPT_CHART_POINTS / 2, BPT_CHART_POINTS);
}

/* What a mean is of is lost where the end of its interval is, wherever its middle. */
static void test_cutting_means(void **state) {
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        const bpt_chart_place place = {.epoch = i + 0.5, .seconds = i, .last_epoch = i + 1};
        bpt_chart_series_add(&series, &place, i);
    }
    bpt_chart_series_cut(&series, 7.75);
    assert_int_equal(series.n, 7);
    assert_near(series.points[6].epoch, 6.5, 0);
    assert_near(bpt_chart_series_top(&series)->top_epoch, 6.5, 0);
}

static void test_curves(void **state) {
    (void)state;
    double lo = 5, hi = 5;
    add_at(1, 120, 7);
    add_at(2, 240, 3);
    bpt_chart_curve_of(&series, 0, &curve);
    assert_int_equal(curve.n, 2);
    assert_near(curve.x[1], 2, 0);
    bpt_chart_curve_of(&series, 60, &curve);
    assert_near(curve.x[1], 4, 0);
    assert_near(curve.y[1], 3, 0);
    bpt_chart_curve_range(&curve, &lo, &hi);
    assert_near(lo, 3, 0);
    assert_near(hi, 7, 0);
}

/* A slope with a scatter of +-s: at both ends too the smooth curve is near to it. */
static void put_slope(size_t n, double scatter) {
    curve.n = n;
    for (size_t i = 0; i < n; i++) {
        curve.x[i] = (double)i / (double)n;
        curve.y[i] = 10 - 5 * curve.x[i] + (i % 2 ? scatter : -scatter);
    }
}

static void test_smoothing(void **state) {
    (void)state;
    put_slope(1000, 1);
    assert_true(bpt_chart_curve_smooth(&curve, &smooth));
    assert_int_equal(smooth.n, 1000);
    for (size_t i = 0; i < smooth.n; i++) {
        assert_near(smooth.x[i], curve.x[i], 0);
        assert_near(smooth.y[i], 10 - 5 * curve.x[i], i < 30 || i >= 970 ? 0.3 : 0.01);
    }
}

static void test_nothing_to_smooth(void **state) {
    (void)state;
    put_slope(1000, 0.05); /* of a range of 5 */
    assert_false(bpt_chart_curve_smooth(&curve, &smooth));
    put_slope(1000, 0);
    for (size_t i = 0; i < curve.n; i++) curve.y[i] = 0.7; /* and what is not is a last bit */
    assert_false(bpt_chart_curve_smooth(&curve, &smooth));
    put_slope(20, 1);
    assert_false(bpt_chart_curve_smooth(&curve, &smooth));
    curve.n = 0;
    assert_false(bpt_chart_curve_smooth(&curve, &smooth));
    put_slope(1000, 1);
    for (size_t i = 0; i < curve.n; i++) curve.x[i] = 3; /* all at one place */
    assert_false(bpt_chart_curve_smooth(&curve, &smooth));
}

/* Points that lie together, far from others. */
static void test_smoothing_of_heaps(void **state) {
    (void)state;
    put_slope(100, 1);
    for (size_t i = 0; i < curve.n; i++) curve.x[i] = i < 50 ? 0 : 1;
    assert_true(bpt_chart_curve_smooth(&curve, &smooth));
    double heap = 0;
    for (size_t i = 0; i < 50; i++) heap += curve.y[i] / 50;
    for (size_t i = 0; i < 50; i++) assert_near(smooth.y[i], heap, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_few_values_stay_as_they_are, set_up),
        cmocka_unit_test_setup(test_many_values_are_joined, set_up),
        cmocka_unit_test_setup(test_the_largest, set_up),
        cmocka_unit_test_setup(test_cutting, set_up),
        cmocka_unit_test_setup(test_cutting_means, set_up),
        cmocka_unit_test_setup(test_curves, set_up),
        cmocka_unit_test_setup(test_smoothing, set_up),
        cmocka_unit_test_setup(test_nothing_to_smooth, set_up),
        cmocka_unit_test_setup(test_smoothing_of_heaps, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
