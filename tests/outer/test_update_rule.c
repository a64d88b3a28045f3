/* Update rules against their closed forms. */
#include "base/random.h"
#include "outer/rules/update_rule.h"
#include "tests/base/near.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_update_rule *const rules[] = {&bpt_rule_agwu,      &bpt_rule_agwu_lag,
                                               &bpt_rule_agwu_none, &bpt_rule_sgwu,
                                               &bpt_rule_easgd,     &bpt_rule_allreduce};
static const double ones[3] = {1, 1, 1};

static void weigh_by(const bpt_update_rule *rule, uint64_t version, const uint64_t base[3],
                     double gamma[3]) {
    const bpt_update_inputs in = {
        .n_workers = 3, .version = version, .base = base, .quality = ones};
    rule->weigh(&in, gamma);
}

static void weigh_agwu(uint64_t version, const uint64_t base[3], double gamma[3]) {
    weigh_by(&bpt_rule_agwu, version, base, gamma);
}

/* Saved exchanges and logs tell rules apart by these names. */
static void test_names(void **state) {
    (void)state;
    assert_string_equal(bpt_rule_agwu.name, "agwu");
    assert_string_equal(bpt_rule_agwu_lag.name, "agwu-lag");
    assert_string_equal(bpt_rule_agwu_none.name, "agwu-none");
    assert_string_equal(bpt_rule_sgwu.name, "sgwu");
    assert_string_equal(bpt_rule_easgd.name, "easgd");
    assert_string_equal(bpt_rule_allreduce.name, "allreduce");
}

static void test_who_waits_and_who_counts_quality(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const bpt_update_rule *r = rules[i];
        assert_int_equal(r->synchronous, r == &bpt_rule_sgwu || r == &bpt_rule_allreduce);
        assert_int_equal(r->ignores_quality, r == &bpt_rule_easgd);
    }
}

/* ALGORITHMS 1.3: versions (9,9,5) at i = 10, and the same lags at i = 100. */
static void test_gamma_of_the_notes(void **state) {
    (void)state;
    double gamma[3];
    weigh_agwu(9, (const uint64_t[]){9, 9, 5}, gamma);
    assert_near(gamma[0], 0.3786, 5e-5);
    assert_near(gamma[2], 0.2428, 5e-5);
    weigh_agwu(99, (const uint64_t[]){99, 99, 95}, gamma);
    assert_near(gamma[1], 0.3378, 5e-5);
    assert_near(gamma[2], 0.3244, 5e-5);
}

static void test_gamma_sums_to_one_and_grows(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    double gamma[3];
    for (int trial = 0; trial < 1000; trial++) {
        const uint64_t version = bpt_random_below(&r, 100);
        uint64_t base[3];
        for (int j = 0; j < 3; j++) base[j] = bpt_random_below(&r, (uint32_t)version + 1);
        weigh_agwu(version, base, gamma);
        assert_near(gamma[0] + gamma[1] + gamma[2], 1, 1e-12);
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                if (base[j] < base[k]) assert_true(gamma[j] < gamma[k]);
    }
    weigh_agwu(0, (const uint64_t[]){0, 0, 0}, gamma);
    for (int j = 0; j < 3; j++) assert_near(gamma[j], 1.0 / 3, 1e-15);
}

/* Lags of 0, 1 and 3: 1, 1/2 and 1/4 over their sum, early and late alike. */
static void test_gamma_by_lag(void **state) {
    (void)state;
    double gamma[3];
    for (uint64_t version = 3; version < 1000; version += 99) {
        weigh_by(&bpt_rule_agwu_lag, version, (const uint64_t[]){version, version - 1, version - 3},
                 gamma);
        for (int j = 0; j < 3; j++) assert_near(gamma[j], (4 >> j) / 7.0, 1e-15);
    }
}

static void test_gamma_without_age(void **state) {
    (void)state;
    double gamma[3];
    weigh_by(&bpt_rule_agwu_none, 9, (const uint64_t[]){9, 0, 5}, gamma);
    for (int j = 0; j < 3; j++) assert_near(gamma[j], 1.0 / 3, 1e-15);
}

