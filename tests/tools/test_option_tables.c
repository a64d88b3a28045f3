/* The choices of options are tied by position to tables and enumerations elsewhere: they name the
 * same things in the same order. */
#include "base/log.h"
#include "inner/optimizers/optimizer.h"
#include "inner/schedules/schedule.h"
#include "outer/rules/update_rule.h"
#include "scheduler/policy.h"
#include "storage/augmentations/augmentation.h"
#include "tests/base/near.h"
#include "tools/train/options/option_uses.h"
#include "tools/train/options/train_options.h"
#include "tools/train/options/train_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const bpt_option *option(const char *name) {
    const bpt_option *o = bpt_train_command.options;
    for (size_t i = 0; i < bpt_train_command.n_options; i++, o++)
        if (strcmp(o->name, name) == 0) return o;
    fail_msg("there is no option %s", name);
    return NULL;
}

/* @return word number @p i of the option's choices, NULL past the last; valid until the next call
 */
static const char *choice(const char *name, size_t i) {
    static char word[64];
    const bpt_option *o = option(name);
    assert_int_equal(o->type, BPT_OPTION_CHOICE);
    const char *p = o->choices;
    for (; i > 0; i--) {
        p += strcspn(p, "|");
        if (!*p++) return NULL;
    }
    snprintf(word, sizeof word, "%.*s", (int)strcspn(p, "|"), p);
    return word;
}

static void assert_choices(const char *name, size_t n, const char *const *expected) {
    for (size_t i = 0; i < n; i++) {
        assert_non_null(choice(name, i));
        assert_string_equal(choice(name, i), expected[i]);
    }
    assert_null(choice(name, n));
}

/* Each name of other programs leads to an option, by another name than it has. */
static void test_aliases(void **state) {
    (void)state;
    const bpt_option_alias *a = bpt_train_command.aliases;
    assert_non_null(a);
    for (; a->name; a++) {
        (void)option(a->option);
        for (size_t i = 0; i < bpt_train_command.n_options; i++)
            assert_string_not_equal(bpt_train_command.options[i].name, a->name);
    }
}

static void test_optimizers(void **state) {
    (void)state;
    const char *names[16];
    size_t n = 0;
    for (; bpt_optimizer_at(n); n++) names[n] = bpt_optimizer_at(n)->name;
    assert_choices("optimizer", n, names);
}

static void test_schedules(void **state) {
    (void)state;
    const char *names[16];
    size_t n = 0;
    for (; bpt_schedule_kind_at(n); n++) names[n] = bpt_schedule_kind_at(n)->name;
    assert_choices("schedule", n, names);
}

static void test_updates(void **state) {
    (void)state;
    enum { N = BPT_UPDATE_ALLREDUCE + 1 };
    static const char *const expected[N] = {
        [BPT_UPDATE_DEFAULT] = "default",     [BPT_UPDATE_AUTO] = "auto",
        [BPT_UPDATE_LOCAL] = "local",         [BPT_UPDATE_AGWU] = "agwu",
        [BPT_UPDATE_SGWU] = "sgwu",           [BPT_UPDATE_EASGD] = "easgd",
        [BPT_UPDATE_ALLREDUCE] = "allreduce",
    };
    assert_choices("update", N, expected);
    for (int i = 0; i < N; i++)
        assert_string_equal(bpt_update_choice_name((bpt_update_choice)i), expected[i]);
}

