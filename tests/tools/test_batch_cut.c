/* How a batch is cut by the ranks' speed. */
#include "base/random.h"
#include "tools/train/job/batch_cut.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check(const double *speed, uint32_t n, uint64_t batch, const uint64_t *expected) {
    uint64_t cut[9];
    bpt_batch_cut(speed, n, batch, cut);
    for (uint32_t r = 0; r <= n; r++) assert_int_equal(cut[r], expected[r]);
}

static void test_by_speed(void **state) {
    (void)state;
    check((const double[]){4, 2, 1, 1}, 4, 256, (const uint64_t[]){0, 128, 192, 224, 256});
    check((const double[]){1, 1}, 2, 5, (const uint64_t[]){0, 3, 5});
    check((const double[]){0.1}, 1, 7, (const uint64_t[]){0, 7});
}

static void test_nobody_is_left_out(void **state) {
    (void)state;
    check((const double[]){1000, 1, 1}, 3, 8, (const uint64_t[]){0, 6, 7, 8});
    check((const double[]){1, 1, 1000}, 3, 8, (const uint64_t[]){0, 1, 2, 8});
    check((const double[]){1, 1000, 1}, 3, 3, (const uint64_t[]){0, 1, 2, 3});
}

static void test_any(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    for (int i = 0; i < 1000; i++) {
        double speed[8], sum = 0;
        uint64_t cut[9];
        const uint32_t n = 1 + bpt_random_below(&r, 8);
        const uint64_t batch = n + bpt_random_below(&r, 500);
        for (uint32_t k = 0; k < n; k++) sum += speed[k] = exp(2.0 * bpt_random_normal(&r));
        bpt_batch_cut(speed, n, batch, cut);
        assert_int_equal(cut[0], 0);
        assert_int_equal(cut[n], batch);
        for (uint32_t k = 0; k < n; k++) {
            const double samples = (double)(cut[k + 1] - cut[k]);
            assert_true(samples >= 1);
            assert_true(fabs(samples - speed[k] / sum * (double)batch) <= n);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_speed),
        cmocka_unit_test(test_nobody_is_left_out),
        cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
