/* How many steps a rank trains between two exchanges. */
#include "base/status.h"
#include "tests/base/near.h"
#include "tools/train/exchange/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* An epoch of 2000 steps of each of four ranks with batches of 64. */
static const bpt_pace_run run = {
    .epoch_samples = 512000, .total_samples = 5120000, .batch_all = 256, .n_workers = 4};

/* At one rate, an epoch from the end. */
static bool note(bpt_pace *p, uint64_t steps, double steps_s, double exchange_s) {
    const bpt_pace_span span = {.steps = steps,
                                .steps_s = steps_s,
                                .exchange_s = exchange_s,
                                .rate = 0.1,
                                .progress = steps * run.batch_all,
                                .left = run.epoch_samples};
    return bpt_pace_note(p, &span);
}

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
    } cases[] = {{"7", 7},        {"1000", 1000},  {"0.05ep", 100},
                 {"0.0007ep", 1}, {"0.0008ep", 2}, {"0.00001ep", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_pace p = bpt_pace_begin(cases[i].text, run);
        assert_int_equal(p.every, cases[i].every);
        assert_int_equal(p.most, cases[i].every);
        assert_int_equal(p.limit, cases[i].every);
        assert_false(note(&p, 10, 1.0, 1.0)); /* costs as much as the steps */
        const bpt_pace_span last = {10, 1.0, 1.0, 0.1, 10 * run.batch_all, 1};
        assert_false(bpt_pace_note(&p, &last)); /* and the end is near */
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
    assert_int_equal(p.limit, 32);
    assert_int_equal(p.every, 4);
    bpt_pace_run other = run;
    other.epoch_samples = 256 * 720; /* of 720 steps a thirty-sixth: nine exchanges a rank */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 4);
    assert_int_equal(p.most, 20);
    assert_int_equal(p.limit, 32);
    other.n_workers = 8;
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.most, 10);
    assert_int_equal(p.limit, 10); /* many ranks */
    other.shared_momentum = true;
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.most, 10);
    assert_int_equal(p.limit, 10);
    other.n_workers = 4; /* few of them: a twenty-fourth, too */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 4);
    assert_int_equal(p.most, 30);
    assert_int_equal(p.limit, 32);
    other.shared_momentum = false;
    other.n_workers = 2; /* a twenty-fourth */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.most, 30);
    other.epoch_samples = 256 * 64; /* short epochs, but many */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 4);
    assert_int_equal(p.most, 4);
    assert_int_equal(p.limit, 10);
    other.total_samples = 256 * 32; /* a short run */
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 2);
    assert_int_equal(p.limit, 2);
    other.total_samples = other.epoch_samples = 256;
    p = bpt_pace_begin("auto", other);
    assert_int_equal(p.least, 1);
    assert_int_equal(p.most, 1);
}

/* Steps of 10 ms: in two hundredths of the time of n steps an exchange of n / 5 ms fits. */
static void test_auto_follows_the_cost(void **state) {
    (void)state;
    bpt_pace p = bpt_pace_begin("auto", run);
    assert_false(note(&p, 4, 0.04, 0.0007)); /* 3.5 steps' worth */
    assert_int_equal(p.every, 4);
    p = bpt_pace_begin("auto", run);
    assert_true(note(&p, 8, 0.08, 0.00399));
    assert_int_equal(p.every, 20);
    for (int i = 0; i < 20; i++) (void)note(&p, 20, 0.2, 0.02);
    assert_int_equal(p.every, 32);
    const double before = p.exchange_s;
    (void)note(&p, 32, 0.32, 0.06); /* the latest weighs a quarter */
    assert_near(p.exchange_s, 0.75 * before + 0.25 * 0.06, 1e-12);
    for (int i = 0; i < 40; i++) (void)note(&p, 32, 0.32, 0.0029);
    assert_in_range(p.every, 15, 16);
    /* A host that is slowed down feels both alike, and one moment of it changes little. */
    (void)note(&p, 16, 0.16, 0.0058);
    assert_in_range(p.every, 16, 20);
}