/* Every rule can be chosen, in one way. */
static void test_rules(void **state) {
    (void)state;
    enum { N_GAMMAS = BPT_GAMMA_NONE + 1 };
    assert_choices(
        "gamma", N_GAMMAS,
        (const char *[]){
            [BPT_GAMMA_RECALLED] = "recalled", [BPT_GAMMA_LAG] = "lag", [BPT_GAMMA_NONE] = "none"});
    static const bpt_update_rule *const rules[] = {&bpt_rule_agwu,      &bpt_rule_agwu_lag,
                                                   &bpt_rule_agwu_none, &bpt_rule_sgwu,
                                                   &bpt_rule_easgd,     &bpt_rule_allreduce};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        int chosen = 0;
        for (int u = BPT_UPDATE_AGWU; u <= BPT_UPDATE_ALLREDUCE; u++)
            for (int g = 0; g < (u == BPT_UPDATE_AGWU ? N_GAMMAS : 1); g++) {
                const bpt_train_options o = {.gamma = g};
                chosen += bpt_train_rule(&o, (bpt_update_choice)u) == rules[i];
            }
        assert_int_equal(chosen, 1);
    }
}

/* What is laid over a rule is laid over no other. */
static void test_terms(void **state) {
    (void)state;
    const bpt_train_options o = {.server_momentum = 0.5, .delay_compensation = 2, .momentum = 0.75};
    for (int u = BPT_UPDATE_LOCAL; u <= BPT_UPDATE_ALLREDUCE; u++) {
        const bool merges = u == BPT_UPDATE_AGWU || u == BPT_UPDATE_SGWU;
        const bpt_update_terms terms = bpt_train_terms(&o, (bpt_update_choice)u, 3);
        assert_true(terms.momentum == (merges ? 0.5 : 0));
        assert_true(terms.compensation == (u == BPT_UPDATE_AGWU ? 2 : 0));
        assert_near(terms.elasticity, u == BPT_UPDATE_EASGD ? 0.3 : 0, 1e-15);
        assert_true(bpt_update_merges((bpt_update_choice)u) == (merges || u == BPT_UPDATE_EASGD));
        assert_true(bpt_update_is_async((bpt_update_choice)u) ==
                    (u == BPT_UPDATE_AGWU || u == BPT_UPDATE_EASGD));
    }
    for (size_t i = 0; bpt_optimizer_at(i); i++) { /* only sgd's deltas are sums of gradients */
        const bpt_train_options by = {.optimizer = (int)i, .delay_compensation = 2};
        const bool sgd = bpt_optimizer_at(i) == &bpt_optimizer_sgd;
        assert_true(bpt_train_terms(&by, BPT_UPDATE_AGWU, 3).compensation == (sgd ? 2 : 0));
    }
    const bpt_train_options given = {.elasticity = 0.4};
    assert_true(bpt_train_terms(&given, BPT_UPDATE_EASGD, 3).elasticity == 0.4);
    assert_true(bpt_train_rates(&o, 0.5) == 2); /* a gradient counts four times in the long run */
}

static void test_partitions(void **state) {
    (void)state;
    enum { N = BPT_PARTITION_IDPA + 1 };
    static const char *const expected[N] = {[BPT_PARTITION_AUTO] = "auto",
                                            [BPT_PARTITION_EVEN] = "even",
                                            [BPT_PARTITION_IDPA] = "idpa"};
    assert_choices("partition", N, expected);
    for (int i = 0; i < N; i++)
        assert_string_equal(bpt_partition_choice_name((bpt_partition_choice)i), expected[i]);
}

static void test_orders(void **state) {
    (void)state;
    enum { N = BPT_ORDER_SEQUENTIAL + 1 };
    static const char *const expected[N] = {[BPT_ORDER_SHUFFLE] = "shuffle",
                                            [BPT_ORDER_BLOCKS] = "blocks",
                                            [BPT_ORDER_SEQUENTIAL] = "sequential"};
    assert_choices("order", N, expected);
    for (int i = 0; i < N; i++)
        assert_string_equal(bpt_order_kind_name((bpt_order_kind)i), expected[i]);
    char window[16]; /* the help says it in words */
    snprintf(window, sizeof window, "among %d blocks", BPT_ORDER_WINDOW);
    assert_non_null(strstr(option("order")->help, window));
}

