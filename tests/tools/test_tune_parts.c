/* The parts of bpt-tune: spreads and verdicts, knobs and their defaults, shares of the budget, and
 * what it learns of tasks. */
#include "base/clock.h"
#include "base/memory.h"
#include "tools/spread.h"
#include "tools/train/options/train_options.h"
#include "tools/tune/budget.h"
#include "tools/tune/contender.h"
#include "tools/tune/cut_costs.h"
#include "tools/tune/knobs.h"
#include "tools/tune/tune_options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- spread ---- */

/* Values 1 to n, the last one first. */
static bpt_spread spread_to(size_t n) {
    double values[200];
    for (size_t i = 0; i < n; i++) values[i] = (double)(n - i);
    return bpt_spread_of(values, n);
}

/* Ranks of the interval: tables of the sign test, e.g. Conover 1999, p = 0.5 and 95 %. */
static void test_interval(void **state) {
    (void)state;
    static const struct {
        size_t n, low;
    } table[] = {{6, 1}, {8, 1}, {9, 2}, {10, 2}, {12, 3}, {20, 6}, {25, 8}, {50, 18}, {100, 40}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const bpt_spread s = spread_to(table[i].n);
        assert_int_equal(s.n, table[i].n);
        assert_true(s.low == (double)table[i].low);
        assert_true(s.high == (double)(table[i].n + 1 - table[i].low));
    }
    for (size_t n = 1; n < BPT_SPREAD_MIN; n++) {
        const bpt_spread s = spread_to(n);
        assert_true(s.low == 0.0 && isinf(s.high));
        assert_int_equal(bpt_spread_judge(&s, 0.0), BPT_WITHIN_NOISE);
    }
}

static void test_median_and_quartiles(void **state) {
    (void)state;
    const bpt_spread odd = spread_to(5), even = spread_to(4), one = spread_to(1);
    assert_true(odd.median == 3.0 && odd.quartile_1 == 2.0 && odd.quartile_3 == 4.0);
    assert_true(even.median == 2.5 && even.quartile_1 == 1.75 && even.quartile_3 == 3.25);
    assert_true(one.median == 1.0 && one.quartile_1 == 1.0 && one.quartile_3 == 1.0);
}

static void test_verdicts(void **state) {
    (void)state;
    static const struct {
        double low, high, noise;
        bpt_verdict verdict;
    } cases[] = {
        {0.90, 0.98, 0.01, BPT_FASTER},       {0.90, 0.98, 0.03, BPT_WITHIN_NOISE},
        {0.90, 1.00, 0.00, BPT_WITHIN_NOISE}, {1.02, 1.10, 0.01, BPT_SLOWER},
        {1.02, 1.10, 0.05, BPT_WITHIN_NOISE}, {0.99, 1.01, 0.00, BPT_WITHIN_NOISE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bpt_spread s = {.n = 10, .low = cases[i].low, .high = cases[i].high};
        assert_int_equal(bpt_spread_judge(&s, cases[i].noise), cases[i].verdict);
    }
}

/* ---- knobs ---- */

static const bpt_option *row(const bpt_command *command, const char *name) {
    for (size_t i = 0; i < command->n_options; i++)
        if (strcmp(command->options[i].name, name) == 0) return &command->options[i];
    return NULL;
}

/* What is compared with is what bpt-train does without options, on the same step. */
static void test_defaults_are_those_of_training(void **state) {
    (void)state;
    static const char *const shared[] = {"data",    "train-split", "model",     "input-size",
                                         "classes", "batch-size",  "precision", "optimizer"};
    const bpt_knob_limits limits = {3, 6, true};
    const bpt_tuned_choices c = bpt_knob_defaults(&limits);
    for (int k = BPT_KNOB_LOADER_THREADS; k < BPT_N_KNOBS; k++) {
        char text[32];
        bpt_knob_text((bpt_knob)k, &c, text, sizeof text);
        assert_string_equal(text, row(&bpt_train_command, bpt_knob_name((bpt_knob)k))->value);
    }
    assert_int_equal(c.threads, 3); /* of bpt-train 0: the cores */
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        const bpt_option *a = row(&bpt_tune_command, shared[i]);
        const bpt_option *b = row(&bpt_train_command, shared[i]);
        assert_true(a && b && a->type == b->type && a->letter == b->letter);
        assert_true(a->min == b->min && a->max == b->max); /* the same numbers */
        assert_true((!a->value && !b->value) || strcmp(a->value, b->value) == 0);
        assert_true((!a->choices && !b->choices) || strcmp(a->choices, b->choices) == 0);
    }
}

