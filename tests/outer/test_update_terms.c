/* What is laid over a rule, by hand. */
#include "outer/rules/merge.h"
#include "tests/base/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_statistics none = {NULL, 0};

/* Changes of 2, 1 and 0 with B = 1/2: the velocity is 2, 2, 1. */
static void test_momentum(void **state) {
    (void)state;
    float global[2] = {0, 10}, velocity[2] = {0, 0};
    const float delta[3][2] = {{4, -4}, {2, -2}, {0, 0}}, factor = 0.5F;
    const float expected[3] = {2, 4, 5};
    for (int i = 0; i < 3; i++) {
        bpt_rule_agwu.merge(&(bpt_merge){.end = 2,
                                         .global = global,
                                         .parts = (const float *const[]){delta[i]},
                                         .factors = &factor,
                                         .n_parts = 1,
                                         .velocity = velocity,
                                         .momentum = 0.5F});
        assert_true(global[0] == expected[i]);
        assert_true(global[1] == 10 - expected[i]);
    }
    assert_true(velocity[0] == 1 && velocity[1] == -1);
}

/* The change of a synchronous rule is that of all workers: 4/2 + 8/4. */
static void test_momentum_of_a_round(void **state) {
    (void)state;
    float global[1] = {10}, velocity[1] = {1};
    const float a[1] = {4}, b[1] = {8}, factors[2] = {0.5F, 0.25F};
    bpt_rule_sgwu.merge(&(bpt_merge){.end = 1,
                                     .global = global,
                                     .parts = (const float *const[]){a, b},
                                     .factors = factors,
                                     .n_parts = 2,
                                     .velocity = velocity,
                                     .momentum = 0.5F});
    assert_true(velocity[0] == 4.5F);
    assert_true(global[0] == 14.5F);
}

/* In the long run a push counts 1 / (1 - B) times: 10 with B = 0.9. */
static void test_gain_of_momentum(void **state) {
    (void)state;
    float global[1] = {0}, velocity[1] = {0};
    const float push[1] = {1}, nothing[1] = {0}, factor = 1;
    for (int i = 0; i < 300; i++)
        bpt_rule_agwu_none.merge(
            &(bpt_merge){.end = 1,
                         .global = global,
                         .parts = (const float *const[]){i == 0 ? push : nothing},
                         .factors = &factor,
                         .n_parts = 1,
                         .velocity = velocity,
                         .momentum = 0.9F});
    assert_near(global[0], 10, 1e-4);
}

enum { WIDE = 3000, FIRST = 100 };

/* Merges a push of ones into a part [begin, end) of 10 elements, number FIRST of the vector on. */
static void merge_part(size_t begin, size_t end, float *global, float *velocity) {
    static const bpt_span spans[] = {{0, 20}, {95, 102}, {104, 105}, {108, 200}, {300, 400}};
    const float ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, factor = 1;
    for (int i = 0; i < 10; i++) {
        global[i] = 0;
        velocity[i] = 1;
    }
    bpt_merge_part(&bpt_rule_agwu,
                   &(bpt_merge){.begin = begin,
                                .end = end,
                                .global = global,
                                .parts = (const float *const[]){ones},
                                .factors = &factor,
                                .n_parts = 1,
                                .velocity = velocity,
                                .momentum = 0.5F},
                   FIRST, (bpt_statistics){spans, 5});
}

/* Elements 100, 101, 104, 108 and 109 are statistics: they have no momentum. */
static void test_statistics_have_no_momentum(void **state) {
    (void)state;
    const float is_statistic[10] = {1, 1, 0, 0, 1, 0, 0, 0, 1, 1};
    for (size_t begin = 0; begin <= 10; begin++)
        for (size_t end = begin; end <= 10; end++) {
            float global[10], velocity[10];
            merge_part(begin, end, global, velocity);
            for (size_t i = 0; i < 10; i++) {
                const bool inside = i >= begin && i < end;
                const float moved = is_statistic[i] > 0 ? 1 : 1.5F;
                assert_true(global[i] == (inside ? moved : 0));
                assert_true(velocity[i] == (inside && is_statistic[i] == 0 ? 1.5F : 1));
            }
        }
}

/* One step is the rule of the paper: lr = 1/2, g = 3, lambda = 2, and the weights have come 1/4
 * since: W - 1/2 (3 + 2 * 9 * 1/4). */
static void test_compensation_of_a_step(void **state) {
    (void)state;
    const bpt_update_terms terms = {.compensation = 2};
    const float delta[3] = {-1.5F, -1.5F, 1.5F}, base[3] = {9.75F, 10, 10.25F}, factor = 1;
    float global[3] = {10, 10, 10};
    bpt_rule_agwu.merge(&(bpt_merge){.end = 3,
                                     .global = global,
                                     .parts = (const float *const[]){delta},
                                     .factors = &factor,
                                     .n_parts = 1,
                                     .base = base,
                                     .compensation = bpt_compensation(&terms, 0.5)});
    assert_true(global[0] == 10 - 3.75F);
    assert_true(global[1] == 10 - 1.5F);
    assert_true(global[2] == 10 + 1.5F + 4 * 2.25F * 0.25F);
}

