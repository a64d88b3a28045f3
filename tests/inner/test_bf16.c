/* Networks whose activations are bfloat16: against loops in double precision, and bit by bit over
 * threads.
 *
 * ctest: cpu TIMEOUT=120 */
#include "inner/network/network_private.h"
#include "tests/inner/conv_fixture.h"
#include "tests/inner/gradient_cases.h"
#include "tests/inner/net_values.h"
#include "tests/inner/processor.h"
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

enum { SEED = 1916, SKIPPED = 77 };

/* Roundings of up to 2^-9 each, through some ten layers: up to 0.007 of logits and 0.0103 of a
 * whole gradient here. Segments vary more: 0.025 before a batch norm of three values a channel,
 * which divides by how little they differ, and 0.015 elsewhere. */
static const double RTOL = 2e-2, SEGMENT_RTOL = 4e-2, LARGE = 0.1;

/* ---- one value ---- */

static float bits(uint32_t x) {
    float y;
    memcpy(&y, &x, sizeof y);
    return y;
}

/* To the nearest of the two neighbours, of two alike to the one whose last bit is 0. */
static void test_rounding(void **state) {
    (void)state;
    for (uint64_t i = 0; i <= UINT32_MAX; i += 0x1235) {
        const float x = bits((uint32_t)i);
        const bpt_bf16 below = (bpt_bf16)(i >> 16), above = (bpt_bf16)(below + 1);
        const bpt_bf16 y = bpt_to_bf16(x);
        if (isnan(x)) {
            assert_true(isnan(bpt_from_bf16(y)));
            continue;
        }
        if (isinf(x) || isinf(bpt_from_bf16(above))) continue; /* below, by hand */
        const double down = fabs((double)x - (double)bpt_from_bf16(below));
        const double up = fabs((double)bpt_from_bf16(above) - (double)x);
        assert_int_equal(y, down < up || (down == up && below % 2 == 0) ? below : above);
    }
    assert_int_equal(bpt_to_bf16(bits(0x3F808000)), 0x3F80); /* half way: to even */
    assert_int_equal(bpt_to_bf16(bits(0x3F818000)), 0x3F82);
    assert_int_equal(bpt_to_bf16(bits(0x3F808001)), 0x3F81);
    assert_int_equal(bpt_to_bf16(bits(0x7F7F7FFF)), 0x7F7F);
    assert_int_equal(bpt_to_bf16(bits(0xFF7FFFFF)), 0xFF80); /* beyond the largest: infinite */
    assert_int_equal(bpt_to_bf16(-INFINITY), 0xFF80);
    assert_true(isnan(bpt_from_bf16(bpt_to_bf16(bits(0x7F800001)))));
    assert_true(isnan(bpt_from_bf16(bpt_to_bf16(bits(0xFFFFFFFF)))));
    assert_int_equal(bpt_to_bf16(-0.0f), 0x8000);
}

static void test_where_positive(void **state) {
    (void)state;
    for (uint32_t i = 0; i <= UINT16_MAX; i++) {
        const bpt_bf16 y = (bpt_bf16)i;
        assert_int_equal(bpt_where_positive_bf16(y, 0xBEEF), bpt_from_bf16(y) > 0.0f ? 0xBEEF : 0);
    }
}

/* ---- networks ---- */

static net_options bf16_options(unsigned n_workers) {
    return (net_options){.n_workers = n_workers, .seed = SEED, .activations = BPT_BF16};
}

