/* Shares of data: rounding, the test vector of ALGORITHMS 1.2, clamping, convergence. */
#include "base/random.h"
#include "outer/data/idpa.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static uint64_t sum(const uint64_t *count, uint32_t m) {
    uint64_t s = 0;
    for (uint32_t j = 0; j < m; j++) s += count[j];
    return s;
}

static void test_largest_remainder(void **state) {
    (void)state;
    uint64_t count[4];
    assert_int_equal(bpt_share_proportional(10, (const double[]){1, 1, 1}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){4, 3, 3}), 24);
    /* quotas 4.7, 3.5, 1.8: floors 4, 3, 1, then the largest remainders */
    assert_int_equal(bpt_share_proportional(10, (const double[]){47, 35, 18}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){5, 3, 2}), 24);
    assert_int_equal(bpt_share_proportional(7, (const double[]){0, 2, 0, 5}, 4, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){0, 2, 0, 5}), 32);
    assert_int_equal(bpt_share_proportional(7, (const double[]){0, 0}, 2, count), BPT_EUSAGE);
    assert_int_equal(bpt_share_proportional(7, (const double[]){2, -1}, 2, count), BPT_EUSAGE);
    assert_int_equal(bpt_share_proportional(7, (const double[]){1, NAN}, 2, count), BPT_EUSAGE);
}

static void test_exact_sums(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(4, BPT_PURPOSE_TEST, 0);
    for (int trial = 0; trial < 2000; trial++) {
        const uint32_t m = 1 + bpt_random_below(&r, 16);
        const uint64_t total = bpt_random_below(&r, 20000000);
        double weight[16];
        uint64_t count[16];
        double all = 0;
        for (uint32_t j = 0; j < m; j++) all += weight[j] = bpt_random_uniform(&r) + 1e-6;
        assert_int_equal(bpt_share_proportional(total, weight, m, count), BPT_OK);
        assert_int_equal(sum(count, m), total);
        for (uint32_t j = 0; j < m; j++)
            assert_true(fabs((double)count[j] - (double)total * weight[j] / all) < 1.0001);
    }
}

static void test_vector_of_the_notes(void **state) {
    (void)state;
    const double mu[] = {3, 3, 2}, tbar[] = {1, 2, 4};
    uint64_t count[3], held[3] = {0, 0, 0};
    assert_int_equal(bpt_idpa_first(2000, mu, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){750, 750, 500}), 24);
    const uint64_t second[] = {1536, 393, 71}; /* of 1535.7, 392.9, 71.4 */
    for (int a = 1; a <= 6; a++) {
        if (a > 1) assert_int_equal(bpt_idpa_next(2000, held, tbar, 3, count), BPT_OK);
        if (a == 2) assert_memory_equal(count, second, 24);
        if (a > 2) {
            assert_true(fabs((double)count[0] - 1142.9) < 1.5);
            assert_true(fabs((double)count[1] - 571.4) < 1.5);
            assert_true(fabs((double)count[2] - 285.7) < 1.5);
        }
        assert_int_equal(sum(count, 3), 2000);
        for (int j = 0; j < 3; j++) held[j] += count[j];
    }
    assert_memory_equal(held, ((const uint64_t[]){6857, 3429, 1714}), 24);
}

/* A rank that holds more than its target gets nothing; the others still come out level. */
static void test_clamp_and_respread(void **state) {
    (void)state;
    uint64_t count[3];
    const uint64_t held[] = {1000, 100, 100};
    assert_int_equal(bpt_idpa_next(300, held, (const double[]){1, 1, 2}, 3, count), BPT_OK);
    /* 500 over ranks 1 and 2 in proportion 2 : 1, less what they hold */
    assert_memory_equal(count, ((const uint64_t[]){0, 233, 67}), 24);
    assert_int_equal(bpt_idpa_next(0, held, (const double[]){1, 1, 2}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){0, 0, 0}), 24);
    /* Two are at the target, and the third is one short of it. */
    const uint64_t short_of_one[] = {100, 100, 99};
    assert_int_equal(bpt_idpa_next(1, short_of_one, (const double[]){1, 1, 1}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){0, 0, 1}), 24);
    assert_int_equal(bpt_idpa_next(10, held, (const double[]){1, 0, 2}, 3, count), BPT_EUSAGE);
    assert_int_equal(bpt_idpa_next(10, held, (const double[]){-1, 2, 2}, 3, count), BPT_EUSAGE);
}

static void test_nobody_starts_without_a_sample(void **state) {
    (void)state;
    uint64_t count[3];
    assert_int_equal(bpt_idpa_first(10, (const double[]){1000, 1, 1}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){8, 1, 1}), 24);
    assert_int_equal(bpt_idpa_first(10, (const double[]){1, 1000, 1}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){1, 8, 1}), 24);
    assert_int_equal(bpt_idpa_first(3, (const double[]){1, 1, 1000}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){1, 1, 1}), 24);
    /* One that is enough is left as it is, and so is all where there is not one for each. */
    assert_int_equal(bpt_idpa_first(12, (const double[]){10, 1, 1}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){10, 1, 1}), 24);
    assert_int_equal(bpt_idpa_first(2, (const double[]){1, 4, 3}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){0, 1, 1}), 24);
    assert_int_equal(bpt_idpa_first(0, (const double[]){1, 4, 3}, 3, count), BPT_OK);
    assert_memory_equal(count, ((const uint64_t[]){0, 0, 0}), 24);
    assert_int_equal(bpt_idpa_first(10, (const double[]){1, 0, 1}, 3, count), BPT_EUSAGE);
    assert_int_equal(bpt_idpa_first(10, (const double[]){-1, 2, 1}, 3, count), BPT_EUSAGE);
}

/* Speeds 4:2:1, all believed alike: by batch 3 the times of a pass differ by less than 10 %. And a
 * rank that slows down at batch 4 is made up for at batch 5. */
static void test_spread_of_times(void **state) {
    (void)state;
    const double prior[] = {1, 1, 1};
    double tbar[] = {1, 2, 4};
    uint64_t count[3], held[3] = {0, 0, 0};
    for (int a = 1; a <= 8; a++) {
        if (a == 4) tbar[0] = 1.5;
        if (a == 1)
            assert_int_equal(bpt_idpa_first(6000, prior, 3, count), BPT_OK);
        else
            assert_int_equal(bpt_idpa_next(6000, held, tbar, 3, count), BPT_OK);
        double lo = INFINITY, hi = 0, mean = 0;
        for (int j = 0; j < 3; j++) {
            held[j] += count[j];
            const double t = (double)held[j] * tbar[j];
            lo = fmin(lo, t);
            hi = fmax(hi, t);
            mean += t / 3;
        }
        if (a == 3 || a == 5 || a == 8) assert_true((hi - lo) / mean < 0.1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest_remainder),
        cmocka_unit_test(test_exact_sums),
        cmocka_unit_test(test_vector_of_the_notes),
        cmocka_unit_test(test_clamp_and_respread),
        cmocka_unit_test(test_nobody_starts_without_a_sample),
        cmocka_unit_test(test_spread_of_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
