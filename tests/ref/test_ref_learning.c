/* The references of optimisers, clipping, smoothed and mixed labels, with values worked out by hand
 * from the formulas in PyTorch's documentation and in the papers. */
#include "tests/ref/ref_learning.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check(const double *x, const double *expected, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] - expected[i]) <= 1e-12))
            fail_msg("value %zu is %.17g, not %.17g", i, x[i], expected[i]);
}

static void test_nesterov(void **state) {
    (void)state;
    double w[] = {1, 2}, v[] = {0, 0};
    ref_nesterov_update(2, w, v, (double[]){0.5, 0}, 0.1, 0.9, 0.5);
    check(v, (double[]){1, 1}, 2); /* 0.5 + 0.5 * 1, 0.5 * 2 */
    check(w, (double[]){0.81, 1.81}, 2);
    ref_nesterov_update(2, w, v, (double[]){1, 0}, 0.1, 0.9, 0);
    check(v, (double[]){1.9, 0.9}, 2);
    check(w, (double[]){0.81 - 0.1 * 2.71, 1.81 - 0.1 * 0.81}, 2);
}

/* The first step has the rate's length whatever the gradient is: that is the bias correction. */
static void test_adamw(void **state) {
    (void)state;
    const bpt_learning l = {.beta1 = 0.9, .beta2 = 0.999, .decay = 0.01};
    double w[] = {1}, m[] = {0}, v[] = {0};
    ref_adamw_update(1, w, m, v, (double[]){0.5}, 1, 0.1, &l);
    check(w, (double[]){0.999 - 0.1}, 1);
    check(m, (double[]){0.05}, 1);
    check(v, (double[]){0.00025}, 1);
    ref_adamw_update(1, w, m, v, (double[]){-0.25}, 2, 0.1, &l);
    check(m, (double[]){0.02}, 1);       /* 0.9 * 0.05 - 0.1 * 0.25 */
    check(v, (double[]){0.00031225}, 1); /* 0.999 * 0.00025 + 0.001 * 0.0625 */
    check(w, (double[]){0.898101 - 0.1 * (0.02 / 0.19) / sqrt(0.00031225 / 0.001999)}, 1);
    const bpt_learning large_eps = {.beta1 = 0.5, .beta2 = 0.5, .eps = 3};
    double x[] = {0}, mean[] = {0}, square[] = {0};
    ref_adamw_update(1, x, mean, square, (double[]){2}, 1, 1, &large_eps);
    check(x, (double[]){-2.0 / 5.0}, 1); /* eps is added to the root */
}

static void test_lars(void **state) {
    (void)state;
    const bpt_learning l = {.momentum = 0.9, .decay = 0.2, .eta = 0.1};
    double w[] = {3, 4}, v[] = {0, 0};
    const double g[] = {0.6, 0.8};
    ref_lars_update(2, w, v, g, 1, 0.5, &l); /* norms 5 and 1: trust 0.1 * 5 / (1 + 0.2 * 5) */
    check(v, (double[]){0.25 * 1.2, 0.25 * 1.6}, 2);
    check(w, (double[]){2.85, 3.8}, 2);
    ref_lars_update(2, w, v, g, 1, 0.5, &l); /* norms 4.75 and 1 */
    const double trust = 0.1 * 4.75 / 1.95;
    check(v, (double[]){0.27 + trust * 1.17, 0.36 + trust * 1.56}, 2);
    double zero[] = {0}, still[] = {0};
    ref_lars_update(1, zero, still, (double[]){2}, 2, 0.5, &l);
    check(zero, (double[]){-1}, 1); /* weights of norm 0: trust 1 */
}

