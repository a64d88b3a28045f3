/* Learning rates at points that can be worked out by hand. */
#include "inner/schedules/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check_step(const bpt_schedule *s, double epoch, double step_epochs, double expected) {
    const double rate = bpt_schedule_rate(s, epoch, step_epochs);
    if (!(fabs(rate - expected) <= 1e-15 + 4e-16 * expected))
        fail_msg("at epoch %g the rate is %.17g, not %.17g", epoch, rate, expected);
}

/* Of a step that takes no time. */
static void check_rate(const bpt_schedule *s, double epoch, double expected) {
    check_step(s, epoch, 0, expected);
}

/* Of a run of n steps, half an epoch each. @param rates shape [n] */
static void check_run(bpt_schedule s, int n, const double *rates) {
    s.total_epochs = n * 0.5;
    for (int t = 0; t < n; t++) check_step(&s, t * 0.5, 0.5, rates[t]);
}

static void test_constant(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_constant, .base = 0.1, .total_epochs = 10};
    check_rate(&s, 0, 0.1);
    check_rate(&s, 3.7, 0.1);
    check_rate(&s, 10, 0.1);
    check_rate(&s, 1e9, 0.1);
}

static void test_warmup(void **state) {
    (void)state;
    const bpt_schedule s = {
        .kind = &bpt_schedule_constant, .base = 0.4, .total_epochs = 10, .warmup_epochs = 2};
    check_rate(&s, 0, 0);
    check_rate(&s, 0.5, 0.1);
    check_rate(&s, 1, 0.2);
    check_rate(&s, 2, 0.4);
    check_rate(&s, 2.5, 0.4);
    check_step(&s, 0, 0.5, 0.1); /* read where the step ends: no step has rate 0 */
    check_step(&s, 1.5, 0.5, 0.4);
    check_step(&s, 1.5, 0.75, 0.4); /* ends beyond it: no more than the base rate */
    /* a warm-up longer than the run stays where the run ends */
    const bpt_schedule longer = {
        .kind = &bpt_schedule_constant, .base = 0.4, .total_epochs = 2, .warmup_epochs = 8};
    check_rate(&longer, 5, 0.1);
}

/* From a quarter of the rate on, which four ranks have at --lr, over 2 epochs. */
static void test_warmup_from_a_part(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_constant,
                            .base = 0.4,
                            .total_epochs = 10,
                            .warmup_epochs = 2,
                            .warmup_start = 0.25};
    check_rate(&s, 0, 0.1);
    check_rate(&s, 1, 0.25);
    check_rate(&s, 2, 0.4);
    check_rate(&s, 5, 0.4);
    check_step(&s, 0.5, 0.5, 0.25); /* read where the step ends */
    const bpt_schedule none = {
        .kind = &bpt_schedule_constant, .base = 0.4, .total_epochs = 10, .warmup_start = 0.25};
    check_rate(&none, 0, 0.4); /* no warm-up, no start of it */
}

static void test_step(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_step,
                            .base = 8,
                            .total_epochs = 10,
                            .factor = 0.5,
                            .every_epochs = 1.5};
    check_rate(&s, 0, 8);
    check_rate(&s, 1.4999, 8);
    check_rate(&s, 1.5, 4);
    check_rate(&s, 3, 2);
    check_rate(&s, 99, 0.125); /* as at epoch 10: six steps, at 1.5, 3, .. 9 */
    /* every step of 0.1, though multiples of 0.1 are none in binary */
    const bpt_schedule fine = {.kind = &bpt_schedule_step,
                               .base = 1,
                               .total_epochs = 10,
                               .factor = 0.5,
                               .every_epochs = 0.1};
    for (int i = 0; i < 50; i++) check_rate(&fine, i / 10.0, pow(0.5, i));
}

static void test_multistep(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_multistep,
                            .base = 1,
                            .total_epochs = 20,
                            .warmup_epochs = 4,
                            .factor = 0.5,
                            .milestones = {2, 14, 18},
                            .n_milestones = 3};
    check_rate(&s, 1, 0.25);
    check_rate(&s, 2, 0.25);
    check_rate(&s, 3, 0.375); /* warm-up multiplies the rest */
    check_rate(&s, 4, 0.5);
    check_step(&s, 13.5, 0.5, 0.5); /* the step that ends here is the last before the boundary */
    check_rate(&s, 14, 0.25);
    check_rate(&s, 18.5, 0.125);
    check_rate(&s, 99, 0.125);
}

static void test_milestones_beyond_the_end(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_multistep,
                            .base = 1,
                            .total_epochs = 5,
                            .factor = 0.1,
                            .milestones = {8},
                            .n_milestones = 1};
    check_rate(&s, 9, 1); /* epoch 9 counts as epoch 5 */
}

static void test_cosine(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_cosine, .base = 0.2, .total_epochs = 12};
    check_rate(&s, 0, 0.2);
    check_rate(&s, 4, 0.15); /* cos 60 degrees = 1/2 */
    check_rate(&s, 6, 0.1);
    check_rate(&s, 8, 0.05);
    check_rate(&s, 12, 0);
    check_rate(&s, 13, 0);
    const bpt_schedule warm = {
        .kind = &bpt_schedule_cosine, .base = 0.2, .total_epochs = 12, .warmup_epochs = 8};
    check_rate(&warm, 4, 0.075);
    check_rate(&warm, 8, 0.05);
}