static void test_data_modes(void **state) {
    (void)state;
    enum { N = BPT_DATA_SCATTER + 1 };
    static const char *const expected[N] = {
        [BPT_DATA_SHARED] = "shared", [BPT_DATA_SCATTER] = "scatter"};
    assert_choices("data-mode", N, expected);
    for (int i = 0; i < N; i++)
        assert_string_equal(bpt_data_mode_name((bpt_data_mode)i), expected[i]);
}

static void test_enumerations(void **state) {
    (void)state;
    assert_choices(
        "lr-scale", 2,
        (const char *[]){[BPT_LR_SCALE_LINEAR] = "linear", [BPT_LR_SCALE_NONE] = "none"});
    assert_choices(
        "quality", 2,
        (const char *[]){[BPT_QUALITY_OFF] = "off", [BPT_QUALITY_HELD_OUT] = "held-out"});
    assert_choices("log-level", 5,
                   (const char *[]){[BPT_LOG_ERROR] = "error",
                                    [BPT_LOG_WARN] = "warn",
                                    [BPT_LOG_INFO] = "info",
                                    [BPT_LOG_DEBUG] = "debug",
                                    [BPT_LOG_TRACE] = "trace"});
}

/* The policy is found by its name; its help lists them all. */
static void test_policies(void **state) {
    (void)state;
    const bpt_option *o = option("policy");
    const bpt_policy *policy;
    assert_int_equal(bpt_policy_find(o->value, &policy), BPT_OK);
    for (size_t i = 0; bpt_policy_at(i); i++)
        assert_non_null(strstr(o->help, bpt_policy_at(i)->name));
}

/* --augment is described in words: each kind is there as it is written, with its defaults. */
static void test_augmentations(void **state) {
    (void)state;
    const bpt_augmentation *kind;
    for (size_t k = 0; (kind = bpt_augmentation_at(k)); k++) {
        char usage[64], defaults[64], both[160];
        uint32_t values[BPT_AUGMENT_VALUES];
        bpt_augmentation_usage(kind, usage, sizeof usage);
        snprintf(both, sizeof both, "%s", usage);
        if (kind->n_parameters > 0 && !kind->parameters[0].required) {
            for (uint32_t i = 0; i < kind->n_parameters; i++)
                values[i] = kind->parameters[i].otherwise;
            bpt_augmentation_values(kind, values, kind->n_parameters, defaults, sizeof defaults);
            snprintf(both, sizeof both, "%s (%s)", usage, defaults);
        }
        if (!strstr(option("augment")->help, both)) fail_msg("--help lacks \"%s\"", both);
    }
}

/* @param[out] list names of the options that the task of @p o has a use for, with a space behind
 * each, in the order of --help, shape [size] */
static void list_used(const bpt_train_options *o, char *list, size_t size) {
    list[0] = '\0';
    for (size_t i = 0; i < bpt_train_command.n_options; i++) {
        const char *name = bpt_train_command.options[i].name;
        const size_t length = strlen(list);
        if (bpt_option_uses_any(o, name)) snprintf(list + length, size - length, "%s ", name);
    }
}

/* What a task has no use for is refused, not ignored. */
static void test_what_tasks_use(void **state) {
    (void)state;
    char used[1024];
    list_used(&(bpt_train_options){.replay = "runs/one"}, used, sizeof used);
    assert_string_equal(used, "data model init-weights replay log-interval log-level ");
    list_used(&(bpt_train_options){.bench = 3}, used, sizeof used);
    assert_string_equal(
        used,
        "data model freeze-before input-size classes batch-size optimizer momentum nesterov "
        "weight-decay clip-norm step-limit label-smoothing seed device precision "
        "threads policy tuned replay bench trace log-level ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aliases),        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_augmentations),  cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_updates),        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_terms),          cmocka_unit_test(test_partitions),
        cmocka_unit_test(test_data_modes),     cmocka_unit_test(test_enumerations),
        cmocka_unit_test(test_policies),       cmocka_unit_test(test_orders),
        cmocka_unit_test(test_what_tasks_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
