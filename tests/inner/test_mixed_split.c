/* How a batch is cut between a device and the cores: every share that there is, against the one
 * that is chosen.
 *
 * ctest: cpu TIMEOUT=30 */
#include "base/random.h"
#include "inner/mixed/mixed_split.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt__mixed_costs costs(double device, double cores, double exchange) {
    return (bpt__mixed_costs){{0.0, device}, {0.0, cores}, exchange};
}

static void test_tiles(void **state) {
    (void)state;
    assert_int_equal(bpt__mixed_tile(1), 1);
    assert_int_equal(bpt__mixed_tile(64), 1);
    assert_int_equal(bpt__mixed_tile(65), 2);
    assert_int_equal(bpt__mixed_tile(512), 8);
}

static void test_known(void **state) {
    (void)state;
    const bpt__mixed_costs equal = costs(10, 10, 0), three = costs(10, 30, 0);
    assert_int_equal(bpt__mixed_split(&equal, 64, 1), 32);
    assert_int_equal(bpt__mixed_split(&three, 64, 1), 16);
    /* a step of 640 would become one of 480: worth an exchange of 150, not of 170 */
    const bpt__mixed_costs near = costs(10, 30, 150), far = costs(10, 30, 170);
    assert_int_equal(bpt__mixed_split(&near, 64, 1), 16);
    assert_int_equal(bpt__mixed_split(&far, 64, 1), 0);
    const bpt__mixed_costs slow = costs(10, 1000, 0), fast = costs(1000, 10, 0);
    assert_int_equal(bpt__mixed_split(&slow, 64, 1), 0);
    assert_int_equal(bpt__mixed_split(&fast, 64, 1), 64);
    /* no tile to either if both would end it at once, but to the device; and no exchange that gains
     * nothing */
    assert_int_equal(bpt__mixed_split(&equal, 3, 1), 1);
    const bpt__mixed_costs in_vain = costs(10, 30, 160);
    assert_int_equal(bpt__mixed_split(&in_vain, 64, 1), 0);
    /* the cores alone exchange nothing */
    const bpt__mixed_costs dear = costs(1000, 10, 1e6);
    assert_int_equal(bpt__mixed_split(&dear, 64, 1), 64);
    const bpt__mixed_costs one = costs(10, 5, 0);
    assert_int_equal(bpt__mixed_split(&one, 1, 1), 1);
    /* cores that cannot be had */
    const bpt__mixed_costs none = costs(10, INFINITY, 0);
    assert_int_equal(bpt__mixed_split(&none, 64, 1), 0);
}

static double random_between(bpt_random *r, double low, double high) {
    return low + (high - low) * (double)bpt_random_uniform(r);
}

/* No other share would be faster by more than a tile's time, and none alone at all. */
static void test_best(void **state) {
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    (void)state;
    for (int i = 0; i < 2000; i++) {
        const int64_t batch = 1 + bpt_random_below(&r, 300), tile = bpt__mixed_tile(batch);
        const bpt__mixed_costs c = {{random_between(&r, 0, 50), random_between(&r, 1, 20)},
                                    {random_between(&r, 0, 50), random_between(&r, 1, 100)},
                                    random_between(&r, 0, 200)};
        const int64_t n = bpt__mixed_split(&c, batch, 1);
        const double ns = bpt__mixed_step_ns(&c, batch, n);
        const double slower = fmax(c.device.sample_ns, c.cores.sample_ns);
        const double slack = (double)tile * slower + fmax(c.device.start_ns, c.cores.start_ns);
        assert_true(n >= 0 && n <= batch &&
                    (n == batch || n % tile == 0 || (batch - n) % tile == 0));
        assert_true(ns <= bpt__mixed_step_ns(&c, batch, 0));
        assert_true(ns <= bpt__mixed_step_ns(&c, batch, batch));
        for (int64_t other = 0; other <= batch; other++)
            assert_true(ns <= bpt__mixed_step_ns(&c, batch, other) + slack);
    }
}

/* Where a batch norm is over one pixel, one sample teaches nothing. */
static void test_least(void **state) {
    (void)state;
    static const int64_t wanted[] = {0, 2, 2, 3, 4, 5, 5, 7}; /* of 7, by what is asked for */
    for (int64_t n = 0; n <= 7; n++) assert_int_equal(bpt__mixed_allowed(n, 7, 2), wanted[n]);
    for (int64_t n = 0; n <= 3; n++) assert_int_equal(bpt__mixed_allowed(n, 3, 2), n < 3 ? 0 : 3);
    for (int64_t n = 1; n <= 3; n++) assert_int_equal(bpt__mixed_allowed(n, 4, 2), 2);
    for (int64_t n = 0; n <= 7; n++) assert_int_equal(bpt__mixed_allowed(n, 7, 1), n);
    const bpt__mixed_costs cores_slow = costs(10, 70, 0), device_slow = costs(70, 10, 0);
    assert_int_equal(bpt__mixed_split(&cores_slow, 8, 1), 1);
    assert_int_equal(bpt__mixed_split(&cores_slow, 8, 2), 0); /* two would take it longer */
    assert_int_equal(bpt__mixed_split(&device_slow, 8, 1), 7);
    assert_int_equal(bpt__mixed_split(&device_slow, 8, 2), 8);
    const bpt__mixed_costs start = {{100.0, 10.0}, {0.0, 40.0}, 0.0};
    assert_int_equal(bpt__mixed_split(&start, 3, 2), 3);
}

static void test_lines(void **state) {
    (void)state;
    const bpt__mixed_cost through = bpt__mixed_cost_of(0, 0, 10, 50);
    assert_true(through.start_ns == 0.0 && through.sample_ns == 5.0);
    const bpt__mixed_cost line = bpt__mixed_cost_of(10, 70, 20, 90);
    assert_true(line.start_ns == 50.0 && line.sample_ns == 2.0);
    const bpt__mixed_cost falling = bpt__mixed_cost_of(10, 100, 20, 90);
    assert_true(falling.start_ns == 0.0 && falling.sample_ns == 4.5);
    const bpt__mixed_cost steep = bpt__mixed_cost_of(10, 10, 20, 90); /* starts below 0 */
    assert_true(steep.start_ns == 0.0 && steep.sample_ns == 4.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles), cmocka_unit_test(test_known), cmocka_unit_test(test_best),
        cmocka_unit_test(test_least), cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