static double length(const double *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static double distance(const float *x, const double *ref, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += ((double)x[i] - ref[i]) * ((double)x[i] - ref[i]);
    return sqrt(sum);
}

/* As a whole, and segment by segment, so that no large one hides a small one. One whose sums cancel
 * too far to be judged by itself is judged by its terms, as in gradient_check(). */
static void check_gradient(const net_fixture *f, const float *gradient, const double *ref,
                           const double *terms) {
    const double of_all = distance(gradient, ref, f->n_weights) / length(ref, f->n_weights);
    if (!(of_all <= RTOL)) fail_msg("the gradient is off by %.2g", of_all);
    for (size_t i = 0; i < f->model->segments.n; i++) {
        const bpt_segment *s = &f->model->segments.items[i];
        const double error = distance(gradient + s->offset, ref + s->offset, s->count);
        const double large = LARGE * length(terms + s->offset, s->count);
        const double whole = fmax(length(ref + s->offset, s->count), large);
        if (!(error <= SEGMENT_RTOL * whole))
            fail_msg("%s: the gradient is off by %.2g", s->name, error / whole);
    }
}

/* A value so near to a kink (a ReLU's 0, two values of a window) that rounding carries it across
 * sends its whole gradient another way: the reference for the gradient goes where the network went.
 * That this was right, within rounding, is seen by logits that agree either way. */
static void check_against_reference(const net_fixture *f) {
    const size_t n_logits = (size_t)(f->batch * f->model->classes);
    const float denominator = (float)f->batch;
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, denominator, &result));
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS), *logits = net_logits(f);
    float **switches = net_switches(f);
    double *pixels = ref_doubles(f->pixels, f->n_pixels);
    double *weights = ref_doubles(f->weights, f->n_weights);
    double *ref_logits = ref_zeros(n_logits), *ref_gradient = ref_zeros(f->n_weights);
    double *terms = ref_zeros(f->n_weights);
    ref_batch batch = {
        .n = f->batch, .pixels = pixels, .labels = f->labels, .denominator = denominator};
    const ref_result ref = ref_network(f->model, &batch, weights, ref_logits, NULL, NULL);
    const double of_logits = distance(logits, ref_logits, n_logits) / length(ref_logits, n_logits);
    batch.switched_by = (const float *const *)switches;
    ref_network(f->model, &batch, weights, ref_logits, ref_gradient, terms);
    const double of_switched =
        distance(logits, ref_logits, n_logits) / length(ref_logits, n_logits);
    if (!(of_logits <= RTOL)) fail_msg("the logits are off by %.2g", of_logits);
    if (!(of_switched <= RTOL)) fail_msg("switched alike, the logits are off by %.2g", of_switched);
    check_gradient(f, gradient, ref_gradient, terms);
    if (!(fabs(result.loss_sum - ref.loss_sum) <= RTOL * ref.loss_sum))
        fail_msg("the loss is %.9g, not %.9g", result.loss_sum, ref.loss_sum);
    net_switches_free(f, switches);
    free(pixels);
    free(weights);
    free(logits);
    free(gradient);
    free(terms);
    free(ref_gradient);
    free(ref_logits);
}

static void test_reference(void **state) {
    const gradient_case *c = *state;
    const int64_t batches[] = {3, 16};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        if (c->large && batches[i] > 3) break; /* minutes under the thread sanitizer */
        net_fixture f = gradient_open_typed(c, batches[i], BPT_BF16);
        check_against_reference(&f);
        net_close(&f);
    }
}

static void check_layers(const char *const *layers, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "{name: t, input: [3, 9, 11], classes: 7, layers: [%s, fc: {name: last, outputs: "
                 "classes}]}",
                 layers[i]);
        net_fixture f = net_open(text, 23, bf16_options(2));
        check_against_reference(&f);
        net_close(&f);
    }
}

/* Every kernel and loop that multiplies or normalises; channels that fill no vector too. */
static void test_kernels(void **state) {
    static const char *const layers[] = {
        "conv: {name: a, filters: 17, kernel: 3}, conv: {name: b, filters: 33, kernel: 3, "
        "stride: 2, pad: 1, bias: false}, conv: {name: c, filters: 20, kernel: 1}, "
        "fc: {name: d, outputs: 150}, fc: {name: e, outputs: 70, bias: false}",
        "conv: {name: a, filters: 32, kernel: 3}, conv: {name: b, filters: 32, kernel: 3, pad: 1, "
        "groups: 32}, conv: {name: c, filters: 48, kernel: 3, groups: 2, dilation: 2}",
        "conv: {name: a, filters: 32, kernel: 3, bias: false}, batchnorm, "
        "conv: {name: b, filters: 5, kernel: 3}, batchnorm, avgpool: {kernel: 2}",
        "conv: {name: a, filters: 16, kernel: 3, pad: 1}, lrn: {name: l}, "
        "conv: {name: b, input: a, filters: 16, kernel: 3, pad: 1}, batchnorm: {name: n}, "
        "add: {name: s, input: [a, l, n]}, concat: {name: t, input: [s, n]}, pad_channels: "
        "{channels: 48}, conv: {name: c, filters: 24, kernel: 1}, dropout: {rate: 0.25}, "
        "global_avgpool",
        "conv: {name: a, filters: 16, kernel: 3, pad: 1}, "
        "conv: {name: b, filters: 16, kernel: 3, pad: 1}, batchnorm: {name: n}, "
        "add: {name: s, input: [n, a]}, conv: {name: c, filters: 3, kernel: 3}",
        /* 1x1 of 60 values, to an odd number of filters that fills no block */
        "conv: {name: a, filters: 24, kernel: [4, 2]}, conv: {name: b, filters: 33, kernel: 1}",
        /* channels last that fill no vector, and a wide window */
        "conv: {name: a, filters: 8, kernel: 3}, conv: {name: b, filters: 24, kernel: 1}, "
        "lrn: {size: 3, alpha: 1}",
        "conv: {name: a, filters: 20, kernel: 3}, conv: {name: b, filters: 32, kernel: 1}, "
        "lrn: {size: 7, alpha: 1}",
    };
    (void)state;
    check_layers(layers, sizeof layers / sizeof *layers);
}

