/* The momentum of all: what is read from how far the global weights came is the mean of the
 * workers' momenta, and in the long run a gradient counts as many times as the gain says. */
#include "outer/rules/shared_momentum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 32 };

/* One weight of a worker, as sgd moves it (inner/optimizers/sgd.c). */
typedef struct {
    double w, v;
} worker;

static void step(const bpt_shared_momentum *s, worker *x, double gradient, double rate) {
    x->v = s->momentum * x->v + gradient;
    x->w -= rate * (s->nesterov ? gradient + s->momentum * x->v : x->v);
}

/* Workers that have a gradient each, the same in all steps, merge after so many.
 * @return how far the global weight comes in a round, in the end, over that of momentum alone */
static double gain_of(const bpt_shared_momentum *s, uint32_t m, uint64_t n,
                      const double *gradients) {
    const double rate = 0.25;
    double global = 0, moved = 0, mean = 0;
    double v[4] = {0};
    for (uint32_t j = 0; j < m; j++) mean += gradients[j] / m;
    for (int round = 0; round < 4000; round++) {
        const double before = global;
        for (uint32_t j = 0; j < m; j++) {
            worker x = {before, v[j]};
            for (uint64_t k = 0; k < n; k++) step(s, &x, gradients[j], rate);
            global += (x.w - before) / m;
            v[j] = x.v;
        }
        moved = before - global;
        const bpt_movement all = {.steps = n, .samples = n * m * BATCH, .rate = rate};
        const double scale = bpt_shared_momentum_scale(s, &all);
        for (uint32_t j = 0; scale > 0 && j < m; j++) v[j] = scale * moved;
    }
    return moved / (rate * (double)n * mean / (1 - s->momentum));
}

static void test_a_gradient_counts_gain_times(void **state) {
    (void)state;
    const double gradients[] = {0.5, -0.25, 1.0, 0.125};
    const double gains[] = {0, 1, 1.5, 2};
    const uint64_t periods[] = {1, 2, 4, 8};
    for (int nesterov = 0; nesterov < 2; nesterov++)
        for (size_t g = 0; g < 4; g++)
            for (size_t p = 0; p < 4; p++) {
                const bpt_shared_momentum s = {.gain = gains[g],
                                               .momentum = 0.9,
                                               .nesterov = nesterov,
                                               .step_samples = 4 * BATCH};
                const double gain = gain_of(&s, 4, periods[p], gradients);
                const double wanted = gains[g] == 0 ? 1 : gains[g];
                if (!(fabs(gain - wanted) <= 1e-9 * wanted))
                    fail_msg("gain %g, %d steps apart, nesterov %d: %.12g", gains[g],
                             (int)periods[p], nesterov, gain);
            }
}

static void test_it_does_not_begin_faster_than_gain_times(void **state) {
    (void)state;
    const bpt_shared_momentum s = {
        .gain = 2, .momentum = 0.9, .nesterov = true, .step_samples = BATCH};
    double last = 1;
    for (uint64_t n = 1; n <= 1000; n++) {
        const double kappa = bpt_shared_momentum_kappa(&s, s.gain, n);
        if (!(kappa >= last && kappa <= 2)) fail_msg("kappa %g after %d steps", kappa, (int)n);
        last = kappa;
    }
    assert_true(last == 2);
}

/* Beyond the bound the gain is that of a kappa of gain. */
static void test_far_apart_the_gain_is_less(void **state) {
    (void)state;
    const double gradients[] = {0.5, -0.25, 1.0, 0.125};
    const bpt_shared_momentum s = {.gain = 2, .momentum = 0.9, .step_samples = 4 * BATCH};
    const double a = 0.9 * (1 - pow(0.9, 100)) / (0.1 * 100);
    assert_true(bpt_shared_momentum_kappa(&s, s.gain, 100) == 2);
    assert_true(fabs(gain_of(&s, 4, 100, gradients) - (1 - a) / (1 - 2 * a)) < 1e-9);
}

