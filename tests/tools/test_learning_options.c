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
    for (size_t i = 2; i <= 3; i++) /* of agwu alone */
        assert_true(gain(&without[i], BPT_UPDATE_SGWU, 4) == 2);
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

/* Values that no default is. */
static void test_options_reach_the_optimiser(void **state) {
    (void)state;
    const bpt_train_options o = {
        .momentum = 0.5,
        .weight_decay = 0.0625,
        .beta1 = 0.75,
        .beta2 = 0.875,
        .adam_eps = 0.25,
        .lars_eta = 0.125,
        .clip_norm = 3,
        .label_smoothing = 0.375,
        .step_limit = "0.03125",
    };
    const bpt_learning l = bpt_train_learning(&o, 1);
    assert_ptr_equal(l.optimizer, bpt_optimizer_at(0));
    assert_true(l.momentum == 0.5 && l.decay == 0.0625);
    assert_true(l.beta1 == 0.75 && l.beta2 == 0.875 && l.eps == 0.25);
    assert_true(l.eta == 0.125 && l.clip_norm == 3 && l.label_smoothing == 0.375);
    for (size_t i = 0; bpt_optimizer_at(i); i++) {
        bpt_train_options by = o;
        by.optimizer = (int)i;
        const bool sgd = bpt_optimizer_at(i) == &bpt_optimizer_sgd;
        assert_true(bpt_train_learning(&by, 1).step_limit == (sgd ? 0.03125 : 0));
    }
}

/* @param arguments  of the command line, shape [n]
 * @param n_ranks    of the job, those that serve among them
 * @param before     the batch of the run that it goes on from, 0: none */
static void assert_batch(int n, char **arguments, uint32_t n_ranks, bool tuned, int64_t before,
                         int64_t batch_size, double lr) {
    bpt_train_options o = {0};
    bpt_option_request request;
    bpt_option_set *set;
    assert_int_equal(bpt_options_parse(&bpt_train_command, n, arguments, &o, &request, &set),
                     BPT_OK);
    bpt_learning_options_default(&o, set);
    const int64_t whole = o.batch_size;
    const bool halved = bpt_learning_options_share(&o, set, n_ranks, tuned, before);
    if (halved != (batch_size < whole) || o.batch_size != batch_size || o.lr != lr)
        fail_msg("%u ranks, %s %s ...: a batch of %d at %g", n_ranks, n > 1 ? arguments[1] : "",
                 n > 2 ? arguments[2] : "", (int)o.batch_size, o.lr);
    bpt_option_set_free(set);
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_batch(cases[i].n_arguments, arguments, 5, cases[i].tuned, cases[i].before,
                     cases[i].batch_size, cases[i].lr);
}

static void test_whole_batch(void **state) {
    (void)state;
    static const struct {
        char *option, *value;
        uint32_t n_ranks;
        int64_t before, batch_size;
        double lr;
    } cases[] = {
        {"--update", "default", 5, 0, 32, 0.01},
        {"--update", "default", 4, 0, 64, 0.02},
        {"--servers", "1", 5, 0, 64, 0.02}, /* four that train */
        {"--servers", "1", 6, 0, 32, 0.01},
        {"--optimizer", "adamw", 5, 0, 64, 0.001},
        {"--batch-size", "64", 5, 0, 64, 0.02},
        {"--batch-size", "64", 5, 32, 64, 0.02},
        {"--lr-scale", "none", 5, 0, 64, 0.02},
        {"--update", "auto", 5, 0, 64, 0.02}, /* it may come to be allreduce */
        {"--update", "allreduce", 5, 0, 64, 0.02},
        {"--update", "allreduce", 5, 32, 64, 0.02},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *arguments[] = {"bpt-train", cases[i].option, cases[i].value};
        assert_batch(3, arguments, cases[i].n_ranks, false, cases[i].before, cases[i].batch_size,
                     cases[i].lr);
    }
}

/* @return --warmup-epochs in force */
static double warmup_of(int n, char **arguments) {
    bpt_train_options o = {0};
    bpt_option_request request;
    bpt_option_set *set;
    assert_int_equal(bpt_options_parse(&bpt_train_command, n, arguments, &o, &request, &set),
                     BPT_OK);
    bpt_learning_options_default(&o, set);
    bpt_option_set_free(set);
    return o.warmup_epochs;
}

/* A short run has to reach its rate, too. */
static void test_warmup_is_half_of_the_run_at_most(void **state) {
    (void)state;
    static const struct {
        char *epochs;
        double warmup;
    } cases[] = {{"0.5", 0.25}, {"1", 0.5}, {"1.5", 0.75}, {"2", 1}, {"8", 1}, {"300", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *unless_given[] = {"bpt-train", "--epochs", cases[i].epochs};
        char *given[] = {"bpt-train", "--epochs", cases[i].epochs, "--warmup-epochs", "1"};
        char *onecycle[] = {"bpt-train", "--epochs", cases[i].epochs, "--schedule", "onecycle"};
        assert_true(warmup_of(3, unless_given) == cases[i].warmup);
        assert_true(warmup_of(5, given) == 1);
        assert_true(warmup_of(5, onecycle) == 0);
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
        cmocka_unit_test(test_whole_batch),
        cmocka_unit_test(test_warmup_is_half_of_the_run_at_most),
        cmocka_unit_test(test_options_reach_the_optimiser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