/* What lies behind activations is not to be read, not even to be multiplied by 0: here NaNs. */
static void test_odd_channels(void **state) {
    static const char *const texts[] = {
        "{name: t, input: [37, 17, 37], classes: 7, layers: [conv: {name: a, filters: 55, kernel: "
        "11, stride: 5, pad: 5}, fc: {outputs: classes}]}",
        "{name: t, input: [65, 19, 13], classes: 7, layers: [conv: {name: a, filters: 49, kernel: "
        "[8, 6], stride: 4, pad: [4, 3]}, fc: {outputs: classes}]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        net_fixture f = net_open(texts[i], 2, bf16_options(1));
        const bpt_blocks *blocks = &f.net->blocks;
        memset(blocks->base[BPT_BLOCK_ACTIVATIONS], 0xFF, blocks->bytes[BPT_BLOCK_ACTIVATIONS]);
        check_against_reference(&f);
        net_close(&f);
    }
}

/* What comes before the first product is floats, with gradients where a batch norm is behind the
 * input; here it meets bfloat16, first and second, to be added, joined and read by both. */
static void test_both_types(void **state) {
    static const char *const layers[] = {
        "batchnorm: {name: f}, conv: {name: a, filters: 3, kernel: 1}, add: {input: [f, a]}",
        "batchnorm: {name: f}, conv: {name: a, filters: 3, kernel: 1}, add: {input: [a, f]}, relu",
        "batchnorm: {name: f}, relu: {name: r}, conv: {name: a, filters: 3, kernel: 1}, "
        "batchnorm: {name: n}, add: {input: [r, n]}, relu",
        "conv: {name: a, filters: 3, kernel: 1}, batchnorm: {name: f, input: input}, "
        "add: {input: [f, a]}, relu, conv: {filters: 5, kernel: 3}",
        "batchnorm: {name: f}, maxpool: {name: m, kernel: 3, stride: 1, pad: 1}, "
        "conv: {name: a, filters: 16, kernel: 1}, concat: {name: t, input: [m, a, f]}, relu",
        "batchnorm: {name: f}, lrn: {name: l}, dropout: {name: d, rate: 0.25}, "
        "pad_channels: {name: p, channels: 16}, conv: {name: a, filters: 16, kernel: 1}, "
        "concat: {name: t, input: [a, p]}, add: {input: [t, t]}",
        "conv: {name: a, filters: 3, kernel: 1}, add: {name: s, input: [input, a, input]}, "
        "concat: {input: [a, s, input]}, avgpool: {kernel: 3}",
    };
    (void)state;
    check_layers(layers, sizeof layers / sizeof *layers);
}

/* Kernels of ours where vectors have the instructions, of oneDNN where matrices have them (AMX). */
static bool has_winograd(void) {
    return bpt_cpu_bf16() == BPT_BF16_NATIVE && !processor_has_amx();
}

/* Channels and sides that fill their blocks and patches, and others; tiles with patches enough and
 * tiles without; filters so large that their gradients are made in ranges. */