/* One fast worker of four makes more steps than the mean: what all moved is told per step of all.
 */
static void test_steps_of_all_count_and_not_those_of_the_worker(void **state) {
    (void)state;
    const bpt_shared_momentum s = {
        .gain = 1, .momentum = 0.5, .step_samples = 4 * BATCH}; /* kappa is 1 */
    const bpt_movement moved = {.steps = 8, .samples = (8 + 4 + 2 + 2) * BATCH, .rate = 0.125};
    assert_true(fabs(bpt_shared_momentum_scale(&s, &moved) - 1 / (0.125 * 4)) < 1e-12);
    const float before[] = {1, -2}, now[] = {0.5f, -2.25f};
    float v[2];
    bpt_shared_momentum_set(v, before, now, 2, 2);
    assert_true(v[0] == 1 && v[1] == 0.5f);
}

/* Four of which one has nearly everything follow nobody; a gain that was named stays. */
static void test_unequal_workers_are_worth_less(void **state) {
    (void)state;
    const bpt_shared_momentum s = {
        .gain = 2, .ranks = 4, .momentum = 0.5, .step_samples = 4 * BATCH};
    const bpt_shared_momentum named = {.gain = 2, .momentum = 0.5, .step_samples = 4 * BATCH};
    assert_true(bpt_shared_momentum_gain(&s, 4) == 2);
    assert_true(fabs(bpt_shared_momentum_gain(&s, 2.25) - 1.5) < 1e-12);
    assert_true(bpt_shared_momentum_gain(&s, 1.5) > 0);
    assert_true(bpt_shared_momentum_gain(&s, 1.49) == 0);
    assert_true(bpt_shared_momentum_gain(&named, 1.1) == 2);
    bpt_movement moved = {4, 16 * BATCH, 0.1, 1.1};
    assert_true(bpt_shared_momentum_scale(&s, &moved) == 0);
    assert_true(bpt_shared_momentum_scale(&named, &moved) > 0);
    moved.equal_ranks = 2.25; /* with a gain of 1.5 kappa is (0.5 + A) / (1.5 A) */
    const double a = (0.5 + 0.25 + 0.125 + 0.0625) / 4, kappa = (0.5 + a) / (1.5 * a);
    const double wanted = (kappa < 1.5 ? kappa : 1.5) / (0.1 * 4);
    assert_true(fabs(bpt_shared_momentum_scale(&s, &moved) - wanted) < 1e-9);
}

static void test_what_tells_nothing_leaves_the_momentum(void **state) {
    (void)state;
    const bpt_shared_momentum
        s = {.gain = 2, .momentum = 0.9, .nesterov = true, .step_samples = BATCH},
        none = {.gain = 0, .momentum = 0.9, .nesterov = true, .step_samples = BATCH};
    const bpt_movement moved = {4, 4 * BATCH, 0.1, 1}, idle = {0, 4 * BATCH, 0.1, 1},
                       unmoved = {4, 0, 0.1, 1}, still = {4, 4 * BATCH, 0, 1},
                       nearly = {4, 4 * BATCH, 1e-40, 1};
    assert_true(bpt_shared_momentum_scale(&s, &moved) > 0);
    assert_true(bpt_shared_momentum_scale(&none, &moved) == 0);
    assert_true(bpt_shared_momentum_scale(&s, &idle) == 0);
    assert_true(bpt_shared_momentum_scale(&s, &unmoved) == 0);
    assert_true(bpt_shared_momentum_scale(&s, &still) == 0);
    assert_true(bpt_shared_momentum_scale(&s, &nearly) == 0); /* more than a float: inf * 0 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gradient_counts_gain_times),
        cmocka_unit_test(test_it_does_not_begin_faster_than_gain_times),
        cmocka_unit_test(test_far_apart_the_gain_is_less),
        cmocka_unit_test(test_steps_of_all_count_and_not_those_of_the_worker),
        cmocka_unit_test(test_unequal_workers_are_worth_less),
        cmocka_unit_test(test_what_tells_nothing_leaves_the_momentum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
