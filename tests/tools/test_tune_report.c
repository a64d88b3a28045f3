/* What bpt-tune says of a search: of each comparison, and of the best. */
#include "tools/tune/tune_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_tune_subject subject = {.batch = 64};

static bpt_tuned_key key;

/* A search of 4 cores that loads, and found nothing yet. */
static bpt_search begin(void) {
    snprintf(key.value[BPT_TUNED_MODEL], sizeof key.value[0], "tiny");
    snprintf(key.value[BPT_TUNED_BATCH], sizeof key.value[0], "64");
    snprintf(key.value[BPT_TUNED_PRECISION], sizeof key.value[0], "fp32");
    snprintf(key.value[BPT_TUNED_CPU], sizeof key.value[0], "a processor");
    snprintf(key.value[BPT_TUNED_CORES], sizeof key.value[0], "4");
    bpt_search s = {.subject = &subject,
                    .limits = {.cores = 4, .processors = 4, .loads = true},
                    .noise = 0.02,
                    .n_rounds = 40};
    s.standard = (bpt_tuned_choices){.threads = 4, .loader_threads = 1, .prefetch = 4};
    strcpy(s.standard.policy, "critical-path");
    s.best = s.standard;
    s.standard_s = s.best_s =
        (bpt_spread){.n = 9, .median = 0.01, .quartile_1 = 0.0095, .quartile_3 = 0.012};
    return s;
}

/* @return one line of what is said, from 0; valid until the next call */
static const char *line(const bpt_search *s, const char *prefix, int number) {
    static char all[4096];
    FILE *out = fmemopen(all, sizeof all, "w");
    assert_non_null(out);
    bpt_tune_report(s, &key, prefix, out);
    assert_int_equal(fclose(out), 0);
    char *at = all;
    for (; number > 0; number--) {
        at = strchr(at, '\n');
        assert_non_null(at);
        at++;
    }
    at[strcspn(at, "\n")] = '\0';
    return at;
}

static void assert_line(const bpt_search *s, int number, const char *expected) {
    assert_string_equal(line(s, "", number), expected);
}

static const char head[] =
    "tiny, 64 samples a step, fp32, a processor, 4 cores: 40 rounds, noise "
    "2.0 %";
static const char standard[] =
    "default: threads 4, policy critical-path, loader-threads 1, prefetch 4: 10 ms a step (half of "
    "the rounds 9.5 to 12)";

static void test_nothing_is_faster(void **state) {
    (void)state;
    bpt_search s = begin();
    assert_line(&s, 0, head);
    assert_line(&s, 1, standard);
    assert_line(&s, 2, "best   : the default");
    assert_string_equal(line(&s, "# ", 2), "# best   : the default");
    s.gain = (bpt_spread){.n = 8, .median = 0.99, .low = 0.95, .high = 1.03};
    assert_line(&s, 2,
                "best   : the default; what seemed faster was not in the end: -1.0 % (-5.0 to "
                "+3.0 %)");
}

static void test_a_best(void **state) {
    (void)state;
    bpt_search s = begin();
    s.best.threads = 2;
    s.best.prefetch = 16;
    strcpy(s.best.policy, "fifo");
    s.best_s = (bpt_spread){.n = 9, .median = 0.008, .quartile_1 = 0.0075, .quartile_3 = 0.0085};
    s.gain = (bpt_spread){.n = 9, .median = 0.8, .low = 0.75, .high = 0.9};
    assert_line(&s, 1, standard);
    assert_line(&s, 2,
                "best   : threads 2, policy fifo, loader-threads 1, prefetch 16: 8 ms a step (half "
                "of the rounds 7.5 to 8.5)");
    assert_line(&s, 3, "the best takes 20.0 % less time (10.0 to 25.0 %, 9 rounds)");
    s.best.cuts = &s.cuts;
    s.limits.loads = false;
    assert_line(&s, 2,
                "best   : threads 2, policy fifo, cuts by costs: 8 ms a step (half of the rounds "
                "7.5 to 8.5)");
}

static void assert_end(const bpt_search *s, int number, const char *expected) {
    const char *text = line(s, "", number);
    const size_t length = strlen(text), wanted = strlen(expected);
    assert_true(length > wanted);
    assert_string_equal(text + length - wanted, expected);
}

static void test_trials(void **state) {
    (void)state;
    bpt_search s = begin();
    bpt_trial *t = s.trials;
    const bpt_spread ratio = {.n = 12, .median = 1.1, .low = 0.95, .high = 1.25};
    t[0] = (bpt_trial){.option = "policy", .value = "fifo", .against = "eft", .measured = true};
    t[0].ratio = ratio;
    t[1] = t[0];
    t[1].verdict = BPT_SLOWER;
    t[2] = t[0];
    t[2].verdict = BPT_FASTER;
    for (int i = 3; i < 6; i++)
        t[i] = (bpt_trial){.option = "cuts", .value = "by costs", .against = "as usual"};
    t[4].alike = true;
    t[5].too_large = true;
    s.n_trials = 6;
    assert_line(
        &s, 1,
        "option          value          against        step time       95 % interval  rounds");
    assert_line(
        &s, 2,
        "policy          fifo           eft              +10.0 %    -5.0 to  +25.0 %      12  "
        "within the noise");
    assert_end(&s, 3, "  slower");
    assert_end(&s, 4, "  faster");
    assert_line(&s, 5, "cuts            by costs       as usual       no time for it");
    assert_end(&s, 6, "  the same: no cut gains enough by them");
    assert_end(&s, 7, "  no room for so many parts");
    assert_line(&s, 8, standard);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_faster),
        cmocka_unit_test(test_a_best),
        cmocka_unit_test(test_trials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
