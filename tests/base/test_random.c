/* Philox against known answers, and the statistics of what is drawn from it. Seeds are fixed, so
 * every bound below either holds always or never. */
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* philox4x32 with 10 rounds, from kat_vectors of the Random123 distribution */
static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bpt_random r = {.used = 4};
        memcpy(r.counter, rows[i].counter, sizeof r.counter);
        memcpy(r.key, rows[i].key, sizeof r.key);
        for (int k = 0; k < 4; k++) assert_int_equal(bpt_random_u32(&r), rows[i].answer[k]);
    }
}

/* Stored results depend on it: this must never change. */
static void test_layout_of_a_stream(void **state) {
    (void)state;
    static const uint32_t expected[] = {0xa02ed7e4, 0x15096acd, 0x3e2918bb, 0x8f6ca42d,
                                        0x47adc21a, 0xdc9af72b, 0x2ed0a0d7, 0x53c096a3};
    bpt_random r = bpt_random_stream(0x0123456789abcdef, BPT_PURPOSE_TEST, 0xfedcba9876543210);
    for (int i = 0; i < 8; i++) assert_int_equal(bpt_random_u32(&r), expected[i]);
}

static void test_a_copy_continues_alike(void **state) {
    (void)state;
    bpt_random a = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    for (int i = 0; i < 7; i++) bpt_random_u32(&a);
    bpt_random b = a;
    for (int i = 0; i < 100; i++) assert_int_equal(bpt_random_u32(&a), bpt_random_u32(&b));
}

/* Any beginning within a block of four numbers, any length around what is drawn in one pass. */
static void test_many_at_once_are_as_one_by_one(void **state) {
    (void)state;
    enum { MOST = 300 };
    for (size_t drawn = 0; drawn < 5; drawn++)
        for (size_t n = 0; n < MOST; n++) {
            const uint64_t id = 0xfedcba9876543210 + n; /* all words are needed */
            bpt_random a = bpt_random_stream(0x0123456789abcdef, BPT_PURPOSE_TEST, id);
            if (n % 2) a.counter[0] = UINT32_MAX - 20; /* begins anew in the middle */
            bpt_random b = a;
            uint32_t found[MOST + 1];
            for (size_t i = 0; i < drawn; i++)
                assert_int_equal(bpt_random_u32(&a), bpt_random_u32(&b));
            found[n] = 7;
            bpt_random_fill(&a, found, n);
            for (size_t i = 0; i < n; i++) assert_int_equal(found[i], bpt_random_u32(&b));
            assert_int_equal(found[n], 7);
            assert_int_equal(bpt_random_u32(&a), bpt_random_u32(&b));
        }
}

/* The same bits, whatever was drawn before and however many at a time. */
static void test_normals_are_as_one_by_one(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 1, 2, 127, 128, 129, 500};
    for (size_t drawn = 0; drawn < 5; drawn++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            const size_t n = lengths[k];
            bpt_random a = bpt_random_stream(5, BPT_PURPOSE_TEST, n);
            bpt_random b = a;
            float found[501];
            for (size_t i = 0; i < drawn; i++)
                assert_int_equal(bpt_random_u32(&a), bpt_random_u32(&b));
            found[n] = 7;
            bpt_random_normals(&a, found, n);
            for (size_t i = 0; i < n; i++) {
                const float expected = bpt_random_normal(&b);
                assert_memory_equal(&found[i], &expected, sizeof expected);
            }
            assert_true(found[n] == 7);
            assert_int_equal(bpt_random_u32(&a), bpt_random_u32(&b));
        }
}