/* Compensation comes before the weight of the push, and that before momentum. */
static void test_compensation_and_momentum(void **state) {
    (void)state;
    const float delta[1] = {2}, base[1] = {7}, factor = 0.5F;
    float global[1] = {8}, velocity[1] = {1};
    bpt_rule_agwu.merge(&(bpt_merge){.end = 1,
                                     .global = global,
                                     .parts = (const float *const[]){delta},
                                     .factors = &factor,
                                     .n_parts = 1,
                                     .velocity = velocity,
                                     .momentum = 0.25F,
                                     .base = base,
                                     .compensation = 0.125F});
    assert_true(velocity[0] == 0.25F + 0.5F * (2 - 0.125F * 4 * 1)); /* 1 */
    assert_true(global[0] == 9);
}

static void test_factor_of_compensation(void **state) {
    (void)state;
    const bpt_update_terms terms = {.compensation = 2};
    assert_true(bpt_compensation(&terms, 0.5) == 4);
    assert_true(bpt_compensation(&terms, 0) == 0);
    assert_true(bpt_compensation(&terms, 1e-300) == 0); /* a float cannot tell */
    assert_true(bpt_compensation(&(bpt_update_terms){0}, 0.5) == 0);
}

static void test_statistics_are_not_compensated(void **state) {
    (void)state;
    static const bpt_span spans[] = {{2, 3}, {5, 6}};
    const float delta[6] = {1, 1, 1, 1, 1, 1}, base[6] = {0}, factor = 1;
    float global[6] = {2, 2, 2, 2, 2, 2};
    bpt_merge_part(&bpt_rule_agwu_lag,
                   &(bpt_merge){.end = 6,
                                .global = global,
                                .parts = (const float *const[]){delta},
                                .factors = &factor,
                                .n_parts = 1,
                                .base = base,
                                .compensation = 0.25F},
                   0, (bpt_statistics){spans, 2});
    for (int i = 0; i < 6; i++) assert_true(global[i] == (i == 2 || i == 5 ? 3 : 2.5F));
}

/* Without terms a merge of parts is the rule's own, whatever the statistics. */
static void test_without_terms(void **state) {
    (void)state;
    static float part[WIDE], global[2][WIDE];
    static const bpt_span spans[] = {{10, 700}, {1500, 1501}};
    const float factor = 0.3F;
    for (int i = 0; i < WIDE; i++) {
        part[i] = 1.0F / (float)(i + 3);
        global[0][i] = global[1][i] = 1.0F / (float)(i + 7);
    }
    bpt_merge m = {.end = WIDE,
                   .global = global[0],
                   .parts = (const float *const[]){part},
                   .factors = &factor,
                   .n_parts = 1};
    bpt_rule_agwu.merge(&m);
    m.global = global[1];
    bpt_merge_part(&bpt_rule_agwu, &m, 0, (bpt_statistics){spans, 2});
    assert_memory_equal(global[0], global[1], sizeof global[0]);
}

/* A term that does nothing changes no bit, through blocks and their rest. */
static void test_momentum_of_zero(void **state) {
    (void)state;
    static float part[WIDE], global[2][WIDE], velocity[WIDE];
    const float factor = 0.3F;
    for (int i = 0; i < WIDE; i++) {
        part[i] = 1.0F / (float)(i + 3);
        global[0][i] = global[1][i] = 1.0F / (float)(i + 7);
    }
    bpt_merge m = {.end = WIDE,
                   .global = global[0],
                   .parts = (const float *const[]){part},
                   .factors = &factor,
                   .n_parts = 1};
    bpt_merge_part(&bpt_rule_agwu, &m, 0, none);
    m.global = global[1];
    m.velocity = velocity;
    bpt_merge_part(&bpt_rule_agwu, &m, 0, none);
    assert_memory_equal(global[0], global[1], sizeof global[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compensation_of_a_step),
        cmocka_unit_test(test_compensation_and_momentum),
        cmocka_unit_test(test_factor_of_compensation),
        cmocka_unit_test(test_statistics_are_not_compensated),
        cmocka_unit_test(test_momentum),
        cmocka_unit_test(test_momentum_of_a_round),
        cmocka_unit_test(test_gain_of_momentum),
        cmocka_unit_test(test_statistics_have_no_momentum),
        cmocka_unit_test(test_without_terms),
        cmocka_unit_test(test_momentum_of_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
