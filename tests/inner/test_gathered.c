/* Gradients of several batches in one update.
 *
 * ctest: cpu TIMEOUT=60 */
#include "tests/inner/net_fixture.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20270 };

/* Sums in another order. */
static const double RTOL = 1e-6;

static const char model[] =
    "{name: t, input: [3, 6, 6], classes: 5, layers: ["
    "conv: {name: a, filters: 17, kernel: 3, pad: 1}, relu, "
    "conv: {name: b, filters: 32, kernel: 3, pad: 1}, relu: {name: r}, "
    "fc: {name: c, outputs: 70}, relu, dropout: {name: d}, fc: {name: e, outputs: classes}]}";

static const char plain_model[] =
    "{name: t, input: [3, 6, 6], classes: 5, layers: ["
    "conv: {name: a, filters: 17, kernel: 3, pad: 1}, relu, "
    "conv: {name: b, filters: 32, kernel: 3, pad: 1}, relu: {name: r}, "
    "fc: {name: c, outputs: 70}, relu, fc: {name: e, outputs: classes}]}";

static net_options gathering(bool gathers) {
    return (net_options){
        .n_workers = 2, .seed = SEED, .learning = {.momentum = 0.9, .gathers = gathers}};
}

/* Lets @p f have samples [first, first + f->batch) of @p all. */
static void take_samples(net_fixture *f, const net_fixture *all, int64_t first) {
    const size_t sample = f->n_pixels / (size_t)f->batch;
    memcpy(f->pixels, all->pixels + (size_t)first * sample, f->n_pixels * sizeof *f->pixels);
    memcpy(f->labels, all->labels + first, (size_t)f->batch * sizeof *f->labels);
}

static void check_near(const bpt_segments *s, const float *x, const float *expected, double rtol) {
    const char *name = "";
    double *ref = ref_doubles(expected, s->n_elements);
    const double error = ref_segments_error(s, x, ref, &name);
    if (!(error <= rtol)) fail_msg("%s is off by %.2g", name, error);
    free(ref);
}

static void gradient(net_fixture *f, float denominator) {
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, denominator, &result));
}

/* ---- gathering ---- */

static void test_two_batches_are_one(void **state) {
    (void)state;
    net_fixture all = net_open(plain_model, 21, gathering(false));
    net_fixture part = net_open(plain_model, 7, gathering(true));
    for (int update = 0; update < 3; update++) {
        gradient(&all, 21.0f);
        for (int64_t i = 0; i < 3; i++) {
            take_samples(&part, &all, 7 * i);
            gradient(&part, 21.0f);
        }
        float *expected = net_vector(&all, BPT_VECTOR_GRADIENTS);
        float *sum = net_vector(&part, BPT_VECTOR_GRADIENTS);
        check_near(&all.model->segments, sum, expected, RTOL);
        net_assert_ok(bpt_network_apply(all.net, 0.05f));
        net_assert_ok(bpt_network_apply(part.net, 0.05f));
        free(sum);
        free(expected);
        float *weights = net_vector(&all, BPT_VECTOR_WEIGHTS);
        float *others = net_vector(&part, BPT_VECTOR_WEIGHTS);
        check_near(&all.model->segments, others, weights, RTOL);
        free(others);
        free(weights);
    }
    net_close(&part);
    net_close(&all);
}

/* A batch that is gathered alone has the bits of one that is not, for layers of all kinds. */
static void check_one_batch(const char *text, bpt_value_type type) {
    net_options o = gathering(false);
    o.activations = type;
    net_fixture apart = net_open(text, 11, o);
    o.learning.gathers = true;
    net_fixture gathers = net_open(text, 11, o);
    bpt_batch_result result;
    for (int step = 0; step < 3; step++) {
        gradient(&apart, 11.0f);
        gradient(&gathers, 11.0f);
        float *expected = net_vector(&apart, BPT_VECTOR_GRADIENTS);
        float *x = net_vector(&gathers, BPT_VECTOR_GRADIENTS);
        net_assert_same_bits("gradients", expected, x, apart.n_weights);
        free(x);
        free(expected);
        net_assert_ok(bpt_network_apply(apart.net, 0.02f));
        net_assert_ok(bpt_network_apply(gathers.net, 0.02f));
        net_assert_ok(
            bpt_network_train(apart.net, apart.pixels, apart.labels, 0.02f, 11.0f, &result));
        net_assert_ok(
            bpt_network_train(gathers.net, gathers.pixels, gathers.labels, 0.02f, 11.0f, &result));
        float *weights = net_vector(&apart, BPT_VECTOR_WEIGHTS);
        float *others = net_vector(&gathers, BPT_VECTOR_WEIGHTS);
        net_assert_same_bits("weights", weights, others, apart.n_weights);
        free(others);
        free(weights);
    }
    net_close(&gathers);
    net_close(&apart);
}

static void test_one_batch(void **state) {
    (void)state;
    check_one_batch(net_mixed, BPT_F32);
    check_one_batch(model, BPT_F32);
    if (bpt_cpu_bf16() != BPT_BF16_NONE) check_one_batch(net_mixed, BPT_BF16);
}

/* The last batch may come with the update; then the sum begins anew. Twice the same batch with half
 * the weight each is that batch. */
static void test_training_takes_what_is_gathered(void **state) {
    (void)state;
    net_fixture apart = net_open(plain_model, 8, gathering(false));
    net_fixture gathers = net_open(plain_model, 8, gathering(true));
    bpt_batch_result result;
    for (int step = 0; step < 3; step++) {
        net_assert_ok(
            bpt_network_train(apart.net, apart.pixels, apart.labels, 0.05f, 8.0f, &result));
        gradient(&gathers, 16.0f);
        net_assert_ok(
            bpt_network_train(gathers.net, gathers.pixels, gathers.labels, 0.05f, 16.0f, &result));
        float *expected = net_vector(&apart, BPT_VECTOR_WEIGHTS);
        float *x = net_vector(&gathers, BPT_VECTOR_WEIGHTS);
        check_near(&apart.model->segments, x, expected, RTOL);
        free(x);
        free(expected);
    }
    net_close(&gathers);
    net_close(&apart);
}

static void test_sum_begins_anew_after_an_error(void **state) {
    (void)state;
    net_fixture f = net_open(plain_model, 8, gathering(true));
    bpt_batch_result result;
    gradient(&f, 8.0f);
    f.labels[3] = 1000;
    assert_int_equal(bpt_network_gradient(f.net, f.pixels, f.labels, 8.0f, &result), BPT_EDATA);
    f.labels[3] = -1;
    gradient(&f, 8.0f);
    net_fixture fresh = net_open(plain_model, 8, gathering(false));
    fresh.labels[3] = -1;
    gradient(&fresh, 8.0f);
    float *x = net_vector(&f, BPT_VECTOR_GRADIENTS);
    float *of_fresh = net_vector(&fresh, BPT_VECTOR_GRADIENTS);
    net_assert_same_bits("gradients", of_fresh, x, f.n_weights);
    free(of_fresh);
    free(x);
    net_close(&fresh);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_batches_are_one),
        cmocka_unit_test(test_one_batch),
        cmocka_unit_test(test_training_takes_what_is_gathered),
        cmocka_unit_test(test_sum_begins_anew_after_an_error),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
