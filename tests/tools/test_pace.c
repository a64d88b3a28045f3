/* How many steps a rank trains between two exchanges. */
#include "base/status.h"
#include "tools/train/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* An epoch of 2000 steps of each of four ranks with batches of 64. */
static const bpt_pace_run run = {
    .epoch_samples = 512000, .total_samples = 5120000, .batch_all = 256, .n_workers = 4};

static void test_values(void **state) {
    (void)state;
    const char *const right[] = {"auto", "1", "8", "1000000", "0.05ep", ".5ep", "2ep", "8.0"};
    const char *const wrong[] = {"",    "0",     "-1",   "+1",  "1.5",   "1000001", "8x",
                                 "ep",  "0.0ep", "-1ep", "0x8", "1.2.3", "nan",     "inf",
                                 "1e3", "8 ep",  "8 ",   " 8",  "AUTO",  "infep"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_int_equal(bpt_pace_check(right[i]), BPT_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(bpt_pace_check(wrong[i]), BPT_EUSAGE);
}

static void test_what_is_given_stays(void **state) {
    (void)state;
    const struct {
        const char *text;
        uint64_t every;
    } cases[] = {{"7", 7}, {"1000", 1000}, {"0.05ep", 100}, {"0.00001ep", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_pace p = bpt_pace_begin(cases[i].text, run);
        assert_int_equal(p.every, cases[i].every);
        assert_false(bpt_pace_note(&p, 10, 1.0, 1.0)); /* costs as much as the steps */
        assert_int_equal(p.every, cases[i].every);
    }
}

/* Its end is noticed at an exchange. */
static void test_no_interval_is_longer_than_the_run(void **state) {
    (void)state;
    bpt_pace_run other = run;
    other.total_samples = 256 * 30 + 1;
    assert_int_equal(bpt_pace_begin("1000000", other).every, 31);
    assert_int_equal(bpt_pace_begin("5ep", other).every, 31);
    assert_int_equal(bpt_pace_begin("30", other).every, 30);
    other.total_samples = 1;
    assert_int_equal(bpt_pace_begin("8", other).every, 1);
}

static void test_bounds_of_auto(void **state) {
    (void)state;
    bpt_pace p = bpt_pace_begin("auto", run);
    assert_int_equal(p.least, 4);
    assert_int_equal(p.most, 32);
    assert_int_equal(p.every, 4);
    bpt_pace_run other = run;
    other.epoch_samples = 256 * 720; /* of 720 steps a thirty-sixth: nine exchanges a rank */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 4);
    assert_int_equal(p.most, 20);
    other.n_workers = 8;
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.most, 10);
    other.n_workers = 2; /* a twenty-fourth */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.most, 30);
    other.epoch_samples = 256 * 64; /* short epochs, but many */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 4);
    assert_int_equal(p.most, 4);
    other.total_samples = 256 * 32; /* a short run */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 2);
    other.total_samples = other.epoch_samples = 256;
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 1);
    assert_int_equal(p.most, 1);
}

/* Steps of 10 ms: in two hundredths of the time of n steps an exchange of n / 5 ms fits. */
static void test_auto_follows_the_cost(void **state) {
    (void)state;
    bpt_pace p = bpt_pace_begin("auto", run);
    assert_false(bpt_pace_note(&p, 4, 0.04, 0.0007)); /* 3.5 steps' worth */
    assert_int_equal(p.every, 4);
    p = bpt_pace_begin("auto", run);
    assert_true(bpt_pace_note(&p, 8, 0.08, 0.0039));
    assert_int_equal(p.every, 20);
    for (int i = 0; i < 20; i++) (void)bpt_pace_note(&p, 20, 0.2, 0.02);
    assert_int_equal(p.every, 32);
    for (int i = 0; i < 40; i++) (void)bpt_pace_note(&p, 32, 0.32, 0.0029);
    assert_in_range(p.every, 15, 16);
    /* A host that is slowed down feels both alike, and one moment of it changes little. */
    (void)bpt_pace_note(&p, 16, 0.16, 0.0058);
    assert_in_range(p.every, 16, 20);
}

static void test_nothing_is_learnt_from_nothing(void **state) {
    (void)state;
    bpt_pace p = bpt_pace_begin("auto", run);
    assert_false(bpt_pace_note(&p, 0, 0.1, 1.0)); /* two pushes without a step in between */
    assert_false(bpt_pace_note(&p, 8, 0.0, 1.0)); /* a coarse clock */
    assert_false(bpt_pace_note(&p, 8, 0.1, 0.0));
    assert_int_equal(p.every, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_what_is_given_stays),
        cmocka_unit_test(test_no_interval_is_longer_than_the_run),
        cmocka_unit_test(test_bounds_of_auto),
        cmocka_unit_test(test_auto_follows_the_cost),
        cmocka_unit_test(test_nothing_is_learnt_from_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
