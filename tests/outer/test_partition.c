/* Tables of allotments, and shards. */
#include "base/memory.h"
#include "outer/data/partition.h"
#include "outer/exchange/shard.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N = 103, M = 3, A = 4 };

static void held(const bpt_partition *p, uint32_t rank, uint32_t rounds, uint32_t *samples) {
    assert_int_equal(bpt_partition_samples(p, rank, rounds, samples), BPT_OK);
}

/* Asserts that the ranks hold the first samples of the split's order, each once. */
static void assert_shared_out(const bpt_partition *p, uint32_t rounds, uint64_t total) {
    int seen[N] = {0};
    uint64_t sum = 0;
    for (uint32_t r = 0; r < M; r++) {
        uint32_t samples[N];
        const uint64_t n = bpt_partition_held(p, r, rounds);
        held(p, r, rounds, samples);
        for (uint64_t i = 0; i < n; i++) assert_int_equal(seen[samples[i]]++, 0);
        sum += n;
    }
    assert_int_equal(sum, total);
}

static bpt_partition *make_partition(void) {
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 7}, N, M, A, &p), BPT_OK);
    for (uint32_t a = 0; a < A; a++) {
        const uint32_t given = (uint32_t)bpt_partition_given(N, A, a + 1);
        const uint32_t row[M] = {10 * (a + 1), 0, given - 10 * (a + 1)};
        assert_int_equal(bpt_partition_allot(p, row), BPT_OK);
    }
    return p;
}

static void test_every_sample_once(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    uint32_t first[N], later[N];
    for (uint32_t a = 1; a <= A; a++) {
        const uint64_t given = bpt_partition_given(N, A, a),
                       before = bpt_partition_given(N, A, a - 1);
        assert_true(given - before == 25 || given - before == 26);
        assert_shared_out(p, a, given);
    }
    assert_int_equal(bpt_partition_given(N, A, A), N);
    assert_int_equal(bpt_partition_held(p, 0, 0), 0);
    assert_int_equal(bpt_partition_held(p, 0, 2), 20);
    assert_int_equal(bpt_partition_held(p, 0, A), 40);
    assert_int_equal(bpt_partition_held(p, 1, A), 0);
    held(p, 0, 1, first);
    held(p, 0, A, later);
    assert_memory_equal(later, first, 10 * sizeof *later); /* earlier data does not move */
    bpt_partition_free(p);
}

/* Later rounds move the difference, the samples that a rank got last, and no other. */
static void test_samples_move(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    uint32_t before[M][N], after[M][N], only = 0; /* the one sample of rank 0 once */
    const uint32_t rows[][M] = {{40, 20, 43}, {50, 20, 33}, {1, 1, 101}, {60, 40, 3},
                                {59, 41, 3},  {59, 40, 4},  {60, 40, 3}, /* one sample */
                                {0, 103, 0},  {1, 102, 0},  {1, 101, 1}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint32_t r = 0; r < M; r++) held(p, r, A + i, before[r]);
        if (i == 3) only = before[0][0];
        assert_int_equal(bpt_partition_allot(p, rows[i]), BPT_OK);
        assert_shared_out(p, A + i + 1, N);
        for (uint32_t r = 0; r < M; r++) {
            const uint64_t had = bpt_partition_held(p, r, A + i), has = rows[i][r];
            held(p, r, A + i + 1, after[r]);
            assert_int_equal(bpt_partition_held(p, r, A + i + 1), has);
            assert_memory_equal(after[r], before[r], (had < has ? had : has) * sizeof(uint32_t));
        }
    }
    /* What was, can be told afterwards. */
    held(p, 0, A + 3, after[0]);
    assert_int_equal(after[0][0], only);
    assert_shared_out(p, 2, bpt_partition_given(N, A, 2));
    bpt_partition_free(p);
}

static void test_rounds_that_are_none(void **state) {
    (void)state;
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 7}, N, M, A, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[M]){10, 10, 5}), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[M]){9, 31, 11}), BPT_EDATA);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[M]){10, 10, 5}), BPT_EDATA);
    assert_int_equal(bpt_partition_rounds(p), 1);
    bpt_partition_free(p);
    p = make_partition();
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[M]){40, 0, 62}), BPT_EDATA);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[M]){40, 1, 63}), BPT_EDATA);
    assert_int_equal(bpt_partition_rounds(p), A);
    bpt_partition_free(p);
}

