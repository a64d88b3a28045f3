/* When a rank's momentum becomes that of all, and what is set then: the network is the test's own.
 */
#include "tools/train/exchange/momentum_of_all.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N = 2 };

static float set[N];
static int n_set;

bpt_status bpt_network_set_learned(bpt_network *net, bpt_vector which, const float *flat) {
    (void)net;
    assert_int_equal(which, BPT_VECTOR_STATE_0);
    for (int i = 0; i < N; i++) set[i] = flat[i];
    n_set++;
    return BPT_OK;
}

static const float start[N] = {1, -1}, later[N] = {0.5f, -0.75f};

static void take(bpt_momentum_of_all *m, uint64_t steps, uint64_t progress, double rate) {
    const bpt_answer_point here = {steps, progress, rate, 2, 0.5};
    float scratch[N];
    assert_int_equal(bpt_momentum_of_all_take(m, here, NULL, start, later, scratch, N), BPT_OK);
}

/* Of a gain of 1 kappa is 1, and all numbers here are exact. */
static bpt_momentum_of_all opened(double gain) {
    n_set = 0;
    return (bpt_momentum_of_all){.rule = {.gain = gain, .momentum = 0.5, .step_samples = 8},
                                 .last = {10, 160, 0.375, 2, 0.5}};
}

static void test_it_is_the_way_of_the_weights_over_rate_and_steps(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(1);
    take(&m, 14, 160 + 16, 0.125); /* two steps of all, at a rate of 0.25 */
    assert_int_equal(n_set, 1);
    assert_true(set[0] == 0.5f / (0.25f * 2) && set[1] == -0.25f / (0.25f * 2));
    /* Counted from there on. */
    take(&m, 16, 160 + 16 + 32, 0.875);
    assert_int_equal(n_set, 2);
    assert_true(set[0] == 0.5f / (0.5f * 4));
}

static void test_what_tells_nothing_is_left_behind(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(1);
    take(&m, 10, 168, 0.25); /* no steps of its own */
    take(&m, 11, 168, 0.25); /* no samples */
    assert_int_equal(n_set, 0);
    take(&m, 13, 176, 0.25); /* one step of all since, and not two */
    assert_int_equal(n_set, 1);
    assert_true(set[0] == 0.5f / 0.25f);
}

static void test_without_gain_each_keeps_its_own(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(0);
    take(&m, 14, 176, 0.25);
    assert_int_equal(n_set, 0);
}

static void test_the_gain_follows_what_ranks_are_worth(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(2); /* of eight; the answers are of ranks that are worth two */
    m.rule.ranks = 8;
    take(&m, 14, 160 + 16, 0.125);
    assert_int_equal(n_set, 1);
    assert_true(set[0] == 0.5f / (0.25f * 2) && set[1] == -0.25f / (0.25f * 2));
}

/* Of two with equal parts: what is told while the other stands still is a rank's own way. */
static void test_alone_each_keeps_its_own(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(1);
    uint64_t steps = 10, progress = 160;
    int n_alone = 0;
    m.rule.ranks = 2;
    for (int i = 0; i < 20; i++) /* by turns none and twice as much: it comes in pushes */
        take(&m, steps += 4, progress += i % 2 ? 16 : 48, 0.25);
    assert_int_equal(n_set, 20);
    for (; n_set == 20 + n_alone; n_alone++) take(&m, steps += 4, progress += 16, 0.25);
    assert_in_range(n_alone, 6, 12);
    for (int i = 0; i < 20; i++) take(&m, steps += 4, progress += 16, 0.25);
    assert_int_equal(n_set, 20 + n_alone - 1);
    for (int i = 0; i < 4; i++) take(&m, steps += 4, progress += 32, 0.25); /* it is there again */
    assert_int_equal(n_set, 20 + n_alone + 3);
}

/* Of four with equal parts, of which the others bring so many samples between two answers, and this
 * one eight.
 * @return answers until it goes on alone, at most 20 */
static int answers_until_alone(bpt_momentum_of_all *m, uint64_t others) {
    float scratch[N];
    const int before = n_set;
    m->rule.ranks = 4;
    for (int i = 1; i <= 20; i++) {
        const bpt_answer_point here = {m->last.steps + 4, m->last.progress + 8 + others, 0.25, 2,
                                       0.25};
        assert_int_equal(bpt_momentum_of_all_take(m, here, NULL, start, later, scratch, N), BPT_OK);
        if (n_set < before + i) return i;
    }
    return 20;
}

/* Less than half of the 24 that are theirs, four times in a row, where they were always there. */
static void test_what_absence_is(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(2);
    assert_int_equal(answers_until_alone(&m, 12), 20);
    assert_int_equal(answers_until_alone(&m, 11), 5);
    /* An answer at once behind another, as at a meeting, ends no absence. */
    const int before = n_set;
    const bpt_answer_point again = {m.last.steps, m.last.progress + 8, 0.25, 2, 0.25};
    float scratch[N];
    assert_int_equal(bpt_momentum_of_all_take(&m, again, NULL, start, later, scratch, N), BPT_OK);
    assert_int_equal(answers_until_alone(&m, 0), 1);
    assert_int_equal(n_set, before);
}

/* One that pushes once in 32 answers to this rank, and as much then, is not absent. */
static void test_rare_pushes_are_no_absence(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(1);
    uint64_t steps = 10, progress = 160;
    m.rule.ranks = 2;
    for (int i = 0; i < 32 * 20; i++) {
        if (i == 32 * 8) n_set = 0; /* until here it may be taken for absent */
        take(&m, steps += 4, progress += i % 32 == 31 ? 16 + 32 * 16 : 16, 0.25);
    }
    assert_int_equal(n_set, 32 * 12);
}

/* A rank with nine tenths of the data does nine tenths of the work. */
static void test_unequal_ranks_are_not_alone(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(1);
    float scratch[N];
    m.rule.ranks = 2;
    for (uint64_t i = 1; i <= 20; i++) {
        const bpt_answer_point here = {10 + 9 * i, 160 + 40 * i, 0.25, 2, 0.9};
        assert_int_equal(bpt_momentum_of_all_take(&m, here, NULL, start, later, scratch, N),
                         BPT_OK);
    }
    assert_int_equal(n_set, 20);
}

/* A slow rank makes a step in each round, more than its part: what the others bring looks like
 * little for ever, and they have not gone. */
static void test_who_waits_for_all_is_not_alone(void **state) {
    (void)state;
    bpt_momentum_of_all m = opened(1);
    float scratch[N];
    m.rule.ranks = 2;
    m.synchronous = true;
    for (uint64_t i = 1; i <= 20; i++) {
        const bpt_answer_point here = {10 + i, 160 + 12 * i, 0.25, 2, 0.1};
        assert_int_equal(bpt_momentum_of_all_take(&m, here, NULL, start, later, scratch, N),
                         BPT_OK);
    }
    assert_int_equal(n_set, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_the_way_of_the_weights_over_rate_and_steps),
        cmocka_unit_test(test_what_tells_nothing_is_left_behind),
        cmocka_unit_test(test_the_gain_follows_what_ranks_are_worth),
        cmocka_unit_test(test_without_gain_each_keeps_its_own),
        cmocka_unit_test(test_alone_each_keeps_its_own),
        cmocka_unit_test(test_what_absence_is),
        cmocka_unit_test(test_unequal_ranks_are_not_alone),
        cmocka_unit_test(test_rare_pushes_are_no_absence),
        cmocka_unit_test(test_who_waits_for_all_is_not_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
