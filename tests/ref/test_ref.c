/* The references themselves: values worked out by hand, each backward as the adjoint of its
 * forward, and whole networks against central differences. */
#include "base/random.h"
#include "tests/ref/ref.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check(const double *x, const double *expected, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] - expected[i]) <= 1e-12))
            fail_msg("value %zu is %.17g, not %.17g", i, x[i], expected[i]);
}

static void fill(double *x, size_t n, uint64_t id) {
    bpt_random r = bpt_random_stream(7, BPT_PURPOSE_TEST, id);
    for (size_t i = 0; i < n; i++) x[i] = (double)bpt_random_normal(&r);
}

static double *random_doubles(size_t n, uint64_t id) {
    double *x = ref_zeros(n);
    fill(x, n, id);
    return x;
}

static double dot(const double *x, const double *y, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static void check_equal_sums(double a, double b) {
    if (!(fabs(a - b) <= 1e-11 * (1.0 + fabs(a)))) fail_msg("%.17g is not %.17g", a, b);
}

/* ---- by hand ---- */

static void test_conv_by_hand(void **state) {
    (void)state;
    /* two channels, one filter, one row of padding, a stride of two columns */
    const ref_window a = {
        .n = 1, .c = 2, .h = 2, .w = 3, .k = 1, .r = 2, .s = 1, .stride = {1, 2}, .pad = {1, 0}};
    const double x[] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
    const double weight[] = {1, 2, 3, 4}, bias[] = {0.5};
    double y[6];
    assert_int_equal(ref_window_p(&a), 3);
    assert_int_equal(ref_window_q(&a), 2);
    ref_conv_forward(&a, x, weight, bias, y);
    check(y,
          (double[]){0.5 + 2 * 1 + 4 * 10, 0.5 + 2 * 3 + 4 * 30, 0.5 + 1 + 2 * 4 + 30 + 4 * 40,
                     0.5 + 3 + 2 * 6 + 90 + 4 * 60, 0.5 + 4 + 120, 0.5 + 6 + 180},
          6);
    const double dy[] = {1, 2, 3, 4, 5, 6};
    double dx[12], dweight[4], dbias[1];
    ref_conv_backward_data(&a, dy, weight, dx);
    check(dx,
          (double[]){2 * 1 + 3, 0, 2 * 2 + 4, 2 * 3 + 5, 0, 2 * 4 + 6, 4 * 1 + 3 * 3, 0,
                     4 * 2 + 3 * 4, 4 * 3 + 3 * 5, 0, 4 * 4 + 3 * 6},
          12);
    ref_conv_backward_weight(&a, x, dy, dweight);
    check(dweight,
          (double[]){3 * 1 + 4 * 3 + 5 * 4 + 6 * 6, 1 * 1 + 2 * 3 + 3 * 4 + 4 * 6,
                     3 * 10 + 4 * 30 + 5 * 40 + 6 * 60, 1 * 10 + 2 * 30 + 3 * 40 + 4 * 60},
          4);
    ref_conv_backward_bias(&a, dy, dbias);
    check(dbias, (double[]){21}, 1);
}

static void test_maxpool_by_hand(void **state) {
    (void)state;
    const ref_window a = {
        .n = 1, .c = 1, .h = 3, .w = 4, .r = 2, .s = 2, .stride = {2, 2}, .pad = {1, 0}};
    /* all below zero, so that padding would win if it counted as zero; ties in both rows */
    const double x[] = {-5, -5, -1, -2, -7, -3, -4, -4, -3, -9, -4, -4};
    double y[4], dx[12];
    int64_t winner[4];
    ref_maxpool_forward(&a, x, y, winner);
    check(y, (double[]){-5, -1, -3, -4}, 4);
    assert_int_equal(winner[0], 0);
    assert_int_equal(winner[1], 2);
    assert_int_equal(winner[2], 5);
    assert_int_equal(winner[3], 6);
    ref_maxpool_backward(&a, winner, (double[]){1, 2, 3, 4}, dx);
    check(dx, (double[]){1, 0, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0}, 12);
    /* overlapping windows add up */
    const ref_window b = {.n = 1, .c = 1, .h = 1, .w = 3, .r = 1, .s = 2, .stride = {1, 1}};
    ref_maxpool_forward(&b, (double[]){1, 9, 2}, y, winner);
    ref_maxpool_backward(&b, winner, (double[]){0.5, 0.25}, dx);
    check(dx, (double[]){0, 0.75, 0}, 3);
}

static void test_fc_by_hand(void **state) {
    (void)state;
    const ref_fc a = {.n = 2, .c = 2, .k = 3};
    const double x[] = {1, 2, 3, 4}, weight[] = {1, 0, 0, 1, 2, -1}, bias[] = {10, 20, 30};
    const double dy[] = {1, 2, 3, 4, 5, 6};
    double y[6], dx[4], dweight[6], dbias[3];
    ref_fc_forward(&a, x, weight, bias, y);
    check(y, (double[]){11, 22, 30, 13, 24, 32}, 6);
    ref_fc_backward_data(&a, dy, weight, dx);
    check(dx, (double[]){7, -1, 16, -1}, 4);
    ref_fc_backward_weight(&a, x, dy, dweight);
    check(dweight, (double[]){13, 18, 17, 24, 21, 30}, 6);
    ref_fc_backward_bias(&a, dy, dbias);
    check(dbias, (double[]){5, 7, 9}, 3);
}

static void test_relu_by_hand(void **state) {
    (void)state;
    const double x[] = {-1, 0, 2};
    double y[3], dx[3];
    ref_relu_forward(3, x, y);
    check(y, (double[]){0, 0, 2}, 3);
    ref_relu_backward(3, x, (double[]){5, 6, 7}, dx);
    check(dx, (double[]){0, 0, 7}, 3);
}

static void test_softmax_by_hand(void **state) {
    (void)state;
    /* softmax of (0, ln 3) is (1/4, 3/4); large logits must not overflow */
    const double logits[] = {0, log(3.0), 0, 0, 2000, 2000};
    const int32_t labels[] = {1, -1, 0};
    double dlogits[6];
    const double loss = ref_softmax_loss(3, 2, logits, labels, 4.0, dlogits);
    check(&loss, (double[]){log(4.0 / 3.0) + log(2.0)}, 1);
    check(dlogits, (double[]){0.25 / 4, -0.25 / 4, 0, 0, -0.5 / 4, 0.5 / 4}, 6);
    check_equal_sums(ref_softmax_loss(3, 2, logits, labels, 4.0, NULL), loss);
}

static void test_sgd_by_hand(void **state) {
    (void)state;
    double w[] = {1, -2}, v[] = {0, 0};
    const double g[] = {0.5, 1};
    ref_sgd_update(2, w, v, g, 0.1, 0.9, 0.01);
    check(v, (double[]){0.51, 0.98}, 2);
    check(w, (double[]){0.949, -2.098}, 2);
    ref_sgd_update(2, w, v, g, 0.1, 0.9, 0.0);
    check(v, (double[]){0.959, 1.882}, 2);
    check(w, (double[]){0.8531, -2.2862}, 2);
}

static void test_errors_of_floats(void **state) {
    (void)state;
    const double ref[] = {1, -4, 0};
    assert_true(ref_error((float[]){1, -4, 0}, ref, 3) == 0.0);
    assert_true(ref_error((float[]){1, -3, 1}, ref, 3) == 0.25);
    assert_true(isinf(ref_error((float[]){NAN, -4, 0}, ref, 3)));
    assert_true(isinf(ref_error((float[]){1}, ref + 2, 1)));
    assert_true(ref_error((float[]){0}, ref + 2, 1) == 0.0);
}

/* ---- <dy, conv(x)> = <conv_backward(dy), x>, for x and for the weights ---- */

static void test_conv_adjoint(void **state) {
    (void)state;
    static const ref_window cases[] = {
        {.n = 2, .c = 3, .h = 7, .w = 5, .k = 4, .r = 3, .s = 3, .stride = {1, 1}, .pad = {1, 1}},
        {.n = 1, .c = 2, .h = 9, .w = 6, .k = 3, .r = 5, .s = 2, .stride = {2, 3}, .pad = {2, 0}},
        {.n = 3, .c = 1, .h = 4, .w = 4, .k = 2, .r = 1, .s = 1, .stride = {2, 2}, .pad = {0, 1}},
        {.n = 1, .c = 2, .h = 2, .w = 2, .k = 2, .r = 2, .s = 2, .stride = {1, 1}, .pad = {2, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ref_window *a = &cases[i];
        const size_t n_x = (size_t)(a->n * a->c * a->h * a->w);
        const size_t n_w = (size_t)(a->k * a->c * a->r * a->s);
        const size_t n_y = (size_t)(a->n * a->k * ref_window_p(a) * ref_window_q(a));
        double *x = random_doubles(n_x, 1), *w = random_doubles(n_w, 2);
        double *dy = random_doubles(n_y, 3), *y = ref_zeros(n_y);
        double *dx = random_doubles(n_x, 4), *dw = random_doubles(n_w, 5);
        ref_conv_forward(a, x, w, NULL, y);
        ref_conv_backward_data(a, dy, w, dx);
        ref_conv_backward_weight(a, x, dy, dw);
        check_equal_sums(dot(dy, y, n_y), dot(dx, x, n_x));
        check_equal_sums(dot(dy, y, n_y), dot(dw, w, n_w));
        free(x);
        free(w);
        free(dy);
        free(y);
        free(dx);
        free(dw);
    }
}

/* ---- whole networks against central differences ---- */

static const char *const nets[] = {
    "name: a\ninput: [2, 7, 6]\nclasses: 3\nlayers:\n"
    "  - conv: {filters: 3, kernel: [3, 2], stride: [2, 1], pad: 1}\n"
    "  - relu\n"
    "  - maxpool: {kernel: 2, stride: 1}\n"
    "  - conv: {filters: 4, kernel: 2, bias: false}\n"
    "  - fc: {outputs: 5}\n"
    "  - relu\n"
    "  - fc: {outputs: classes, bias: false}\n",
    "name: b\ninput: [1, 5, 5]\nclasses: 4\nlayers:\n"
    "  - maxpool: {kernel: 3, stride: 2, pad: 1}\n"
    "  - relu\n"
    "  - conv: {filters: classes, kernel: 3}\n",
};

static double loss_at(const bpt_model *m, const ref_batch *batch, const double *weights) {
    return ref_network(m, batch, weights, NULL, NULL, NULL).loss_sum / batch->denominator;
}

/* Relative error, over all of the vector, of the gradient against (f(w + h) - f(w - h)) / 2h. */
static double gradient_error(const bpt_model *m, const ref_batch *batch, double *weights) {
    const double h = 1e-5;
    double *gradient = ref_zeros(m->segments.n_elements);
    double difference = 0.0, length = 0.0;
    ref_network(m, batch, weights, NULL, gradient, NULL);
    for (size_t i = 0; i < m->segments.n_elements; i++) {
        const double w = weights[i];
        weights[i] = w + h;
        const double above = loss_at(m, batch, weights);
        weights[i] = w - h;
        const double below = loss_at(m, batch, weights);
        weights[i] = w;
        const double numeric = (above - below) / (2 * h);
        difference += (numeric - gradient[i]) * (numeric - gradient[i]);
        length += numeric * numeric;
    }
    free(gradient);
    assert_true(length > 0.0);
    return sqrt(difference / length);
}

static void test_networks(void **state) {
    (void)state;
    const int32_t labels[] = {2, -1, 0, 1, 2};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        bpt_model *m = NULL;
        if (bpt_model_parse("net", nets[i], strlen(nets[i]), NULL, &m) != BPT_OK)
            fail_msg("%s", bpt_error_last()->text);
        double *pixels = random_doubles((size_t)(5 * m->input.c * m->input.h * m->input.w), 10);
        double *weights = random_doubles(m->segments.n_elements, 11);
        const ref_batch batch = {.n = 5, .pixels = pixels, .labels = labels, .denominator = 4.0};
        const double error = gradient_error(m, &batch, weights);
        if (!(error <= 1e-6)) fail_msg("network %zu: relative error %g", i, error);
        free(pixels);
        free(weights);
        bpt_model_free(m);
    }
}

/* A net of one layer, so that every number can be had by calling the layer alone. */
static void test_network_results(void **state) {
    (void)state;
    const char *text =
        "name: c\ninput: [2, 1, 1]\nclasses: 2\nlayers:\n"
        "  - fc: {outputs: classes}\n";
    const float pixels[] = {1, 0, 0, 1, 1, 1}, weights[] = {3, 0, 0, 5, 0.5f, 0};
    const int32_t labels[] = {0, 0, -1};
    bpt_model *m = NULL;
    double logits[6], gradient[6], terms[6];
    assert_int_equal(bpt_model_parse("net", text, strlen(text), NULL, &m), BPT_OK);
    const ref_result r =
        ref_network_f32(m, 3, pixels, labels, 2.0, weights, logits, gradient, terms);
    assert_int_equal(r.n_samples, 2);
    assert_int_equal(r.n_correct, 1);
    check(logits, (double[]){3.5, 0, 0.5, 5, 3.5, 5}, 6);
    const double p0 = 1 / (1 + exp(3.5)), p1 = 1 / (1 + exp(-4.5)); /* of class 1 */
    check(&r.loss_sum, (double[]){-log(1 - p0) - log(1 - p1)}, 1);
    check(gradient, (double[]){-p0 / 2, -p1 / 2, p0 / 2, p1 / 2, -(p0 + p1) / 2, (p0 + p1) / 2}, 6);
    check(terms, (double[]){p0 / 2, p1 / 2, p0 / 2, p1 / 2, (p0 + p1) / 2, (p0 + p1) / 2}, 6);
    const char *name = NULL;
    float close[6];
    for (size_t i = 0; i < 6; i++) close[i] = (float)gradient[i];
    assert_true(ref_segments_error(&m->segments, close, gradient, &name) < 1e-7);
    close[5] *= 1.5f;
    assert_true(fabs(ref_segments_error(&m->segments, close, gradient, &name) - 0.5) < 1e-6);
    assert_string_equal(name, "fc1.bias");

    double w[] = {3, 0, 0, 5, 0.5, 0}, v[6] = {0};
    ref_network_update(&m->segments, w, v, (double[]){1, 1, 1, 1, 1, 1}, 0.5, 0.9, 0.1);
    check(w, (double[]){3 - 0.65, -0.5, -0.5, 5 - 0.75, 0, -0.5}, 6);
    bpt_model_free(m);
}

/* Of a 1x1 convolution of two pixels, (w + bias, 2 w + bias), then a ReLU, a maximum or neither. */
static uint64_t switches_at(const char *layer, double w, double bias) {
    char text[256];
    snprintf(text, sizeof text,
             "{name: s, input: [1, 1, 2], classes: 2, layers: [conv: {filters: 1, kernel: 1}, %s"
             "fc: {outputs: classes}]}",
             layer);
    bpt_model *m = NULL;
    if (bpt_model_parse("net", text, strlen(text), NULL, &m) != BPT_OK)
        fail_msg("%s", bpt_error_last()->text);
    const double pixels[] = {1, 2}, weights[8] = {w, bias};
    const ref_batch batch = {
        .n = 1, .pixels = pixels, .labels = (int32_t[]){0}, .denominator = 1.0};
    const uint64_t switches = ref_network(m, &batch, weights, NULL, NULL, NULL).switches;
    bpt_model_free(m);
    return switches;
}

static void test_switches(void **state) {
    (void)state;
    assert_true(switches_at("", 1, 0) == switches_at("", -1, 0));
    assert_true(switches_at("relu, ", 1, 0) == switches_at("relu, ", 2, 1));
    assert_true(switches_at("relu, ", 1, 0) != switches_at("relu, ", -1, 0));
    assert_true(switches_at("relu, ", 1, 0) != switches_at("relu, ", -1, 1.5));
    const char *pool = "maxpool: {kernel: [1, 2]}, ";
    assert_true(switches_at(pool, 1, 0) == switches_at(pool, 2, -9));
    assert_true(switches_at(pool, 1, 0) != switches_at(pool, -1, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_by_hand),     cmocka_unit_test(test_maxpool_by_hand),
        cmocka_unit_test(test_fc_by_hand),       cmocka_unit_test(test_relu_by_hand),
        cmocka_unit_test(test_softmax_by_hand),  cmocka_unit_test(test_sgd_by_hand),
        cmocka_unit_test(test_errors_of_floats), cmocka_unit_test(test_conv_adjoint),
        cmocka_unit_test(test_networks),         cmocka_unit_test(test_network_results),
        cmocka_unit_test(test_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