/* Halves on both sides: rounded one by one they would be a step too many. */
static void test_steps_sum_to_their_total(void **state) {
    (void)state;
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, 1600, 2, 1, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){750, 850}), BPT_OK);
    assert_int_equal(bpt_partition_steps(p, 0, 16) + bpt_partition_steps(p, 1, 16), 16);
    bpt_partition_free(p);

    enum { MANY = 5 };
    const uint32_t count[][MANY] = {{20, 20, 20, 20, 20}, {1, 2, 3, 4, 90}, {0, 99, 0, 1, 0}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
        assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, 100, MANY, 1, &p), BPT_OK);
        assert_int_equal(bpt_partition_allot(p, count[i]), BPT_OK);
        for (uint64_t total = 0; total < 300; total++) {
            uint64_t sum = 0;
            for (uint32_t r = 0; r < MANY; r++) {
                const uint64_t steps = bpt_partition_steps(p, r, total);
                assert_true(fabs((double)steps - (double)(total * count[i][r]) / 100) < 1);
                sum += steps;
            }
            assert_int_equal(sum, total);
        }
        bpt_partition_free(p);
    }
}

/* What is learnt on unequal shares is as noisy as the mean of fewer equal ones. */
static void test_ranks_are_worth_their_shares(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    assert_true(bpt_partition_equal_ranks(p, 0) == M);
    const double other = (double)bpt_partition_given(N, A, 1) - 10;
    const double wanted = (10 + other) * (10 + other) / (100 + other * other);
    assert_true(fabs(bpt_partition_equal_ranks(p, 1) - wanted) < 1e-12);
    bpt_partition_free(p);
    const uint32_t even[2] = {32, 32}, skewed[2] = {62, 2};
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 7}, 64, 2, 1, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, even), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, skewed), BPT_OK);
    assert_true(bpt_partition_equal_ranks(p, 1) == 2);
    assert_true(bpt_partition_equal_ranks(p, 2) < 1.07);
    assert_true(bpt_partition_part(p, 1, 0) == 0.5 && bpt_partition_part(p, 0, 1) == 0.5);
    assert_true(bpt_partition_part(p, 0, 2) == 62.0 / 64 &&
                bpt_partition_part(p, 1, 2) == 2.0 / 64);
    bpt_partition_free(p);
}

static void test_wrong_input(void **state) {
    (void)state;
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, 0, 1, 1, &p), BPT_EUSAGE);
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, (uint64_t)1 << 32, 1, 1, &p),
                     BPT_EUSAGE);
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, 100, 1, 65, &p), BPT_EUSAGE);
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, 100, 1, 0, &p), BPT_EUSAGE);
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, 11, 4, 3, &p), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "leave some of 4 ranks without any"));
    assert_int_equal(bpt_partition_check(3, 1, 4), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "3 samples cannot be given out in 4 rounds"));
    assert_string_equal(bpt_error_last()->hint, "use fewer rounds"); /* there are no fewer ranks */
    assert_int_equal(bpt_partition_check(1, 1, 1), BPT_OK);
    assert_int_equal(bpt_partition_check(UINT32_MAX, 1, BPT_PARTITION_ROUNDS_MAX), BPT_OK);
    assert_int_equal(bpt_partition_bytes(100), 400);
    assert_null(p);
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 1}, 12, 4, 3, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){2, 2, 2, 2}), BPT_EDATA);
    assert_int_equal(bpt_partition_rounds(p), 0);
    bpt_partition_free(p);
}

static bpt_status make_and_move(bpt_partition **p) {
    uint32_t samples[50];
    BPT_TRY(bpt_partition_create((bpt_order){.seed = 1}, 50, 2, 2, p));
    BPT_TRY(bpt_partition_allot(*p, (const uint32_t[]){20, 5}));
    BPT_TRY(bpt_partition_allot(*p, (const uint32_t[]){40, 10}));
    BPT_TRY(bpt_partition_allot(*p, (const uint32_t[]){20, 30}));
    return bpt_partition_samples(*p, 0, 2, samples);
}

static void test_no_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    for (int64_t n = 0; status != BPT_OK; n++) {
        bpt_partition *p = NULL;
        bpt_memory_fail_at(n);
        status = make_and_move(&p);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        bpt_partition_free(p);
        assert_int_equal(bpt_memory_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample_once),
        cmocka_unit_test(test_samples_move),
        cmocka_unit_test(test_rounds_that_are_none),
        cmocka_unit_test(test_steps_sum_to_their_total),
        cmocka_unit_test(test_ranks_are_worth_their_shares),
        cmocka_unit_test(test_wrong_input),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