/* One worker with Q = 1 is plain sequential training: the server holds what the worker has. */
static void test_agwu_of_one_is_the_worker(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(2, BPT_PURPOSE_TEST, 0);
    enum { N = 37 };
    float global[N], local[N], delta[N];
    for (int i = 0; i < N; i++) global[i] = local[i] = bpt_random_normal(&r);
    for (uint64_t version = 0; version < 20; version++) {
        for (int i = 0; i < N; i++) {
            local[i] = global[i] + 0.1f * bpt_random_normal(&r);
            delta[i] = local[i] - global[i];
        }
        double gamma = 0;
        const bpt_update_inputs in = {
            .n_workers = 1, .version = version, .base = &version, .quality = ones};
        bpt_rule_agwu.weigh(&in, &gamma);
        assert_true(gamma == 1);
        const float factor = (float)gamma;
        bpt_rule_agwu.merge(&(bpt_merge){.end = N,
                                         .global = global,
                                         .parts = (const float *const[]){delta},
                                         .factors = &factor,
                                         .n_parts = 1});
        for (int i = 0; i < N; i++) assert_near(global[i], local[i], 1e-6f);
    }
}

enum { WIDE = 2500 }; /* more than one block, and a part of one */

static void draw(float parts[3][WIDE], float *global, uint64_t id) {
    bpt_random r = bpt_random_stream(3, BPT_PURPOSE_TEST, id);
    for (int i = 0; i < WIDE; i++) global[i] = bpt_random_normal(&r);
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < WIDE; i++) parts[j][i] = bpt_random_normal(&r);
}

static void merge_three(const bpt_update_rule *rule, float parts[3][WIDE], float *global,
                        const double quality[3]) {
    double gamma[3];
    const uint64_t base[3] = {4, 4, 4};
    const bpt_update_inputs in = {.n_workers = 3, .version = 4, .base = base, .quality = quality};
    rule->weigh(&in, gamma);
    const float factor[3] = {(float)gamma[0], (float)gamma[1], (float)gamma[2]};
    rule->merge(&(bpt_merge){.end = WIDE,
                             .global = global,
                             .parts = (const float *const[]){parts[0], parts[1], parts[2]},
                             .factors = factor,
                             .n_parts = 3});
}

/* W = SUM W_j Q_j / SUM Q, where parts are W_j - W. */
static void test_sgwu(void **state) {
    (void)state;
    static float parts[3][WIDE], global[WIDE], before[WIDE];
    const double quality[3][3] = {{0.5, 0.8, 0.7}, {1, 1, 1}, {0.1, 0.2, 0.3}};
    for (int c = 0; c < 3; c++) {
        draw(parts, before, (uint64_t)c);
        memcpy(global, before, sizeof global);
        merge_three(&bpt_rule_sgwu, parts, global, quality[c]);
        const double sum = quality[c][0] + quality[c][1] + quality[c][2];
        for (int i = 0; i < WIDE; i++) {
            double expected = 0;
            for (int j = 0; j < 3; j++)
                expected += ((double)before[i] + parts[j][i]) * quality[c][j] / sum;
            assert_near(global[i], expected, 1e-5);
        }
    }
}

static void test_sgwu_without_any_quality_is_the_average(void **state) {
    (void)state;
    double gamma[3];
    const bpt_update_inputs in = {.n_workers = 3, .quality = (const double[]){0, 0, 0}};
    bpt_rule_sgwu.weigh(&in, gamma);
    for (int j = 0; j < 3; j++) assert_near(gamma[j], 1.0 / 3, 1e-15);
}

/* A rule of no values is one of rounds. */
static void test_rules_without_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const bpt_update_rule *rule = rules[i];
        const bool none = rule->payload == BPT_PAYLOAD_NONE;
        assert_true(none == !rule->weigh && none == !rule->merge);
        assert_true(!none || rule->synchronous);
    }
}

/* Over the mean of those that are known: 0.6 in both cases. */
static void test_shares_of_quality(void **state) {
    (void)state;
    const double all[3] = {0.9, 0.6, 0.3}, some[3] = {0.8, 0, 0.4};
    const bpt_update_inputs known = {.n_workers = 3, .quality = all};
    const bpt_update_inputs half = {.n_workers = 3, .quality = some};
    const bpt_update_inputs alone = {.n_workers = 1, .quality = all};
    const bpt_update_inputs none = {.n_workers = 1, .quality = some + 1};
    for (uint32_t j = 0; j < 3; j++)
        assert_near(bpt_quality_share(&known, j), 1.5 - 0.5 * j, 1e-12);
    assert_near(bpt_quality_share(&half, 0), 4.0 / 3, 1e-12);
    assert_near(bpt_quality_share(&half, 2), 2.0 / 3, 1e-12);
    assert_true(bpt_quality_share(&alone, 0) == 1); /* no damping */
    assert_true(bpt_quality_share(&none, 0) == 0);
    for (uint32_t m = 1; m <= 3; m++)
        assert_true(bpt_quality_share(&(bpt_update_inputs){.n_workers = m, .quality = ones}, 0) ==
                    1);
}

