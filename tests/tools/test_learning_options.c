/* What follows from the options of learning. */
#include "tools/train/options/learning_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void assert_samples(double epochs, uint64_t epoch_samples, uint64_t expected) {
    const bpt_train_options o = {.epochs = epochs};
    const uint64_t n = bpt_train_total_samples(&o, epoch_samples);
    if (n != expected)
        fail_msg("%.17g epochs of %llu samples are %llu, not %llu", epochs,
                 (unsigned long long)epoch_samples, (unsigned long long)n,
                 (unsigned long long)expected);
}

/* Tenths are no binary numbers: the product may be a little more, or less, than it is on paper. */
static void test_whole_numbers_of_samples(void **state) {
    (void)state;
    assert_samples(1.1, 50000, 55000);
    assert_samples(1.1, 10, 11);
    assert_samples(0.07, 100, 7);
    assert_samples(8, 60000, 480000);
    for (uint64_t tenths = 1; tenths <= 1000; tenths++)
        for (uint64_t n = 10; n <= 100000000; n *= 10)
            assert_samples((double)tenths / 10, n, tenths * (n / 10));
    assert_samples(90.1, 1281170, 115433417);
    assert_samples(1e6, 1281167, 1281167000000);
}

static void test_parts_of_a_sample(void **state) {
    (void)state;
    assert_samples(0.25, 10, 3);
    assert_samples(1.00001, 50000, 50001);
    assert_samples(1e-9, 10, 1); /* something is to be trained on */
    assert_samples(1.0000001, 1281167, 1281168);
}

static void test_nesterov_is_of_sgd(void **state) {
    (void)state;
    for (size_t i = 0; bpt_optimizer_at(i); i++) {
        bpt_train_options o = {.optimizer = (int)i, .momentum = 0.9, .step_limit = "auto"};
        const bool sgd = bpt_optimizer_at(i) == &bpt_optimizer_sgd;
        o.nesterov = BPT_NESTEROV_TRUE;
        assert_int_equal(bpt_train_learning(&o, 1).nesterov, sgd);
        o.nesterov = BPT_NESTEROV_AUTO;
        assert_int_equal(bpt_train_learning(&o, 2).nesterov, sgd);
        assert_false(bpt_train_learning(&o, 1).nesterov);
        o.nesterov = BPT_NESTEROV_FALSE;
        assert_false(bpt_train_learning(&o, 2).nesterov);
    }
}

static double gain(const bpt_train_options *o, bpt_update_choice update, uint32_t n_workers) {
    return bpt_train_shared_momentum(o, update, n_workers, false).gain;
}

/* Whether layers are placed shows later. */
static void test_momentum_is_shared_for_certain(void **state) {
    (void)state;
    const bpt_train_options usual = {
        .momentum = 0.9, .batch_size = 32, .shared_momentum = "auto", .placement = "off"};
    bpt_train_options may = usual, own = usual;
    may.placement = "auto";
    own.shared_momentum = "0";
    assert_true(bpt_train_shares_momentum(&usual, BPT_UPDATE_AGWU, 4));
    assert_false(bpt_train_shares_momentum(&usual, BPT_UPDATE_ALLREDUCE, 4));
    assert_false(bpt_train_shares_momentum(&may, BPT_UPDATE_AGWU, 4));
    assert_false(bpt_train_shares_momentum(&own, BPT_UPDATE_AGWU, 4));
}

static void test_momentum_is_shared_by_deltas_of_sgd(void **state) {
    (void)state;
    const bpt_train_options usual = {.momentum = 0.9, .batch_size = 32, .shared_momentum = "auto"};
    assert_true(gain(&usual, BPT_UPDATE_AGWU, 4) == 2);
    assert_true(gain(&usual, BPT_UPDATE_SGWU, 4) == 2);
    assert_true(gain(&usual, BPT_UPDATE_AGWU, 1) == 0);
    assert_true(gain(&usual, BPT_UPDATE_EASGD, 4) == 0);
    assert_true(gain(&usual, BPT_UPDATE_ALLREDUCE, 4) == 0);
    assert_true(gain(&usual, BPT_UPDATE_LOCAL, 1) == 0);
    const bpt_shared_momentum four = bpt_train_shared_momentum(&usual, BPT_UPDATE_AGWU, 4, false);
    assert_int_equal(four.step_samples, 128);
    assert_true(four.momentum == 0.9 && four.nesterov);
    assert_true(bpt_train_shared_momentum(&usual, BPT_UPDATE_AGWU, 4, true).gain == 0);
    bpt_train_options without[] = {usual, usual, usual, usual, usual};
    without[0].momentum = 0;
    without[1].server_momentum = 0.5;
    without[2].delay_compensation = 1;
    without[3].gamma = BPT_GAMMA_LAG;
    without[4].lr_scale = BPT_LR_SCALE_NONE;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (gain(&without[i], BPT_UPDATE_AGWU, 4) != 0) fail_msg("there is a gain in case %zu", i);
    assert_true(gain(&without[3], BPT_UPDATE_SGWU, 4) == 2); /* which has no gamma */
    bpt_train_options other = without[4];
    other.shared_momentum = "3";
    assert_true(gain(&other, BPT_UPDATE_AGWU, 4) == 3);
    for (int i = 0; bpt_optimizer_at((size_t)i); i++) {
        other = usual;
        other.optimizer = i;
        const bool sgd = bpt_optimizer_at((size_t)i) == &bpt_optimizer_sgd;
        assert_true(gain(&other, BPT_UPDATE_AGWU, 4) == (sgd ? 2 : 0));
    }
}

/* Of five ranks that merge. */
static void test_half_of_the_batch(void **state) {
    (void)state;
    static const struct {
        int n_arguments; /* of those below */
        bool tuned;
        int64_t before, batch_size;
        double lr;
    } cases[] = {{3, false, 0, 32, 0.01},  {5, false, 0, 64, 0.005}, {5, false, 32, 32, 0.005},
                 {3, false, 32, 32, 0.01}, {3, false, 64, 64, 0.02}, {5, false, 64, 64, 0.005},
                 {3, true, 0, 64, 0.02},   {3, true, 32, 64, 0.02}};
    char *arguments[] = {"bpt-train", "--update", "agwu", "--lr", "0.005"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_train_options o = {0};
        bpt_option_request request;
        bpt_option_set *set;
        assert_int_equal(bpt_options_parse(&bpt_train_command, cases[i].n_arguments, arguments, &o,
                                           &request, &set),
                         BPT_OK);
        bpt_learning_options_default(&o, set);
        const bool halved = bpt_learning_options_share(&o, set, 5, cases[i].tuned, cases[i].before);
        if (halved != (cases[i].batch_size == 32) || o.batch_size != cases[i].batch_size ||
            o.lr != cases[i].lr)
            fail_msg("case %zu: a batch of %d at %g", i, (int)o.batch_size, o.lr);
        bpt_option_set_free(set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers_of_samples),
        cmocka_unit_test(test_parts_of_a_sample),
        cmocka_unit_test(test_nesterov_is_of_sgd),
        cmocka_unit_test(test_momentum_is_shared_by_deltas_of_sgd),
        cmocka_unit_test(test_momentum_is_shared_for_certain),
        cmocka_unit_test(test_half_of_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