/* A run of four steps, as in SGDR and elsewhere: step t of T has the rate of t / T. */
static void test_cosine_of_a_run(void **state) {
    (void)state;
    const double rates[] = {1, 0.85355339059327373, 0.5, 0.14644660940672627};
    const bpt_schedule s = {.kind = &bpt_schedule_cosine, .base = 1};
    check_run(s, 4, rates);
    /* neither the first step of a warm-up nor the last of a run is wasted */
    const bpt_schedule warm = {.kind = &bpt_schedule_cosine, .base = 1, .warmup_epochs = 1};
    check_run(warm, 4, (double[]){0.5, rates[1], rates[2], rates[3]});
}

/* Ten steps, three of them up: the top is step 2, where PyTorch's OneCycleLR has it. From 2 to 10,
 * then down to 0.5 in seven steps. */
static void test_onecycle_of_a_run(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_onecycle,
                            .base = 10,
                            .pct_start = 0.3,
                            .div_factor = 5,
                            .final_div_factor = 4};
    double rates[10] = {2, 6, 10};
    for (int t = 3; t < 10; t++) rates[t] = 5.25 + 4.75 * cos(acos(-1.0) * (t - 2) / 7.0);
    assert_true(fabs(rates[9] - 0.5) < 1e-15);
    check_run(s, 10, rates);
    /* so short that it begins on its way down: 0.75 steps up, of three */
    const bpt_schedule high = {.kind = &bpt_schedule_onecycle,
                               .base = 1,
                               .pct_start = 0.25,
                               .div_factor = 10,
                               .final_div_factor = 10};
    for (int t = 0; t < 3; t++) rates[t] = 0.505 + 0.495 * cos(acos(-1.0) * (t + 0.25) / 2.25);
    check_run(high, 3, rates);
    /* the first step is the top, and what is beyond the end stays there */
    const bpt_schedule top = {.kind = &bpt_schedule_onecycle,
                              .base = 1,
                              .pct_start = 0.25,
                              .div_factor = 10,
                              .final_div_factor = 10};
    for (int t = 0; t < 4; t++) rates[t] = 0.505 + 0.495 * cos(acos(-1.0) * t / 3.0);
    check_run(top, 4, rates);
    bpt_schedule ended = top;
    ended.total_epochs = 2;
    check_step(&ended, 2, 0.5, 0.01);
    check_step(&ended, 9, 0.5, 0.01);
    /* no way up */
    const bpt_schedule down = {
        .kind = &bpt_schedule_onecycle, .base = 1, .div_factor = 1, .final_div_factor = 1e300};
    check_run(down, 2, (double[]){0.5, 0});
}

static void test_polynomial(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = &bpt_schedule_polynomial, .base = 2, .power = 2};
    check_run(s, 4, (double[]){2, 1.125, 0.5, 0.125});
    const bpt_schedule linear = {.kind = &bpt_schedule_polynomial, .base = 1, .power = 1};
    check_run(linear, 4, (double[]){1, 0.75, 0.5, 0.25});
    const bpt_schedule flat = {.kind = &bpt_schedule_polynomial, .base = 3, .total_epochs = 2};
    check_rate(&flat, 2, 3); /* power 0 */
}

static void check_highest(const bpt_schedule *s, double epoch, double expected) {
    const double highest = bpt_schedule_highest(s, epoch);
    if (!(fabs(highest - expected) <= 1e-3 * s->base))
        fail_msg("up to epoch %g the highest rate is %.17g, not %.17g", epoch, highest, expected);
}

static void test_highest_so_far(void **state) {
    (void)state;
    bpt_schedule s = {
        .kind = &bpt_schedule_cosine, .base = 0.2, .total_epochs = 100, .warmup_epochs = 10};
    check_highest(&s, 0, 0);
    check_highest(&s, 5, 0.2 * 0.5 * (1 + cos(M_PI * 0.05)) / 2);
    const double top = 0.2 * (1 + cos(M_PI * 0.1)) / 2;
    check_highest(&s, 10, top);
    check_highest(&s, 60, top);
    check_highest(&s, 1000, top);
    s = (bpt_schedule){.kind = &bpt_schedule_onecycle,
                       .base = 0.2,
                       .total_epochs = 100,
                       .pct_start = 0.25,
                       .div_factor = 25,
                       .final_div_factor = 10};
    check_highest(&s, 12.5, bpt_schedule_rate(&s, 12.5, 0));
    check_highest(&s, 80, 0.2);
}

static void test_kinds(void **state) {
    (void)state;
    static const char *const names[] = {"constant", "step",     "multistep",
                                        "cosine",   "onecycle", "polynomial"};
    for (size_t i = 0; i < 6; i++) assert_string_equal(bpt_schedule_kind_at(i)->name, names[i]);
    assert_null(bpt_schedule_kind_at(6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_warmup_from_a_part),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_multistep),
        cmocka_unit_test(test_milestones_beyond_the_end),
        cmocka_unit_test(test_cosine),
        cmocka_unit_test(test_cosine_of_a_run),
        cmocka_unit_test(test_onecycle_of_a_run),
        cmocka_unit_test(test_polynomial),
        cmocka_unit_test(test_highest_so_far),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