static void test_winograd(void **state) {
    static const struct {
        int filters, next, h, w, pad;
        bool suits;
    } cases[] = {{64, 64, 16, 16, 1, true},
                 {72, 64, 21, 17, 1, true},
                 {80, 64, 18, 23, 0, true},
                 {272, 256, 16, 16, 1, true},
                 {64, 64, 10, 10, 1, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
#ifdef __SANITIZE_ADDRESS__
        if (cases[i].filters > 256) continue; /* is as long as all others */
#endif
        snprintf(
            text, sizeof text,
            "{name: t, input: [3, %d, %d], classes: 7, layers: [conv: {name: a, filters: %d, "
            "kernel: 3, pad: 1}, relu, conv: {name: b, filters: %d, kernel: 3, pad: %d}, relu, "
            "fc: {name: last, outputs: classes}]}",
            cases[i].h, cases[i].w, cases[i].filters, cases[i].next, cases[i].pad);
        net_fixture f = net_open(text, 8, bf16_options(2));
        conv_check_algorithm(&f, "b", cases[i].suits && has_winograd());
        check_against_reference(&f);
        net_close(&f);
    }
}

/* Weights after some steps, and what an evaluation says then. */
static float *train(unsigned n_workers, bpt_value_type type, double *loss) {
    net_options o = bf16_options(n_workers);
    o.activations = type;
    o.learning.momentum = 0.9;
    net_fixture f = net_open(net_mixed, 23, o);
    bpt_batch_result result;
    for (int i = 0; i < 3; i++)
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.01f, 23.0f, &result));
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
    *loss = result.loss_sum;
    float *weights = net_vector(&f, BPT_VECTOR_WEIGHTS);
    net_close(&f);
    return weights;
}

static void test_threads(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 1, bf16_options(1));
    double loss, other, with_floats;
    float *one = train(1, BPT_BF16, &loss);
    for (unsigned n = 2; n <= 3; n++) {
        float *many = train(n, BPT_BF16, &other);
        net_assert_same_bits("weights", one, many, f.n_weights);
        assert_true(loss == other);
        free(many);
    }
    float *floats = train(1, BPT_F32, &with_floats);
    assert_true(fabs(loss - with_floats) <= RTOL * with_floats);
    assert_true(loss != with_floats);
    free(floats);
    free(one);
    net_close(&f);
}

/* A network that evaluates alone has the masters in another order than one that trains. */
static void test_forward_alone(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 7, bf16_options(2));
    bpt_network *forward;
    bpt_batch_result with, alone;
    net_assert_ok(bpt_network_create_forward(f.model, 7, BPT_BF16, f.pool, &forward));
    net_assert_ok(bpt_network_set(forward, BPT_VECTOR_WEIGHTS, f.weights));
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &with));
    net_assert_ok(bpt_network_evaluate(forward, f.pixels, f.labels, &alone));
    assert_true(with.loss_sum == alone.loss_sum);
    bpt_network_free(forward);
    net_close(&f);
}

/* The masters are floats: what goes in comes out, bit by bit. */
static void test_weights_are_floats(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 7, bf16_options(1));
    float *weights = net_vector(&f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", f.weights, weights, f.n_weights);
    free(weights);
    net_close(&f);
}

/* A NaN that a bfloat16 activation holds is found. */
static void test_not_finite(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 7, bf16_options(1));
    bpt_batch_result result;
    for (size_t i = 0; i < f.model->segments.n; i++)
        if (strcmp(f.model->segments.items[i].name, "conv3.weight") == 0)
            f.weights[f.model->segments.items[i].offset] = NAN;
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    assert_int_equal(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 7.0f, &result),
                     BPT_ENUMERIC);
    assert_non_null(strstr(bpt_error_last()->text, "layer conv3 "));
    net_close(&f);
}

static void test_memory(void **state) {
    (void)state;
    bpt_model *model = NULL;
    bpt_network_memory floats, halves;
    net_assert_ok(bpt_model_load("resnet20", NULL, &model));
    net_assert_ok(
        bpt_network_plan(model, 64, BPT_F32, (bpt_learning){.momentum = 0.9}, 2, &floats));
    net_assert_ok(
        bpt_network_plan(model, 64, BPT_BF16, (bpt_learning){.momentum = 0.9}, 2, &halves));
    assert_in_range(halves.activations, floats.activations * 49 / 100,
                    floats.activations * 56 / 100);
    assert_in_range(halves.activation_gradients, 1, floats.activation_gradients * 60 / 100);
    bpt_model_free(model);
}

static int run_networks(void) {
    const gradient_sort sorts[] = {{"reference", test_reference}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_odd_channels),
        cmocka_unit_test(test_both_types),
        cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_forward_alone),
        cmocka_unit_test(test_weights_are_floats),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_memory),
    };
    if (cmocka_run_group_tests(tests, NULL, NULL) != 0) return 1;
    return gradient_run("networks in bfloat16", sorts, sizeof sorts / sizeof *sorts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_where_positive),
    };
    print_message("seed %d\n", (int)SEED);
    if (cmocka_run_group_tests(tests, NULL, NULL) != 0) return 1;
    if (bpt_cpu_bf16() == BPT_BF16_NONE) {
        print_message("skipped: this processor has no kernels for bfloat16\n");
        return SKIPPED;
    }
    return run_networks();
}
