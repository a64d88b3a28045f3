/* Learning rates at points that can be worked out by hand. */
#include "inner/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check_step(const bpt_schedule *s, double epoch, double step_epochs, double expected) {
    const double rate = bpt_schedule_rate(s, epoch, step_epochs);
    if (!(fabs(rate - expected) <= 1e-15))
        fail_msg("at epoch %g the rate is %.17g, not %.17g", epoch, rate, expected);
}

/* Of a step that takes no time. */
static void check_rate(const bpt_schedule *s, double epoch, double expected) {
    check_step(s, epoch, 0, expected);
}

static void test_constant(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = BPT_SCHEDULE_CONSTANT, .base = 0.1, .total_epochs = 10};
    check_rate(&s, 0, 0.1);
    check_rate(&s, 3.7, 0.1);
    check_rate(&s, 10, 0.1);
    check_rate(&s, 1e9, 0.1);
}

static void test_warmup(void **state) {
    (void)state;
    const bpt_schedule s = {
        .kind = BPT_SCHEDULE_CONSTANT, .base = 0.4, .total_epochs = 10, .warmup_epochs = 2};
    check_rate(&s, 0, 0);
    check_rate(&s, 0.5, 0.1);
    check_rate(&s, 1, 0.2);
    check_rate(&s, 2, 0.4);
    check_rate(&s, 2.5, 0.4);
    /* a warm-up longer than the run stays where the run ends */
    const bpt_schedule longer = {
        .kind = BPT_SCHEDULE_CONSTANT, .base = 0.4, .total_epochs = 2, .warmup_epochs = 8};
    check_rate(&longer, 5, 0.1);
}

static void test_steps(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = BPT_SCHEDULE_STEP,
                            .base = 1,
                            .total_epochs = 20,
                            .warmup_epochs = 4,
                            .factor = 0.5,
                            .at_epochs = {2, 14, 18},
                            .n_steps = 3};
    check_rate(&s, 1, 0.25);
    check_rate(&s, 2, 0.25);
    check_rate(&s, 3, 0.375); /* warm-up multiplies the rest */
    check_rate(&s, 4, 0.5);
    check_step(&s, 13.5, 0.5, 0.5); /* the step that ends here is the last before the boundary */
    check_rate(&s, 14, 0.25);
    check_rate(&s, 18.5, 0.125);
    check_rate(&s, 99, 0.125);
}

static void test_steps_beyond_the_end(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = BPT_SCHEDULE_STEP,
                            .base = 1,
                            .total_epochs = 5,
                            .factor = 0.1,
                            .at_epochs = {8},
                            .n_steps = 1};
    check_rate(&s, 9, 1); /* epoch 9 counts as epoch 5 */
}

static void test_cosine(void **state) {
    (void)state;
    const bpt_schedule s = {.kind = BPT_SCHEDULE_COSINE, .base = 0.2, .total_epochs = 12};
    check_rate(&s, 0, 0.2);
    check_rate(&s, 4, 0.15); /* cos 60 degrees = 1/2 */
    check_rate(&s, 6, 0.1);
    check_rate(&s, 8, 0.05);
    check_rate(&s, 12, 0);
    check_rate(&s, 13, 0);
    const bpt_schedule warm = {
        .kind = BPT_SCHEDULE_COSINE, .base = 0.2, .total_epochs = 12, .warmup_epochs = 8};
    check_rate(&warm, 4, 0.075);
    check_rate(&warm, 8, 0.05);
}

/* A run of four steps, as in SGDR and elsewhere: step t of T has the rate of t / T. */
static void test_steps_of_a_run(void **state) {
    (void)state;
    const double rates[] = {1, 0.85355339059327373, 0.5, 0.14644660940672627};
    const bpt_schedule s = {.kind = BPT_SCHEDULE_COSINE, .base = 1, .total_epochs = 2};
    for (int t = 0; t < 4; t++) check_step(&s, t * 0.5, 0.5, rates[t]);
    /* neither the first step of a warm-up nor the last of a run is wasted */
    const bpt_schedule warm = {
        .kind = BPT_SCHEDULE_COSINE, .base = 1, .total_epochs = 2, .warmup_epochs = 1};
    check_step(&warm, 0, 0.5, 0.5);
    for (int t = 1; t < 4; t++) check_step(&warm, t * 0.5, 0.5, rates[t]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant), cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_steps),    cmocka_unit_test(test_steps_beyond_the_end),
        cmocka_unit_test(test_cosine),   cmocka_unit_test(test_steps_of_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