/* Streams with another seed, purpose or id share no number at the same place. */
static void test_names_separate_streams(void **state) {
    (void)state;
    bpt_random streams[] = {
        bpt_random_stream(1, BPT_PURPOSE_TEST, 1),
        bpt_random_stream(2, BPT_PURPOSE_TEST, 1),
        bpt_random_stream(1 + ((uint64_t)1 << 32), BPT_PURPOSE_TEST, 1),
        bpt_random_stream(1, BPT_PURPOSE_GLYPHS, 1),
        bpt_random_stream(1, BPT_PURPOSE_TEST, 2),
        bpt_random_stream(1, BPT_PURPOSE_TEST, 1 + ((uint64_t)1 << 32)),
    };
    enum { N = sizeof streams / sizeof *streams };
    for (int draw = 0; draw < 1000; draw++) {
        uint32_t values[N];
        for (int i = 0; i < N; i++) {
            values[i] = bpt_random_u32(&streams[i]);
            for (int j = 0; j < i; j++) assert_int_not_equal(values[i], values[j]);
        }
    }
}

static void test_every_bit_is_fair(void **state) {
    (void)state;
    enum { DRAWS = 100000 };
    bpt_random r = bpt_random_stream(3, BPT_PURPOSE_TEST, 0);
    int ones[32] = {0};
    for (int i = 0; i < DRAWS; i++) {
        const uint32_t value = bpt_random_u32(&r);
        for (int bit = 0; bit < 32; bit++) ones[bit] += value >> bit & 1;
    }
    const double sigma = sqrt(DRAWS) / 2;
    for (int bit = 0; bit < 32; bit++) assert_true(fabs(ones[bit] - DRAWS / 2.0) < 4.5 * sigma);
}

/* @return chi-square of counts that should be equal */
static double chi_square(const uint32_t *counts, uint32_t n, double expected) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

static void assert_fair(const uint32_t *counts, uint32_t n, double expected) {
    const double freedom = n - 1; /* its chi-square has this mean and twice this variance */
    assert_true(chi_square(counts, n, expected) < freedom + 5 * sqrt(2 * freedom) + 5);
}

static void test_below_is_fair_for_small_n(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(4, BPT_PURPOSE_TEST, 0);
    for (uint32_t n = 1; n <= 20; n++) {
        uint32_t counts[20] = {0};
        for (int i = 0; i < 20000; i++) {
            const uint32_t value = bpt_random_below(&r, n);
            assert_true(value < n);
            counts[value]++;
        }
        assert_fair(counts, n, 20000.0 / n);
    }
}

/* Here 2^32 is n + n/3: a generator that only scales or takes the remainder would draw a third
 * of the values twice as often. */
static void test_below_is_fair_for_large_n(void **state) {
    (void)state;
    const uint32_t n = 0xC0000000;
    bpt_random r = bpt_random_stream(5, BPT_PURPOSE_TEST, 0);
    uint32_t by_remainder[3] = {0}, by_third[3] = {0};
    for (int i = 0; i < 60000; i++) {
        const uint32_t value = bpt_random_below(&r, n);
        assert_true(value < n);
        by_remainder[value % 3]++;
        by_third[value >> 30]++;
    }
    assert_fair(by_remainder, 3, 20000);
    assert_fair(by_third, 3, 20000);
    for (int i = 0; i < 1000; i++) assert_true(bpt_random_below(&r, UINT32_MAX) < UINT32_MAX);
}

static void test_uniform_has_the_right_range_and_moments(void **state) {
    (void)state;
    enum { DRAWS = 200000 };
    bpt_random r = bpt_random_stream(6, BPT_PURPOSE_TEST, 0);
    double sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        const float u = bpt_random_uniform(&r);
        assert_true(u >= 0.0f && u < 1.0f);
        assert_true(u * 0x1p24f == floorf(u * 0x1p24f));
        sum += u;
        squares += (double)u * u;
    }
    const double mean = sum / DRAWS;
    assert_true(fabs(mean - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
    assert_true(fabs(squares / DRAWS - mean * mean - 1.0 / 12) < 1e-3);

    bpt_random last = {.block = {UINT32_MAX}, .used = 0};
    assert_true(bpt_random_uniform(&last) == 1.0f - 0x1p-24f);
}

static void test_normal_has_the_right_moments(void **state) {
    (void)state;
    enum { DRAWS = 200000 };
    bpt_random r = bpt_random_stream(7, BPT_PURPOSE_TEST, 0);
    double moments[5] = {0};
    int beyond_two = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double x = bpt_random_normal(&r);
        double power = 1;
        for (int k = 0; k < 5; k++, power *= x) moments[k] += power / DRAWS;
        beyond_two += fabs(x) > 2;
    }
    assert_true(fabs(moments[1]) < 5 / sqrt(DRAWS));
    assert_true(fabs(moments[2] - 1) < 0.02);
    assert_true(fabs(moments[3]) < 0.05);
    assert_true(fabs(moments[4] - 3) < 0.1);
    assert_true(fabs(beyond_two / (double)DRAWS - 0.0455) < 0.003);
}