static void push_easgd(float *centre, const float *x, double alpha) {
    double gamma[1];
    bpt_rule_easgd.weigh(&(bpt_update_inputs){.n_workers = 1, .elasticity = alpha}, gamma);
    assert_true(gamma[0] == alpha);
    const float factor = (float)gamma[0];
    bpt_rule_easgd.merge(&(bpt_merge){.end = 1,
                                      .global = centre,
                                      .parts = (const float *const[]){x},
                                      .factors = &factor,
                                      .n_parts = 1});
}

/* Alpha 1/4, a worker at 16, the centre at 8: they come 2 towards each other. */
static void test_easgd(void **state) {
    (void)state;
    float centre[1] = {8}, x[1] = {16};
    const float pushed[1] = {16};
    push_easgd(centre, x, 0.25);
    assert_true(centre[0] == 10);
    bpt_easgd_pull(x, pushed, centre, 0.25, 1);
    assert_near(x[0], 14, 1e-5);
    float later[1] = {17}; /* it has trained on meanwhile */
    bpt_easgd_pull(later, pushed, centre, 0.25, 1);
    assert_near(later[0], 15, 1e-5);
}

/* ALGORITHMS 6: but for training, the sum of all workers and the centre stays, whoever comes when.
 */
static void test_easgd_keeps_the_sum(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(5, BPT_PURPOSE_TEST, 0);
    float x[3][1], pushed[3][1], centre[1] = {1};
    double sum = 1;
    for (int j = 0; j < 3; j++) sum += x[j][0] = bpt_random_normal(&r);
    for (int i = 0; i < 500; i++) {
        const uint32_t j = bpt_random_below(&r, 3);
        pushed[j][0] = x[j][0];
        push_easgd(centre, pushed[j], 0.3);
        const float step = 0.1F * bpt_random_normal(&r); /* while the answer is under way */
        x[j][0] += step;
        sum += step;
        bpt_easgd_pull(x[j], pushed[j], centre, 0.3, 1);
        assert_near(x[0][0] + x[1][0] + x[2][0] + centre[0], sum, 1e-3);
    }
}

/* Elements outside of the range stay. */
static void test_merge_of_a_range(void **state) {
    (void)state;
    static float parts[3][WIDE], global[WIDE], before[WIDE];
    const bpt_update_rule *merging[] = {&bpt_rule_agwu, &bpt_rule_sgwu, &bpt_rule_easgd};
    const float factor[3] = {0.5F, 0.25F, 0.25F};
    for (int c = 0; c < 3; c++) {
        draw(parts, before, 20);
        memcpy(global, before, sizeof global);
        merging[c]->merge(
            &(bpt_merge){.begin = 100,
                         .end = 2400,
                         .global = global,
                         .parts = (const float *const[]){parts[0], parts[1], parts[2]},
                         .factors = factor,
                         .n_parts = merging[c]->synchronous ? 3 : 1});
        assert_memory_equal(global, before, 100 * sizeof *global);
        assert_memory_equal(global + 2400, before + 2400, 100 * sizeof *global);
        for (int i = 100; i < 2400; i++) assert_true(global[i] != before[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_without_values),
        cmocka_unit_test(test_shares_of_quality),
        cmocka_unit_test(test_easgd),
        cmocka_unit_test(test_easgd_keeps_the_sum),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_who_waits_and_who_counts_quality),
        cmocka_unit_test(test_gamma_of_the_notes),
        cmocka_unit_test(test_gamma_sums_to_one_and_grows),
        cmocka_unit_test(test_gamma_by_lag),
        cmocka_unit_test(test_gamma_without_age),
        cmocka_unit_test(test_agwu_of_one_is_the_worker),
        cmocka_unit_test(test_sgwu),
        cmocka_unit_test(test_sgwu_without_any_quality_is_the_average),
        cmocka_unit_test(test_merge_of_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