/* No more threads than a pool can have, no fewer than by default. */
static void test_limits(void **state) {
    (void)state;
    static const unsigned cases[][3] = {/* cores, processors; of which are used */
                                        {2, 2, 2},
                                        {2, 4, 4},
                                        {4, 0, 4},
                                        {192, 384, BPT_MAX_WORKERS},
                                        {BPT_MAX_WORKERS, 1000, BPT_MAX_WORKERS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bpt_knob_limits limits = bpt_knob_limits_make(cases[i][0], cases[i][1], true);
        assert_int_equal(limits.cores, cases[i][0]);
        assert_int_equal(limits.processors, cases[i][2]);
        assert_true(limits.loads);
    }
    const bpt_knob_limits many = bpt_knob_limits_make(192, 384, false);
    int64_t values[BPT_MAX_CANDIDATES];
    assert_true(bpt_knob_candidates(BPT_KNOB_THREADS, &many, values) > 1);
    assert_int_equal(values[1], BPT_MAX_WORKERS);
}

/* Every value that is tried is one that bpt-train takes, once, and not the default. */
static void test_candidates(void **state) {
    (void)state;
    for (unsigned cores = 1; cores <= 256; cores++)
        for (int loads = 0; loads < 2; loads++)
            for (int k = 0; k < BPT_N_KNOBS; k++) {
                const bpt_knob_limits limits = {cores, cores < 129 ? 2 * cores : cores, loads != 0};
                const bpt_tuned_choices standard = bpt_knob_defaults(&limits);
                const bpt_option *option = row(&bpt_train_command, bpt_knob_name((bpt_knob)k));
                int64_t values[BPT_MAX_CANDIDATES];
                const size_t n = bpt_knob_candidates((bpt_knob)k, &limits, values);
                assert_true(n <= BPT_MAX_CANDIDATES);
                for (size_t i = 0; i < n; i++) {
                    bpt_tuned_choices c = standard;
                    bpt_knob_set((bpt_knob)k, values[i], &c);
                    assert_true(bpt_knob_differs((bpt_knob)k, &c, &standard));
                    for (size_t j = 0; j < i; j++) assert_true(values[j] != values[i]);
                    if (option->type != BPT_OPTION_INT) continue;
                    assert_true((double)values[i] >= option->min && values[i] >= 1);
                    assert_true((double)values[i] <= option->max);
                }
            }
    int64_t values[BPT_MAX_CANDIDATES];
    const bpt_knob_limits eight = {8, 16, true};
    const int64_t threads[] = {7, 16, 4, 2, 1}, prefetch[] = {8, 16, 2};
    assert_int_equal(bpt_knob_candidates(BPT_KNOB_THREADS, &eight, values), 5);
    assert_memory_equal(values, threads, sizeof threads);
    assert_int_equal(bpt_knob_candidates(BPT_KNOB_PREFETCH, &eight, values), 3);
    assert_memory_equal(values, prefetch, sizeof prefetch);
    const bpt_knob_limits two = {2, 2, false};
    assert_int_equal(bpt_knob_candidates(BPT_KNOB_THREADS, &two, values), 1);
    assert_int_equal(values[0], 1);
    assert_int_equal(bpt_knob_candidates(BPT_KNOB_PREFETCH, &two, values), 0);
}

/* ---- budget ---- */

static void test_shares(void **state) {
    (void)state;
    const bpt_tune_budget b = {.build = 1.0, .round = 0.5}; /* 4 s at least */
    assert_true(bpt_budget_share(&b, 60.0, 4, 2) == 10.0);
    assert_true(bpt_budget_share(&b, 12.0, 4, 2) == 4.0);
    assert_true(bpt_budget_share(&b, 7.9, 4, 2) == 0.0); /* nothing would be left to confirm */
    assert_true(bpt_budget_share(&b, 4.1, 1, 0) > 4.0);
    assert_true(bpt_budget_share(&b, 3.9, 1, 0) == 0.0);
}

static void test_time_left(void **state) {
    (void)state;
    bpt_tune_budget b = {.start_ns = bpt_clock_ns(), .total = 100.0, .round = 60.0};
    assert_true(bpt_budget_left(&b) > 90.0 && bpt_budget_left(&b) <= 100.0);
    assert_true(bpt_budget_has_round(&b)); /* 90 s in 100 */
    b.round = 70.0;
    assert_false(bpt_budget_has_round(&b));
    double expected = 0.0;
    bpt_budget_note(&expected, 4.0);
    assert_true(expected == 4.0);
    bpt_budget_note(&expected, 2.0);
    assert_true(expected == 3.0);
}

/* ---- what tasks take ---- */

static const char small[] =
    "name: small\n"
    "input: [1, 12, 12]\n"
    "classes: 4\n"
    "layers:\n"
    "  - conv: {name: conv1, filters: 8, kernel: 3}\n"
    "  - relu\n"
    "  - fc: {name: fc1, outputs: classes}\n";

static void test_costs_of_a_network(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_tune_subject s = {.batch = 9, .activations = BPT_F32, .learning = {.momentum = 0.9}};
    bpt_tuned_choices choices = {.threads = 2, .policy = "fifo"};
    bpt_contender *c;
    bpt_task_cost *list;
    size_t n, again;
    double seconds = 0.0;
    bpt_tuned tuned = {.n_costs = 0};
    assert_int_equal(bpt_model_parse("small", small, sizeof small - 1, NULL, &s.model), BPT_OK);
    assert_int_equal(bpt_synthetic_make(s.model, s.batch, 1, false, &s.synthetic), BPT_OK);
    assert_int_equal(bpt_contender_create(&s, &choices, &c), BPT_OK);
    assert_int_equal(bpt_task_costs_list(bpt_contender_costs(c), &list, &n), BPT_OK);
    bpt_free(list);
    for (int i = 0; i < 2 * BPT_COST_STEPS; i++)
        assert_int_equal(bpt_contender_run(c, 1, &seconds), BPT_OK);
    assert_true(seconds > 0.0);
    assert_int_equal(bpt_task_costs_list(bpt_contender_costs(c), &list, &again), BPT_OK);
    assert_true(n > 5 && again == n); /* the same rows at every step */
    tuned.costs = list;
    tuned.n_costs = n;
    assert_true(bpt_tuned_cost(&tuned, "conv1", "forward") > 0);
    assert_true(bpt_tuned_cost(&tuned, "fc1", "forward") > 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(list[i].ns >= 1 && list[i].ns < UINT64_C(1000000000));
        for (size_t j = 0; j < i; j++)
            assert_false(strcmp(list[i].label, list[j].label) == 0 &&
                         strcmp(list[i].kind, list[j].kind) == 0);
    }
    bpt_free(list);
    bpt_contender_free(c);
    bpt_synthetic_release(&s.synthetic);
    bpt_model_free(s.model);
    assert_true(bpt_memory_live() == live);
}

static const char wide[] =
    "name: wide\n"
    "input: [1, 12, 12]\n"
    "classes: 4\n"
    "layers:\n"
    "  - conv: {name: conv1, filters: 32, kernel: 3}\n"
    "  - conv: {name: conv2, filters: 32, kernel: 3}\n"
    "  - fc: {name: fc1, outputs: classes}\n";

/* A cut that kernels take is measured beside the whole, one that they do not is not; and the model
 * is as it was. */
static void test_costs_of_cuts(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_tune_subject s = {.batch = 1, .activations = BPT_F32, .learning = {.momentum = 0.9}};
    bpt_tuned_choices choices = {.threads = 2, .policy = "fifo"};
    bpt_cost_table costs = {.workers = 2};
    bpt_contender *c;
    assert_int_equal(bpt_model_parse("wide", wide, sizeof wide - 1, NULL, &s.model), BPT_OK);
    assert_int_equal(bpt_synthetic_make(s.model, s.batch, 1, false, &s.synthetic), BPT_OK);
    assert_int_equal(bpt_cut_costs_measure(&s, &choices, (bpt_cut){0}, 3, &costs), BPT_OK);
    assert_int_equal(costs.n, 5); /* the first layer has no backward data */
    for (size_t i = 0; i < costs.n; i++)
        assert_true(costs.costs[i].cut.channels == 1 && costs.costs[i].ns > 0);
    assert_int_equal(bpt_cut_costs_measure(&s, &choices, (bpt_cut){1, 64, 1}, 3, &costs), BPT_OK);
    assert_int_equal(costs.n, 5);
    assert_int_equal(bpt_cut_costs_measure(&s, &choices, (bpt_cut){1, 2, 1}, 3, &costs), BPT_OK);
    const size_t n_halves = costs.n - 5;
    assert_true(n_halves >= 3); /* all of the second layer, with any instructions */
    /* What promises nothing cuts nothing, and what does is done. */
    choices.cuts = &costs;
    for (size_t i = 0; i < costs.n; i++) costs.costs[i].ns = 1000;
    assert_int_equal(bpt_contender_create(&s, &choices, &c), BPT_OK);
    assert_int_equal(bpt_contender_n_cuts(c), 0);
    bpt_contender_free(c);
    for (size_t i = 5; i < costs.n; i++) costs.costs[i].ns = 100;
    assert_int_equal(bpt_contender_create(&s, &choices, &c), BPT_OK);
    assert_int_equal(bpt_contender_n_cuts(c), n_halves);
    bpt_contender_free(c);
    bpt_cost_table_clear(&costs);
    bpt_synthetic_release(&s.synthetic);
    bpt_model_free(s.model);
    assert_true(bpt_memory_live() == live);
}

static void test_margin(void **state) {
    (void)state;
    assert_int_equal(bpt_cut_costs_margin(0.01), 5);
    assert_int_equal(bpt_cut_costs_margin(0.05), 5);
    assert_int_equal(bpt_cut_costs_margin(0.061), 7);
    assert_int_equal(bpt_cut_costs_margin(3.0), BPT_COST_MARGIN_MAX);
}

/* Where memory ends while a side is built, nothing is left of it. */
static void test_lack_of_memory(void **state) {
    (void)state;
    bpt_tune_subject s = {.batch = 3, .activations = BPT_F32};
    const bpt_tuned_choices choices = {.threads = 1, .policy = "fifo"};
    bpt_contender *c = NULL;
    int n = 0;
    assert_int_equal(bpt_model_parse("small", small, sizeof small - 1, NULL, &s.model), BPT_OK);
    assert_int_equal(bpt_synthetic_make(s.model, s.batch, 1, false, &s.synthetic), BPT_OK);
    const uint64_t live = bpt_memory_live();
    for (; !c && n < 10000; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_contender_create(&s, &choices, &c);
        bpt_memory_fail_at(-1);
        assert_true(status == (c ? BPT_OK : BPT_ENOMEM));
        if (!c) assert_true(bpt_memory_live() == live);
    }
    assert_true(n > 10 && c);
    bpt_contender_free(c);
    bpt_synthetic_release(&s.synthetic);
    bpt_model_free(s.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_median_and_quartiles),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_defaults_are_those_of_training),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_time_left),
        cmocka_unit_test(test_costs_of_a_network),
        cmocka_unit_test(test_costs_of_cuts),
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