/* Exchanges are dear, so that the bound decides: 4 steps at the highest rate. */
static void test_a_lower_rate_allows_longer_intervals(void **state) {
    (void)state;
    const struct {
        double rate;
        uint64_t every;
    } cases[] = {{0.05, 4},  {0.1, 4}, {0.1, 4}, {0.05, 8}, {0.04, 10},
                 {0.01, 32}, {0, 32},  {0.2, 4}, {0.1, 8}};
    bpt_pace p = bpt_pace_begin("auto", run);
    p.most = 4;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bpt_pace_span span = {.steps = 4,
                                    .steps_s = 0.04,
                                    .exchange_s = 1,
                                    .rate = cases[i].rate,
                                    .progress = 4 * run.batch_all,
                                    .left = run.epoch_samples};
        (void)bpt_pace_note(&p, &span);
        assert_int_equal(p.every, cases[i].every);
    }
    /* A warm-up may begin at no rate. */
    p = bpt_pace_begin("auto", run);
    p.most = 4;
    (void)bpt_pace_note(&p, &(bpt_pace_span){4, 0.04, 1, 0, 4 * run.batch_all, run.epoch_samples});
    assert_int_equal(p.every, 4);
    /* One that goes on knows how high the rate was. */
    p = bpt_pace_begin("auto", run);
    p.most = 4;
    p.highest = 0.2;
    (void)note(&p, 4, 0.04, 1);
    assert_int_equal(p.every, 8);
}

/* All ranks train on 1024 samples in the time of one step of this one. */
static void test_no_interval_goes_beyond_the_end(void **state) {
    (void)state;
    const uint64_t left[] = {102400, 20480, 5120, 4000, 2048, 1000, 0};
    const uint64_t every[] = {32, 20, 5, 3, 2, 1, 1};
    bpt_pace p = bpt_pace_begin("auto", run);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        const bpt_pace_span span = {.steps = 8,
                                    .steps_s = 0.08,
                                    .exchange_s = 1,
                                    .rate = 0.1,
                                    .progress = UINT64_C(8) * 1024,
                                    .left = left[i]};
        (void)bpt_pace_note(&p, &span);
        assert_int_equal(p.every, every[i]);
    }
    /* A push at once behind another has no cost, but hears how much is left. */
    (void)note(&p, 4, 0.04, 1);
    assert_int_equal(p.every, 32);
    assert_true(bpt_pace_note(&p, &(bpt_pace_span){.left = 2048}));
    assert_in_range(p.every, 2, 5); /* samples in the time of a step are a mean */
    /* Where what the others did is not known, the mean stays. */
    const double before = p.step_all;
    (void)bpt_pace_note(&p, &(bpt_pace_span){4, 0.04, 1, 0.1, 0, 102400});
    assert_true(p.step_all == before);
}

static void test_nothing_is_learnt_from_nothing(void **state) {
    (void)state;
    bpt_pace p = bpt_pace_begin("auto", run);
    assert_false(note(&p, 0, 0.1, 1.0)); /* two pushes without a step in between */
    assert_false(note(&p, 8, 0.0, 1.0)); /* a coarse clock */
    assert_false(note(&p, 8, 0.1, 0.0));
    assert_int_equal(p.every, 4);
    assert_true(p.step_s == 0 && p.exchange_s == 0 && p.step_all == 0);
    assert_true(note(&p, 1, 0.01, 1.0)); /* one step is something */
    assert_int_equal(p.every, 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_what_is_given_stays),
        cmocka_unit_test(test_no_interval_is_longer_than_the_run),
        cmocka_unit_test(test_bounds_of_auto),
        cmocka_unit_test(test_auto_follows_the_cost),
        cmocka_unit_test(test_a_lower_rate_allows_longer_intervals),
        cmocka_unit_test(test_no_interval_goes_beyond_the_end),
        cmocka_unit_test(test_nothing_is_learnt_from_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
