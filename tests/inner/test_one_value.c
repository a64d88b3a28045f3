/* A batch norm of which a channel has one value: that says nothing of a variance, and the running
 * one stays; and samples that are not there are not divided by what is left of it, a root of eps.
 * And activations of one pixel, whose orders are all the same.
 * ctest: cpu */
#include "tests/inner/net_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { CHANNELS = 3, BATCH = 4 };

static const char single[] =
    "{name: t, input: [2, 4, 4], classes: 2, layers: [fc: {outputs: 3}, "
    "batchnorm, relu, fc: {outputs: classes}]}";
static const char wide[] =
    "{name: t, input: [2, 4, 4], classes: 2, layers: [batchnorm, relu, "
    "fc: {outputs: classes}]}";

/* @return the gradients of the running variances, shape [CHANNELS]; free() */
static float *variance_gradients(int n_there) {
    net_fixture f = net_open(single, BATCH, (net_options){.n_workers = 1, .seed = 3});
    bpt_batch_result result;
    for (int i = n_there; i < BATCH; i++) f.labels[i] = -1;
    for (int i = 0; i < n_there; i++) f.labels[i] = i % 2;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, (float)n_there, &result));
    float *all = net_vector(&f, BPT_VECTOR_GRADIENTS), *found = net_floats(CHANNELS);
    const bpt_segments *s = &f.model->segments;
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->items[i].role.running == 0.0f) continue;
        at = s->items[i].offset; /* the last is the variance */
    }
    for (int c = 0; c < CHANNELS; c++) found[c] = all[at + (size_t)c];
    free(all);
    net_close(&f);
    return found;
}

static void test_variance_of_one(void **state) {
    (void)state;
    float *one = variance_gradients(1), *two = variance_gradients(2);
    for (int c = 0; c < CHANNELS; c++) {
        assert_true(one[c] == 0.0f);
        assert_true(two[c] != 0.0f);
    }
    free(one);
    free(two);
}

/* Nine batch norms, one behind the other. @param fuses what is computed with each: nothing, a ReLU,
 * or an addition and a ReLU */
static void write_chain(int fuses, char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size, "{name: t, input: [2, 1, 1], classes: 2, layers: [");
    for (int i = 0; i < 9; i++) {
        n += (size_t)snprintf(text + n, size - n,
                              "fc: {name: f%d, outputs: 3}, batchnorm: {name: b%d, eps: 1e-12}, ",
                              i, i);
        if (fuses > 1)
            n += (size_t)snprintf(text + n, size - n, "add: {input: [f%d, b%d]}, ", i, i);
        if (fuses > 0) n += (size_t)snprintf(text + n, size - n, "relu, ");
    }
    snprintf(text + n, size - n, "fc: {outputs: classes}]}");
}

/* Of the one sample nothing but the bias is left in each; those that are not there would become a
 * million times as large, and infinite in the seventh. */
static void test_absent_samples(void **state) {
    (void)state;
    for (int fuses = 0; fuses < 3; fuses++) {
        char text[2048];
        bpt_batch_result before, after;
        write_chain(fuses, text, sizeof text);
        net_fixture f = net_open(text, BATCH, (net_options){.n_workers = 2, .seed = 5});
        for (int i = 1; i < BATCH; i++) f.labels[i] = -1;
        net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 1.0f, &before));
        float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
        for (size_t i = 2; i < f.n_pixels; i++) f.pixels[i] = 1e3f;
        net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 1.0f, &after));
        float *again = net_vector(&f, BPT_VECTOR_GRADIENTS);
        net_assert_same_bits("gradient", gradient, again, f.n_weights);
        assert_true(before.loss_sum == after.loss_sum);
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 1.0f, &after));
        free(again);
        free(gradient);
        net_close(&f);
    }
}

static void test_least_batch(void **state) {
    (void)state;
    const bpt_layer *layer;
    bpt_model *m = net_parse(single);
    assert_int_equal(bpt_model_least_batch(m, &layer), 2);
    assert_ptr_equal(layer, &m->layers[1]);
    bpt_model_free(m);
    m = net_parse(wide);
    assert_int_equal(bpt_model_least_batch(m, &layer), 1);
    assert_null(layer);
    bpt_model_free(m);
    m = net_parse(
        "{name: t, input: [2, 1, 3], classes: 2, layers: [conv: {filters: 4, kernel: 1}, "
        "batchnorm, fc: {outputs: classes}]}"); /* a row of several */
    assert_int_equal(bpt_model_least_batch(m, &layer), 1);
    bpt_model_free(m);
}

/* Of one pixel, a convolution's order of values is that of a fully connected layer, and an addition
 * takes both as they are; gradients of the latter are to lie in one piece. @return them; free() */
static float *gradients_of_sum(int64_t channels, const char *inputs) {
    char text[400];
    snprintf(text, sizeof text,
             "{name: t, input: [3, 2, 2], classes: 2, layers: ["
             "conv: {name: a, filters: %d, kernel: 2}, fc: {name: b, input: input, outputs: %d}, "
             "add: {input: %s}, fc: {outputs: classes}]}",
             (int)channels, (int)channels, inputs);
    net_fixture f = net_open(text, 9, (net_options){.n_workers = 2, .seed = 6});
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 9.0f, &result));
    float *gradients = net_vector(&f, BPT_VECTOR_GRADIENTS);
    net_close(&f);
    return gradients;
}

static void test_sum_of_single_pixels(void **state) {
    static const int64_t channels[] = {1, 3, 5, 8, 16, 20, 32};
    (void)state;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        const int64_t k = channels[i];
        float *x = gradients_of_sum(k, "[a, b]"), *y = gradients_of_sum(k, "[b, a]");
        for (int64_t j = 0; j < 2 * (12 * k + k) + 2 * k + 2; j++)
            if (!(fabsf(x[j] - y[j]) <= 1e-5f))
                fail_msg("%d channels: gradient %d is %g or %g", (int)k, (int)j, (double)x[j],
                         (double)y[j]);
        free(y);
        free(x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variance_of_one),
        cmocka_unit_test(test_absent_samples),
        cmocka_unit_test(test_least_batch),
        cmocka_unit_test(test_sum_of_single_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
