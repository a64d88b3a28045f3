/* Which records of a split are held out. */
#include "base/memory.h"
#include "tools/train/data/held_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_how_many(void **state) {
    (void)state;
    bpt_train_options o = {.quality = BPT_QUALITY_HELD_OUT, .held_out = 0.01};
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_AGWU, 2, 60000), 600);
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_SGWU, 4, 60000), 600);
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_AGWU, 2, 10), 1); /* one at least */
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_AGWU, 2, 1), 0);  /* but never all */
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_AGWU, 1, 60000), 0);
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_EASGD, 2, 60000), 0);
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_ALLREDUCE, 2, 60000), 0);
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_LOCAL, 1, 60000), 0);
    o.held_out = 0.5;
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_AGWU, 2, 3), 2);
    o.quality = BPT_QUALITY_OFF;
    assert_int_equal(bpt_held_out(&o, BPT_UPDATE_AGWU, 2, 60000), 0);
}

/* Every record once, those to train on ascending; the same for the same seed. */
static void check_draw(uint32_t n, uint32_t n_held) {
    uint32_t *records, *again, *other;
    unsigned char *seen = calloc(n, 1);
    assert_int_equal(bpt_held_out_draw(5, n, n_held, &records), BPT_OK);
    assert_int_equal(bpt_held_out_draw(5, n, n_held, &again), BPT_OK);
    assert_int_equal(bpt_held_out_draw(6, n, n_held, &other), BPT_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(records[i] < n && !seen[records[i]]);
        seen[records[i]] = 1;
        if (i > n_held) assert_true(records[i] > records[i - 1]);
    }
    assert_memory_equal(records, again, n * sizeof *records);
    if (n_held > 5) assert_true(memcmp(records, other, n_held * sizeof *records) != 0);
    bpt_free(other);
    bpt_free(again);
    bpt_free(records);
    free(seen);
}

static void test_draw(void **state) {
    (void)state;
    check_draw(1000, 10);
    check_draw(1000, 500);
    check_draw(2, 1);
    check_draw(70001, 700);
}

/* What is left to train on is every record but those that are held out. */
static void test_skip(void **state) {
    (void)state;
    enum { N = 500, HELD = 60 };
    uint32_t *records, indices[N - HELD];
    unsigned char seen[N] = {0};
    assert_int_equal(bpt_held_out_draw(3, N, HELD, &records), BPT_OK);
    for (uint32_t i = 0; i < N - HELD; i++) indices[i] = N - HELD - 1 - i;
    bpt_held_out_skip(records, HELD, indices, N - HELD);
    for (uint32_t i = 0; i < N - HELD; i++) seen[indices[i]]++;
    for (uint32_t i = 0; i < HELD; i++) assert_int_equal(seen[records[i]]++, 0);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    bpt_free(records);
    uint32_t same[3] = {2, 0, 1};
    bpt_held_out_skip(NULL, 0, same, 3);
    assert_true(same[0] == 2 && same[1] == 0 && same[2] == 1);
}

/* An image is mixed with no other than those that are left; where none is held out, with any. */
static void test_partners(void **state) {
    (void)state;
    const bpt_split split = {.count = 5};
    const uint32_t records[] = {4, 1, 0, 2, 3};
    bpt_loader_options loader = BPT_LOADER_OPTIONS_INIT;
    bpt_held_out_skip_partners(NULL, 0, &split, &loader);
    assert_null(loader.partners);
    bpt_held_out_skip_partners(records, 2, &split, &loader);
    assert_ptr_equal(loader.partners, records + 2);
    assert_int_equal(loader.n_partners, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_draw),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_partners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
