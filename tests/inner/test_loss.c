/* Softmax cross-entropy on logits that are given: a network that passes its pixels on.
 *
 * ctest: cpu */
#include "base/random.h"
#include "tests/base/near.h"
#include "tests/inner/net_fixture.h"
#include "tests/ref/ref.h"
#include "tests/ref/ref_learning.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* What a batch of two classes a sample is checked with. */
typedef struct {
    int32_t *seconds;
    float *parts;
} mixture;

static void expect_gradients(net_fixture *f, int64_t classes, const double *ref, double smallest) {
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS); /* the biases': sums over samples */
    for (int64_t k = 0; k < classes; k++) {
        const double g = (double)gradient[classes * classes + k];
        double sum = 0.0;
        for (int64_t i = 0; i < f->batch; i++) sum += ref[i * classes + k];
        if (!(fabs(g - sum) <= 2e-6 * fabs(sum) + smallest))
            fail_msg("%d classes: gradient %d is %.9g, not %.9g", (int)classes, (int)k, g, sum);
    }
    free(gradient);
}

static bpt_batch_result check_mixed(net_fixture *f, int64_t classes, const mixture *m) {
    const size_t n = (size_t)(f->batch * classes);
    double *x = ref_doubles(f->pixels, n), *ref = ref_zeros(n);
    bpt_batch_result result;
    const double smoothing = bpt_network_learning(f->net).label_smoothing;
    const double loss =
        ref_mixed_loss(f->batch, classes, x, f->labels, m->seconds, m->parts, smoothing, 4.0, ref);
    bpt_network_set_second(f->net, m->seconds, m->parts);
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, 4.0f, &result));
    if (!(fabs(result.loss_sum - loss) <= 1e-6 * fabs(loss) + 1e-12))
        fail_msg("%d classes: the loss is %.9g, not %.9g", (int)classes, result.loss_sum, loss);
    expect_gradients(f, classes, ref, 5e-8 * (double)f->batch);
    free(ref);
    free(x);
    return result;
}

/* One sample of each of these: parts from end to end, both classes the same, and no second one. */
static void test_mixed_labels(void **state) {
    (void)state;
    static const float parts[] = {0.0f, 1e-4f, 0.25f, 0.5f, 0.7f, 1.0f};
    static const int64_t classes[] = {2, 3, 10, 17};
    for (size_t c = 0; c < 4; c++)
        for (int smoothed = 0; smoothed < 2; smoothed++) {
            net_fixture f = open_identity(classes[c], 1, smoothed ? 0.1 : 0.0);
            for (int32_t second = -1; second < classes[c]; second++)
                for (size_t p = 0; p < 6; p++) {
                    float part = parts[p];
                    f.labels[0] = 1;
                    check_mixed(&f, classes[c], &(mixture){&second, &part});
                }
            net_close(&f);
        }
}

/* Batches of several tiles: each sample has its own second label; those that are not there have
 * neither. */
static void test_mixed_batches(void **state) {
    (void)state;
    enum { BATCH = 37, CLASSES = 5 };
    int32_t seconds[BATCH];
    float parts[BATCH];
    net_fixture f = open_identity(CLASSES, BATCH, 0.0);
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 99);
    uint64_t n_there = 0, n_hits = 0;
    for (int i = 0; i < BATCH; i++) {
        const float *x = f.pixels + (size_t)i * CLASSES;
        seconds[i] = (int32_t)bpt_random_below(&r, CLASSES + 1) - 1;
        parts[i] = bpt_random_uniform(&r);
        if (i % 9 == 4) f.labels[i] = -1;
        int largest = 0;
        for (int k = 1; k < CLASSES; k++)
            if (x[k] > x[largest]) largest = k;
        n_there += f.labels[i] >= 0;
        const bool of_second = seconds[i] >= 0 && parts[i] > 0.5f;
        n_hits += f.labels[i] >= 0 && largest == (of_second ? seconds[i] : f.labels[i]);
    }
    const bpt_batch_result result = check_mixed(&f, CLASSES, &(mixture){seconds, parts});
    assert_int_equal(result.n_samples, n_there);
    assert_int_equal(result.n_correct, n_hits);
    net_close(&f);
}

/* They count for one step, not for the next, and not in an evaluation. */
static void test_second_labels_are_of_one_batch(void **state) {
    (void)state;
    const int32_t seconds[] = {3, 0, 2}, none[] = {-1, -1, -1}, wrong[] = {0, 5, 0};
    const float parts[] = {0.4f, 0.6f, 0.5f};
    net_fixture f = open_identity(5, 3, 0.0);
    bpt_batch_result plain, mixed, r;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 3, &plain));
    float *expected = net_vector(&f, BPT_VECTOR_GRADIENTS);
    bpt_network_set_second(f.net, seconds, parts);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 3, &mixed));
    assert_true(fabs(mixed.loss_sum - plain.loss_sum) > 1e-3);
    for (int turn = 0; turn < 2; turn++) {
        if (turn == 1) bpt_network_set_second(f.net, none, parts);
        net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 3, &r));
        assert_memory_equal(&r, &plain, sizeof r);
        float *found = net_vector(&f, BPT_VECTOR_GRADIENTS);
        assert_memory_equal(found, expected, f.n_weights * sizeof *found);
        free(found);
    }
    bpt_network_set_second(f.net, seconds, parts);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &r));
    assert_memory_equal(&r, &plain, sizeof r);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 3, &r));
    assert_memory_equal(&r, &plain, sizeof r);
    bpt_network_set_second(f.net, wrong, parts);
    assert_int_equal(bpt_network_gradient(f.net, f.pixels, f.labels, 3, &r), BPT_EDATA);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 3, &r));
    free(expected);
    net_close(&f);
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
    for (int32_t label = 0; label < 4; label++) {
        for (int i = 0; i < 4; i++) f.labels[i] = label;
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
        assert_int_equal(result.n_correct, label == 0 ? 4 : 0);
        assert_true(fabs(result.loss_sum - 4.0 * log(4.0)) < 1e-12);
    }
    net_close(&f);
}

