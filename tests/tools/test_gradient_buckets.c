/* How a model's weights are cut into buckets. */
#include "base/random.h"
#include "tools/train/exchange/gradient_buckets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { B = BPT_BUCKET_FLOATS, MAX_SEGMENTS = 12 };

typedef struct {
    bpt_segment items[MAX_SEGMENTS];
    bpt_segments table;
} model;

static void make(model *m, const size_t *counts, size_t n) {
    *m = (model){.table = {.items = m->items, .n = n}};
    for (size_t s = 0; s < n; s++) {
        m->items[s].offset = m->table.n_elements;
        m->items[s].count = counts[s];
        m->table.n_elements += counts[s];
    }
}

static void check(const size_t *counts, size_t n, const size_t *expected, uint32_t n_expected) {
    model m;
    size_t begin[MAX_SEGMENTS + 1];
    make(&m, counts, n);
    assert_int_equal(bpt_gradient_buckets_cut(&m.table, 0, begin), n_expected);
    for (uint32_t i = 0; i <= n_expected; i++) assert_int_equal(begin[i], expected[i]);
}

static void test_one(void **state) {
    (void)state;
    check((const size_t[]){10}, 1, (const size_t[]){0, 10}, 1);
    check((const size_t[]){10, 20, 30}, 3, (const size_t[]){0, 60}, 1);
    check((const size_t[]){9 * (size_t)B}, 1, (const size_t[]){0, 9 * (size_t)B}, 1);
}

/* From the last segment on; what is left at the first ones is a bucket, whatever its size. */
static void test_several(void **state) {
    (void)state;
    check((const size_t[]){10, B}, 2, (const size_t[]){0, 10, 10 + B}, 2);
    check((const size_t[]){10, B - 1}, 2, (const size_t[]){0, 9 + B}, 1);
    check((const size_t[]){B, 10}, 2, (const size_t[]){0, B + 10}, 1);
    check((const size_t[]){10, B, 5, B - 5, 3}, 5, (const size_t[]){0, 10, 10 + B, 13 + 2 * B}, 3);
    check((const size_t[]){B, B, B}, 3, (const size_t[]){0, B, 2 * B, 3 * B}, 3);
}

/* What is frozen is in none, and counts from none. */
static void test_from_a_segment_on(void **state) {
    (void)state;
    model m;
    size_t begin[MAX_SEGMENTS + 1];
    make(&m, (const size_t[]){B, 7, 10, B}, 4);
    assert_int_equal(bpt_gradient_buckets_cut(&m.table, 2, begin), 2);
    assert_int_equal(begin[0], 0);
    assert_int_equal(begin[1], 10);
    assert_int_equal(begin[2], 10 + B);
    assert_int_equal(bpt_gradient_buckets_cut(&m.table, 3, begin), 1);
    assert_int_equal(begin[0], 0);
    assert_int_equal(begin[1], B);
}

static size_t segment_at(const model *m, size_t offset) {
    size_t s = 0;
    while (s < m->table.n && m->items[s].offset != offset) s++;
    assert_true(s < m->table.n);
    return s;
}

static void test_any(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    for (int i = 0; i < 1000; i++) {
        model m;
        size_t counts[MAX_SEGMENTS], begin[MAX_SEGMENTS + 1];
        const size_t n = 1 + bpt_random_below(&r, MAX_SEGMENTS);
        for (size_t s = 0; s < n; s++) counts[s] = 1 + bpt_random_below(&r, i % 2 ? B : 3 * B);
        make(&m, counts, n);
        const uint32_t n_buckets = bpt_gradient_buckets_cut(&m.table, 0, begin);
        assert_in_range(n_buckets, 1, n);
        assert_true(n_buckets <= bpt_gradient_buckets_most(m.table.n_elements));
        assert_int_equal(begin[0], 0);
        assert_int_equal(begin[n_buckets], m.table.n_elements);
        for (uint32_t b = 0; b < n_buckets; b++) {
            const size_t first = segment_at(&m, begin[b]);
            if (b > 0) assert_true(begin[b + 1] - begin[b] >= B);
            assert_true(begin[b + 1] - begin[b] - counts[first] <
                        B); /* none is longer than need be */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_from_a_segment_on),
        cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