/* A weight, a bias and a running mean. */
static void test_clipping(void **state) {
    (void)state;
    bpt_segments s = {0};
    const int64_t dims[] = {2, 1};
    assert_int_equal(bpt_segments_add(&s, "a.weight", dims, 2, (bpt_segment_role){.decays = true}),
                     BPT_OK);
    assert_int_equal(bpt_segments_add(&s, "a.bias", dims + 1, 1, (bpt_segment_role){0}), BPT_OK);
    assert_int_equal(
        bpt_segments_add(&s, "a.mean", dims + 1, 1, (bpt_segment_role){.running = 0.5f}), BPT_OK);
    const double g[] = {2, 3, 6, 100}; /* norm of the first three: 7 */
    const bpt_learning l = {.decay = 1, .clip_norm = 3.5};
    double w[] = {1, 0, 1, 10}, a[4] = {0}, b[4] = {0};
    double *const states[] = {a, b};
    ref_learning_update(&s, &l, 1, 0.5, w, states, g);
    const double scale = 3.5 / (7 + 1e-6);
    check(w, (double[]){1 - 0.5 * (2 * scale + 1), -0.5 * 3 * scale, 1 - 0.5 * 6 * scale, 10 - 50},
          4);
    const bpt_learning loose = {.clip_norm = 7.1};
    double x[] = {0, 0, 0, 0}, c[4] = {0};
    ref_learning_update(&s, &loose, 1, 1, x, (double *const[]){c, b}, g);
    check(x, (double[]){-2, -3, -6, -50}, 4); /* below the bound nothing is clipped */
    bpt_segments_clear(&s);
}

static void test_smoothing(void **state) {
    (void)state;
    /* softmax (1/4, 3/4), target (0.1, 0.9); the second sample is not there */
    const double logits[] = {0, log(3.0), 5, 6};
    const int32_t labels[] = {1, -1};
    double dlogits[4];
    const double loss = ref_smoothed_loss(2, 2, logits, labels, 0.2, 4.0, dlogits);
    check(&loss, (double[]){0.1 * log(4.0) + 0.9 * log(4.0 / 3.0)}, 1);
    check(dlogits, (double[]){0.15 / 4, -0.15 / 4, 0, 0}, 4);
}

/* Three quarters of label 1 and one of label 0, smoothed by 0.2: 0.7 and 0.3. */
static void test_mixing(void **state) {
    (void)state;
    const double logits[] = {0, log(3.0), 5, 6, 0, log(3.0)};
    const int32_t labels[] = {1, -1, 1}, seconds[] = {0, 0, -1};
    const float parts[] = {0.25f, 0.5f, 0.25f};
    double dlogits[6];
    const double loss = ref_mixed_loss(2, 2, logits, labels, seconds, parts, 0.2, 4.0, dlogits);
    check(&loss, (double[]){0.3 * log(4.0) + 0.7 * log(4.0 / 3.0)}, 1);
    check(dlogits, (double[]){-0.05 / 4, 0.05 / 4, 0, 0}, 4);
    const double alone =
        ref_mixed_loss(1, 2, logits + 4, labels + 2, seconds + 2, parts + 2, 0.2, 4.0, dlogits + 4);
    check(&alone, (double[]){0.1 * log(4.0) + 0.9 * log(4.0 / 3.0)}, 1);
    check(dlogits + 4, (double[]){0.15 / 4, -0.15 / 4}, 2);
}

/* The gradient is that of the loss. */
static void test_mixing_by_differences(void **state) {
    (void)state;
    const int32_t labels[] = {2, 0}, seconds[] = {3, 0};
    const float parts[] = {0.3f, 0.9f};
    double logits[] = {0.5, -1, 2, 0.1, 1, -0.3, 0, 3}, dlogits[8], ignored[8];
    ref_mixed_loss(2, 4, logits, labels, seconds, parts, 0.1, 1.0, dlogits);
    for (int i = 0; i < 8; i++) {
        const double x = logits[i], step = 1e-4;
        logits[i] = x + step;
        const double above =
            ref_mixed_loss(2, 4, logits, labels, seconds, parts, 0.1, 1.0, ignored);
        logits[i] = x - step;
        const double below =
            ref_mixed_loss(2, 4, logits, labels, seconds, parts, 0.1, 1.0, ignored);
        logits[i] = x;
        assert_true(fabs((above - below) / (2 * step) - dlogits[i]) < 1e-8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesterov),
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_lars),
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_smoothing),
        cmocka_unit_test(test_mixing),
        cmocka_unit_test(test_mixing_by_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
