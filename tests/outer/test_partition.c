/* Tables of allotments, and shards. */
#include "base/memory.h"
#include "outer/partition.h"
#include "outer/shard.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_every_sample_once(void **state) {
    (void)state;
    enum { N = 103, M = 3, A = 4 };
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create(7, N, M, A, &p), BPT_OK);
    int seen[N] = {0};
    const uint32_t *first = NULL, *later = NULL;
    uint32_t n_first = 0, n_later = 0, kept[N];
    for (uint32_t a = 0; a < A; a++) {
        const uint32_t size = (uint32_t)bpt_partition_round_size(N, A, a);
        assert_true(size == 25 || size == 26);
        assert_int_equal(bpt_partition_allot(p, (const uint32_t[M]){10, 0, size - 10}), BPT_OK);
        if (a > 0) continue;
        first = bpt_partition_range(p, 0, 0, &n_first);
        memcpy(kept, first, n_first * sizeof *first);
    }
    for (uint32_t a = 0; a < A; a++)
        for (uint32_t r = 0; r < M; r++) {
            uint32_t n = 0;
            const uint32_t *index = bpt_partition_range(p, a, r, &n);
            for (uint32_t i = 0; i < n; i++) seen[index[i]]++;
        }
    for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    later = bpt_partition_range(p, 0, 0, &n_later);
    assert_int_equal(n_later, 10);
    assert_memory_equal(later, kept, sizeof *later * 10); /* earlier data does not move */
    assert_int_equal(bpt_partition_held(p, 0, A), 40);
    assert_int_equal(bpt_partition_held(p, 0, 2), 20);
    assert_int_equal(bpt_partition_held(p, 1, A), 0);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[M]){1, 1, 1}), BPT_EFULL);
    bpt_partition_free(p);
}

/* Halves on both sides: rounded one by one they would be a step too many. */
static void test_steps_sum_to_their_total(void **state) {
    (void)state;
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create(1, 1600, 2, 1, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){750, 850}), BPT_OK);
    assert_int_equal(bpt_partition_steps(p, 0, 16) + bpt_partition_steps(p, 1, 16), 16);
    bpt_partition_free(p);

    enum { M = 5 };
    const uint32_t count[][M] = {{20, 20, 20, 20, 20}, {1, 2, 3, 4, 90}, {0, 99, 0, 1, 0}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
        assert_int_equal(bpt_partition_create(1, 100, M, 1, &p), BPT_OK);
        assert_int_equal(bpt_partition_allot(p, count[i]), BPT_OK);
        for (uint64_t total = 0; total < 300; total++) {
            uint64_t sum = 0;
            for (uint32_t r = 0; r < M; r++) {
                const uint64_t steps = bpt_partition_steps(p, r, total);
                assert_true(fabs((double)steps - (double)(total * count[i][r]) / 100) < 1);
                sum += steps;
            }
            assert_int_equal(sum, total);
        }
        bpt_partition_free(p);
    }
}

static void test_wrong_input(void **state) {
    (void)state;
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create(1, 0, 1, 1, &p), BPT_EUSAGE);
    assert_int_equal(bpt_partition_create(1, (uint64_t)1 << 32, 1, 1, &p), BPT_EUSAGE);
    assert_int_equal(bpt_partition_create(1, 100, 1, 65, &p), BPT_EUSAGE);
    assert_int_equal(bpt_partition_create(1, 100, 1, 0, &p), BPT_EUSAGE);
    assert_int_equal(bpt_partition_create(1, 11, 4, 3, &p), BPT_EUSAGE);
    assert_null(p);
    assert_int_equal(bpt_partition_create(1, 12, 4, 3, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){2, 2, 2, 2}), BPT_EDATA);
    assert_int_equal(bpt_partition_rounds(p), 0);
    bpt_partition_free(p);
}

static void test_no_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_partition *p = NULL;
    for (int64_t n = 0; !p; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_partition_create(1, 50, 2, 2, &p);
        bpt_memory_fail_at(-1);
        assert_int_equal(status, p ? BPT_OK : BPT_ENOMEM);
        if (!p) assert_int_equal(bpt_memory_live(), live);
    }
    bpt_partition_free(p);
    assert_int_equal(bpt_memory_live(), live);
}

static void check_shards(size_t n, uint32_t m) {
    bpt_shard_table *t = NULL;
    assert_int_equal(bpt_shard_table_create(n, m, &t), BPT_OK);
    assert_int_equal(bpt_shard_count(t), m);
    size_t at = 0, smallest = n, largest = 0;
    for (uint32_t s = 0; s < m; s++) {
        const bpt_shard *shard = bpt_shard_at(t, s);
        assert_int_equal(shard->begin, at);
        assert_true(shard->end >= shard->begin);
        assert_int_equal(shard->host, s);
        if (shard->end < n) assert_int_equal(shard->end % BPT_SHARD_ALIGNMENT, 0);
        at = shard->end;
        if (at - shard->begin < smallest) smallest = at - shard->begin;
        if (at - shard->begin > largest) largest = at - shard->begin;
    }
    assert_int_equal(at, n);
    assert_true(largest - smallest <= 2 * BPT_SHARD_ALIGNMENT);
    bpt_shard_table_free(t);
}

static void test_shards(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 1000, 44426, 138357544};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t m = 1; m <= 30; m++) check_shards(sizes[i], m);
}

static void test_describe(void **state) {
    (void)state;
    bpt_shard_table *t = NULL;
    char text[128];
    assert_int_equal(bpt_shard_table_create(20, 3, &t), BPT_OK);
    bpt_shard_describe(t, 1, text, sizeof text);
    assert_string_equal(text, "shard 1 of 3 on rank 1: elements 16..19 (16 bytes)");
    bpt_shard_describe(t, 2, text, sizeof text);
    assert_string_equal(text, "shard 2 of 3 on rank 2: empty");
    bpt_shard_table_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample_once),
        cmocka_unit_test(test_steps_sum_to_their_total),
        cmocka_unit_test(test_wrong_input),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
