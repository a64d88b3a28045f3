/* What the engine computes for whole models: logits, loss and every gradient, against loops in
 * double precision. Against differences: test_differences.c.
 *
 * ctest: cpu TIMEOUT=120 */
#include "tests/inner/gradient_cases.h"
#include "tests/inner/net_values.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const int64_t batches[] = {1, 2, 3, 5, 16, 23, 64};

static void check_loss(const bpt_batch_result *result, const ref_result *ref) {
    assert_int_equal(result->n_samples, ref->n_samples);
    assert_int_equal(result->n_correct, ref->n_correct);
    if (!(fabs(result->loss_sum - ref->loss_sum) <= 1e-5 * (fabs(ref->loss_sum) + 1.0)))
        fail_msg("the loss is %.9g, not %.9g", result->loss_sum, ref->loss_sum);
}

static void check_logits(const net_fixture *f, const double *ref) {
    const size_t n = (size_t)(f->batch * f->model->classes);
    float *logits = net_logits(f);
    const double error = ref_error(logits, ref, n);
    if (!(error <= 1e-5)) fail_msg("batch %d: the logits are off by %.2g", (int)f->batch, error);
    free(logits);
}

static void check_against_reference(const net_fixture *f) {
    double *ref_logits = ref_zeros((size_t)(f->batch * f->model->classes));
    double *ref_gradient = ref_zeros(f->n_weights), *terms = ref_zeros(f->n_weights);
    const float denominator = (float)f->batch;
    const ref_result ref = ref_network_f32(f->model, f->batch, f->pixels, f->labels, denominator,
                                           f->weights, ref_logits, ref_gradient, terms);
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, denominator, &result));
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    check_loss(&result, &ref);
    gradient_check(f, gradient, ref_gradient, terms);
    check_logits(f, ref_logits);
    free(gradient);
    free(terms);
    free(ref_gradient);
    free(ref_logits);
}

static void test_reference(void **state) {
    const gradient_case *c = *state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        if (c->large && batches[i] > 16) break;
        net_fixture f = gradient_open(c, batches[i]);
        check_against_reference(&f);
        net_close(&f);
    }
}

/* Samples without a label count for nothing, whatever their pixels; here they are a whole tile and
 * parts of others. */
static void test_ignored_labels(void **state) {
    net_fixture f = gradient_open(*state, 23);
    const size_t sample = f.n_pixels / (size_t)f.batch;
    for (int i = 0; i < 23; i++)
        if (i < 6 || i % 3 == 1) f.labels[i] = -1;
    check_against_reference(&f);
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
    bpt_batch_result before, after;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 23.0f, &before));
    for (size_t i = 0; i < f.n_pixels; i++)
        if (f.labels[i / sample] == -1) f.pixels[i] = 3.0f - f.pixels[i];
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 23.0f, &after));
    float *again = net_vector(&f, BPT_VECTOR_GRADIENTS);
    net_assert_same_bits("gradient", gradient, again, f.n_weights);
    assert_true(before.loss_sum == after.loss_sum);
    assert_int_equal(before.n_correct, after.n_correct);
    assert_int_equal(after.n_samples, 11);

    for (int i = 0; i < 23; i++) f.labels[i] = -1;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 23.0f, &after));
    net_assert_ok(bpt_network_get(f.net, BPT_VECTOR_GRADIENTS, again));
    for (size_t i = 0; i < f.n_weights; i++) assert_true(again[i] == 0.0f);
    assert_true(after.loss_sum == 0.0);
    assert_int_equal(after.n_correct + after.n_samples, 0);
    free(again);
    free(gradient);
    net_close(&f);
}

int main(void) {
    const gradient_sort sorts[] = {
        {"reference", test_reference},
        {"ignored labels", test_ignored_labels},
    };
    return gradient_run("gradients", sorts, sizeof sorts / sizeof *sorts);
}