/* Of as much of the one class as of the other, the first counts. */
static void test_hits_of_halves(void **state) {
    (void)state;
    const int32_t seconds[] = {1, 1, 1};
    const float parts[] = {0.5f, 0.5000001f, 0.25f};
    net_fixture f = open_identity(2, 3, 0.0);
    bpt_batch_result result;
    for (int i = 0; i < 3; i++) {
        f.pixels[2 * i] = 1.0f; /* all are taken for class 0 */
        f.pixels[2 * i + 1] = 0.0f;
        f.labels[i] = 0;
    }
    bpt_network_set_second(f.net, seconds, parts);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 3, &result));
    assert_int_equal(result.n_correct, 2);
    net_close(&f);
}

static const bpt_answer untold = {-7, -7.0, -7.0};

static void assert_untold(const bpt_answer *a) {
    assert_int_equal(a->predicted, untold.predicted);
    assert_near(a->probability, untold.probability, 0.0);
    assert_near(a->label_probability, untold.label_probability, 0.0);
}

/* @return the label's probability */
static double check_answer(const float *x, int classes, int32_t label, const bpt_answer *a) {
    int32_t largest = 0;
    double sum = 0.0;
    for (int32_t k = 1; k < classes; k++)
        if (x[k] > x[largest]) largest = k;
    for (int k = 0; k < classes; k++) sum += exp((double)x[k] - (double)x[largest]);
    const double p = exp((double)x[label] - (double)x[largest]) / sum;
    assert_int_equal(a->predicted, largest);
    assert_near(a->probability, 1.0 / sum, 1e-6 / sum);
    assert_near(a->label_probability, p, 1e-6 * p);
    if (largest == label) assert_near(a->probability, a->label_probability, 0.0);
    return p;
}

/* For logits from equal ones to such that no float has the label's probability. Nothing is said of
 * samples that are not there, nor in a step that learns. */
static void test_answers(void **state) {
    (void)state;
    enum { BATCH = 37, CLASSES = 5 };
    static const float scales[] = {0.0f, 1.0f, 20.0f, 100.0f};
    net_fixture f = open_identity(CLASSES, BATCH, 0.0);
    bpt_answer answers[BATCH];
    bpt_batch_result result;
    double least = 1.0;
    for (int i = 4; i < BATCH; i += 9) f.labels[i] = -1;
    for (int i = 0; i < BATCH; i++) answers[i] = untold;
    bpt_network_tell_answers(f.net, answers);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 4, &result));
    for (int i = 0; i < BATCH; i++) assert_untold(&answers[i]);
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 200 + s);
        for (size_t i = 0; i < f.n_pixels; i++) f.pixels[i] = scales[s] * bpt_random_normal(&r);
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
        for (int i = 0; i < BATCH; i++) {
            if (f.labels[i] < 0)
                assert_untold(&answers[i]);
            else
                least = fmin(least, check_answer(f.pixels + (size_t)i * CLASSES, CLASSES,
                                                 f.labels[i], &answers[i]));
        }
    }
    assert_true(least > 0.0 && least < 1e-40);
    bpt_network_tell_answers(f.net, NULL);
    answers[0] = untold;
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
    assert_untold(&answers[0]);
    net_close(&f);
}

/* Beside which the logarithm of the sum would be lost: several classes would be certain. */
static void test_equal_large_logits(void **state) {
    (void)state;
    enum { BATCH = 2, CLASSES = 4 };
    static const float logits[BATCH][CLASSES] = {
        {3e38f, -3e38f, 3e38f, 3e38f},
        {1e20f, 1e20f, 0.0f, 1.0f},
    };
    static const double n_largest[BATCH] = {3.0, 2.0};
    net_fixture f = open_identity(CLASSES, BATCH, 0.0);
    bpt_answer answers[BATCH];
    bpt_batch_result result;
    memcpy(f.pixels, logits, sizeof logits);
    f.labels[0] = 2;
    f.labels[1] = 1;
    bpt_network_tell_answers(f.net, answers);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
    assert_near(result.loss_sum, log(3.0) + log(2.0), 1e-12);
    for (int i = 0; i < BATCH; i++) {
        assert_near(answers[i].probability, 1.0 / n_largest[i], 1e-12);
        assert_near(answers[i].label_probability, 1.0 / n_largest[i], 1e-12);
    }
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_small_and_large),
        cmocka_unit_test(test_smoothed_labels),
        cmocka_unit_test(test_mixed_labels),
        cmocka_unit_test(test_mixed_batches),
        cmocka_unit_test(test_second_labels_are_of_one_batch),
        cmocka_unit_test(test_logits_that_would_overflow),
        cmocka_unit_test(test_equal_logits),
        cmocka_unit_test(test_hits_of_halves),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_equal_large_logits),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
