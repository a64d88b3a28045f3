/* Softmax cross-entropy on logits that are given: a network that passes its pixels on.
 *
 * ctest: cpu */
#include "base/random.h"
#include "tests/inner/net_fixture.h"
#include "tests/ref/ref.h"
#include "tests/ref/ref_learning.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20264 };

/* An identity layer: its bias gradient is the sum of the logits' gradients, and with a batch of one
 * that is the gradient of the logits itself. */
static net_fixture open_identity(int64_t classes, int64_t batch, double smoothing) {
    char text[160];
    snprintf(text, sizeof text,
             "{name: t, input: [%d, 1, 1], classes: %d, layers: [fc: {outputs: classes}]}",
             (int)classes, (int)classes);
    net_fixture f =
        net_open(text, batch, (net_options){.learning.label_smoothing = smoothing, .seed = SEED});
    for (size_t i = 0; i < f.n_weights; i++) f.weights[i] = 0.0f;
    for (int64_t k = 0; k < classes; k++) f.weights[k * classes + k] = 1.0f;
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    return f;
}

static void check_sample(net_fixture *f, int64_t classes) {
    double *x = ref_doubles(f->pixels, (size_t)classes), *ref = ref_zeros((size_t)classes);
    const double smoothing = bpt_network_learning(f->net).label_smoothing;
    const double loss = smoothing > 0.0
                            ? ref_smoothed_loss(1, classes, x, f->labels, smoothing, 4.0, ref)
                            : ref_softmax_loss(1, classes, x, f->labels, 4.0, ref);
    /* where p is about the target, the rounding of p is left */
    const double tiny = smoothing > 0.0 ? 2e-6 * smoothing / (double)classes : 1e-30;
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, 4.0f, &result));
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    if (!(fabs(result.loss_sum - loss) <= 1e-6 * fabs(loss) + 1e-12))
        fail_msg("%d classes: the loss is %.9g, not %.9g", (int)classes, result.loss_sum, loss);
    for (int64_t k = 0; k < classes; k++) {
        const double g = (double)gradient[classes * classes + k];
        if (!(fabs(g - ref[k]) <= 2e-6 * fabs(ref[k]) + tiny))
            fail_msg("%d classes: gradient %d is %.9g, not %.9g", (int)classes, (int)k, g, ref[k]);
    }
    free(gradient);
    free(ref);
    free(x);
}

/* Each digit counts, also of a sample that is learned: there p - 1 cancels if p was rounded. */
static void check_logits(double smoothing) {
    static const int64_t classes[] = {1, 2, 3, 10, 17, 100};
    static const float scales[] = {0.0f, 1e-3f, 1.0f, 4.0f, 20.0f};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        net_fixture f = open_identity(classes[i], 1, smoothing);
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, s);
            for (int64_t k = 0; k < classes[i]; k++)
                f.pixels[k] = scales[s] * bpt_random_normal(&r);
            for (int32_t label = 0; label < classes[i]; label += 1 + label) {
                f.labels[0] = label;
                check_sample(&f, classes[i]);
            }
        }
        net_close(&f);
    }
}

static void test_logits_small_and_large(void **state) {
    (void)state;
    check_logits(0.0);
}

/* The part that goes to all classes, in training and not in an evaluation. */
static void test_smoothed_labels(void **state) {
    (void)state;
    static const double smoothings[] = {1e-3, 0.1, 0.5, 1.0};
    for (size_t i = 0; i < 4; i++) check_logits(smoothings[i]);
    net_fixture plain = open_identity(5, 3, 0.0), smoothed = open_identity(5, 3, 0.1);
    bpt_batch_result a, b, trained;
    plain.labels[1] = -1;
    net_assert_ok(bpt_network_evaluate(plain.net, plain.pixels, plain.labels, &a));
    net_assert_ok(bpt_network_evaluate(smoothed.net, plain.pixels, plain.labels, &b));
    assert_memory_equal(&a.loss_sum, &b.loss_sum, sizeof a.loss_sum);
    net_assert_ok(bpt_network_gradient(smoothed.net, plain.pixels, plain.labels, 2, &trained));
    double *x = ref_doubles(plain.pixels, 15), *ref = ref_zeros(15);
    const double loss = ref_smoothed_loss(3, 5, x, plain.labels, 0.1, 2, ref);
    assert_true(fabs(trained.loss_sum - loss) <= 1e-6 * loss);
    assert_true(fabs(b.loss_sum - loss) > 1e-3 * loss);
    assert_int_equal(trained.n_samples, 2);
    free(x);
    free(ref);
    net_close(&plain);
    net_close(&smoothed);
}

static void test_logits_that_would_overflow(void **state) {
    (void)state;
    static const float pixels[] = {1e4f, -1e4f, 9998.0f, 3e38f, -3e38f, 0.0f};
    net_fixture f = open_identity(3, 2, 0.0);
    bpt_batch_result result;
    for (int i = 0; i < 6; i++) f.pixels[i] = pixels[i];
    f.labels[0] = 2;
    f.labels[1] = 0;
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
    assert_true(fabs(result.loss_sum - (log(1.0 + exp(-2.0)) + 2.0)) < 1e-6);
    assert_int_equal(result.n_correct, 1);
    net_close(&f);
}

/* Of equal logits the first wins. */
static void test_equal_logits(void **state) {
    (void)state;
    net_fixture f = open_identity(4, 4, 0.0);
    bpt_batch_result result;
    for (size_t i = 0; i < f.n_pixels; i++) f.pixels[i] = 0.5f;
    for (int i = 0; i < 4; i++) f.labels[i] = i;
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
    assert_int_equal(result.n_correct, 1);
    assert_true(fabs(result.loss_sum - 4.0 * log(4.0)) < 1e-12);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_small_and_large),
        cmocka_unit_test(test_smoothed_labels),
        cmocka_unit_test(test_logits_that_would_overflow),
        cmocka_unit_test(test_equal_logits),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