static void test_normal_is_finite_at_the_ends(void **state) {
    (void)state;
    bpt_random lowest = {.block = {0, 0}}, highest = {.block = {UINT32_MAX, 0}};
    assert_true(fabsf(bpt_random_normal(&lowest) - 6.6604f) < 1e-3f); /* sqrt(64 ln 2) */
    assert_true(bpt_random_normal(&highest) == 0.0f);
}

static void assert_is_permutation(const uint32_t *order, uint32_t n) {
    bool *seen = calloc(n + 1, sizeof *seen);
    assert_non_null(seen);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(order[i] < n);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    free(seen);
}

static void test_permutation_is_one(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 10, 1000, 60000};
    static uint32_t order[60000 + 1], again[60000];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const uint32_t n = sizes[s];
        order[n] = 0xdead;
        bpt_random_permutation(8, BPT_PURPOSE_SHUFFLE, s, order, n);
        assert_is_permutation(order, n);
        assert_int_equal(order[n], 0xdead);
        bpt_random_permutation(8, BPT_PURPOSE_SHUFFLE, s, again, n);
        assert_memory_equal(order, again, n * sizeof *order);
        if (n < 10) continue;
        bpt_random_permutation(9, BPT_PURPOSE_SHUFFLE, s, again, n);
        assert_memory_not_equal(order, again, n * sizeof *order);
        bpt_random_permutation(8, BPT_PURPOSE_TEST, s, again, n);
        assert_memory_not_equal(order, again, n * sizeof *order);
        bpt_random_permutation(8, BPT_PURPOSE_SHUFFLE, s + 1, again, n);
        assert_memory_not_equal(order, again, n * sizeof *order);
    }
    bpt_random_permutation(8, BPT_PURPOSE_SHUFFLE, 0, order, 0);
}

static void test_all_permutations_are_equally_likely(void **state) {
    (void)state;
    uint32_t counts[4 * 4 * 4 * 4] = {0}, present[24];
    for (uint64_t id = 0; id < 24000; id++) {
        uint32_t order[4];
        bpt_random_permutation(10, BPT_PURPOSE_TEST, id, order, 4);
        counts[((order[0] * 4 + order[1]) * 4 + order[2]) * 4 + order[3]]++;
    }
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i]) {
            assert_true(n < 24);
            present[n++] = counts[i];
        }
    assert_int_equal(n, 24);
    assert_fair(present, 24, 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_layout_of_a_stream),
        cmocka_unit_test(test_a_copy_continues_alike),
        cmocka_unit_test(test_many_at_once_are_as_one_by_one),
        cmocka_unit_test(test_normals_are_as_one_by_one),
        cmocka_unit_test(test_names_separate_streams),
        cmocka_unit_test(test_every_bit_is_fair),
        cmocka_unit_test(test_below_is_fair_for_small_n),
        cmocka_unit_test(test_below_is_fair_for_large_n),
        cmocka_unit_test(test_uniform_has_the_right_range_and_moments),
        cmocka_unit_test(test_normal_has_the_right_moments),
        cmocka_unit_test(test_normal_is_finite_at_the_ends),
        cmocka_unit_test(test_permutation_is_one),
        cmocka_unit_test(test_all_permutations_are_equally_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
