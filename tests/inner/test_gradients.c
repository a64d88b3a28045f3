/* What the engine computes for whole models: logits, loss and every gradient, against loops in
 * double precision and against differences of its own loss.
 *
 * ctest: cpu TIMEOUT=120 */
#include "inner/network_private.h"
#include "tests/inner/net_fixture.h"
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

enum { SEED = 20260 };

typedef struct {
    const char *name;
    const char *text; /* NULL: the built-in model of that name, with another input */
    int64_t channels, size;
    bool large; /* few batches, and nothing that runs it many times */
} model_case;

static const int64_t batches[] = {1, 2, 3, 5, 16, 23, 64};

#define MODEL(input, classes, layers)                                                              \
    "{name: t, input: " input ", classes: " classes ", layers: [" layers "]}"
#define TO_CLASSES "fc: {outputs: classes}"

/* Names say what is special. Few layers each: with every layer there are more values that lie
 * within rounding error of a kink (ReLU at 0, two equal values in a window). */
static const model_case cases[] = {
    {.name = "fc alone", .text = MODEL("[1, 1, 13]", "3", TO_CLASSES)},
    {.name = "fc of an image, without bias",
     .text = MODEL("[3, 5, 7]", "17", "fc: {outputs: classes, bias: false}")},
    {.name = "fc in several pieces",
     .text = MODEL("[2, 9, 11]", "5",
                   "fc: {name: a, outputs: 150}, relu, fc: {name: b, outputs: 70, bias: false}, "
                   "relu, fc: {name: c, outputs: classes}")},
    {.name = "relu of the pixels", .text = MODEL("[3, 6, 5]", "4", "relu, " TO_CLASSES)},
    {.name = "relu of the pixels, then conv",
     .text = MODEL("[3, 7, 6]", "4", "relu, conv: {filters: 5, kernel: 3}, " TO_CLASSES)},
    {.name = "maxpool of the pixels, then conv",
     .text = MODEL("[3, 9, 8]", "4",
                   "maxpool: {kernel: 2}, relu, conv: {filters: 20, kernel: 3}, " TO_CLASSES)},
    {.name = "relu twice",
     .text = MODEL("[2, 5, 5]", "3", "conv: {filters: 3, kernel: 2}, relu, relu, " TO_CLASSES)},
    {.name = "conv 1x1 from 1 channel",
     .text = MODEL("[1, 7, 5]", "3", "conv: {filters: 2, kernel: 1}, relu, " TO_CLASSES)},
    {.name = "conv 1x1 from 33 channels to 17",
     .text = MODEL("[33, 4, 5]", "3", "conv: {filters: 17, kernel: 1}, relu, " TO_CLASSES)},
    {.name = "conv 1x1, stride 2, without bias",
     .text = MODEL("[17, 7, 8]", "3",
                   "relu, conv: {filters: 20, kernel: 1, stride: 2, bias: false}, "
                   "relu, " TO_CLASSES)},
    {.name = "conv 3x3 padded, 3 to 16 to 32 channels",
     .text = MODEL("[3, 8, 8]", "10",
                   "conv: {name: a, filters: 16, kernel: 3, pad: 1}, relu, "
                   "conv: {name: b, filters: 32, kernel: 3, pad: 1}, relu, maxpool: {kernel: "
                   "2}, " TO_CLASSES)},
    {.name = "conv 3x3 padded, 17 to 33 to 20 channels",
     .text =
         MODEL("[17, 6, 7]", "5",
               "conv: {name: a, filters: 33, kernel: 3, pad: 1}, relu, "
               "conv: {name: b, filters: 20, kernel: 3, pad: 1, bias: false}, relu, " TO_CLASSES)},
    {.name = "conv 2x2, stride 3 leaves rows over",
     .text = MODEL("[3, 10, 9]", "4",
                   "conv: {name: a, filters: 3, kernel: 1}, "
                   "conv: {name: b, filters: 20, kernel: 2, stride: 3}, relu, " TO_CLASSES)},
    {.name = "conv 4x4, stride 2, pad 1",
     .text = MODEL("[2, 9, 11]", "4",
                   "conv: {name: a, filters: 17, kernel: 4, stride: 2, pad: 1}, "
                   "relu, conv: {name: b, filters: 3, kernel: 2}, " TO_CLASSES)},
    {.name = "conv 5x5, pad 2",
     .text = MODEL("[3, 7, 8]", "4",
                   "conv: {name: a, filters: 20, kernel: 5, pad: 2}, relu, "
                   "conv: {name: b, filters: 2, kernel: 5, pad: 1}, " TO_CLASSES)},
    {.name = "conv padded by more than its kernel",
     .text = MODEL("[2, 4, 3]", "4",
                   "conv: {name: a, filters: 3, kernel: 3}, "
                   "conv: {name: b, filters: 3, kernel: 2, pad: 3}, " TO_CLASSES)},
    {.name = "conv 1x5 and 3x2, unequal strides and pads",
     .text =
         MODEL("[3, 9, 12]", "4",
               "conv: {name: a, filters: 17, kernel: [1, 5], stride: [1, 2], pad: [0, 3]}, relu, "
               "conv: {name: b, filters: 20, kernel: [3, 2], stride: [3, 1], pad: [2, 0]}, "
               "relu, " TO_CLASSES)},
    {.name = "conv 4x1 and 2x4, unequal strides",
     .text = MODEL("[1, 12, 9]", "4",
                   "conv: {name: a, filters: 3, kernel: [4, 1], stride: [2, 3]}, relu, "
                   "conv: {name: b, filters: 33, kernel: [2, 4], stride: [1, 3], pad: [1, 2]}, "
                   "relu, " TO_CLASSES)},
    {.name = "conv that covers its whole input",
     .text = MODEL("[17, 5, 3]", "6", "conv: {filters: 33, kernel: [5, 3]}, relu, " TO_CLASSES)},
    {.name = "conv alone gives the classes",
     .text = MODEL("[3, 7, 7]", "10",
                   "conv: {name: a, filters: 17, kernel: 3, stride: 2}, relu, "
                   "conv: {name: b, filters: classes, kernel: 3}")},
    {.name = "conv, 17 classes through a relu",
     .text = MODEL("[2, 4, 4]", "17", "conv: {filters: classes, kernel: 4}, relu")},
    {.name = "maxpool gives the classes",
     .text = MODEL("[3, 6, 6]", "3",
                   "conv: {filters: classes, kernel: 3, pad: 1}, "
                   "maxpool: {kernel: 6}")},
    {.name = "fc, then conv of 1x1",
     .text = MODEL("[1, 4, 4]", "4",
                   "fc: {name: a, outputs: 20}, relu, "
                   "conv: {name: b, filters: 17, kernel: 1}, relu, "
                   "fc: {name: c, outputs: classes}")},
    {.name = "maxpool overlaps, odd size, relu after it",
     .text = MODEL("[2, 9, 11]", "4",
                   "conv: {filters: 17, kernel: 3}, "
                   "maxpool: {kernel: 3, stride: 2}, relu, " TO_CLASSES)},
    {.name = "maxpool padded, from 3 channels",
     .text = MODEL("[2, 8, 7]", "4",
                   "conv: {filters: 3, kernel: 2}, relu, "
                   "maxpool: {kernel: 3, stride: 2, pad: 1}, " TO_CLASSES)},
    {.name = "maxpool 1x3 and 2x1, stride 1x2, leaves columns over",
     .text = MODEL("[2, 7, 12]", "4",
                   "conv: {filters: 20, kernel: 2}, relu, "
                   "maxpool: {name: a, kernel: [1, 3], stride: [1, 2], pad: [0, 1]}, "
                   "maxpool: {name: b, kernel: [2, 1], stride: [3, 1]}, " TO_CLASSES)},
    {.name = "maxpool of stride beyond its kernel",
     .text = MODEL("[3, 8, 8]", "4",
                   "conv: {filters: 5, kernel: 1}, "
                   "maxpool: {kernel: 2, stride: 3}, " TO_CLASSES)},
    {.name = "two classes",
     .text = MODEL("[1, 5, 5]", "2", "conv: {filters: 1, kernel: 2}, " TO_CLASSES)},
    {.name = "lenet", .channels = 1, .size = 16},
    {.name = "vgg-small", .channels = 3, .size = 8, .large = true},
};

static net_fixture open_case(const model_case *c, int64_t batch) {
    const net_options options = {.n_workers = 2, .seed = SEED};
    if (c->text) return net_open(c->text, batch, options);
    const bpt_model_override override = {.input = {c->channels, c->size, c->size}};
    return net_open_built_in(c->name, &override, batch, options);
}

/* ---- against double precision ---- */

/* Brings the logits of the last run out of the layout of the last layer. */
static void read_logits(const net_fixture *f, float *logits) {
    const bpt_network *net = f->net;
    const bpt_activation *a = &net->activations[f->model->n_layers];
    bpt_kernel *kernels[BPT_MAX_TILES];
    for (size_t t = 0; t < net->builder.n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(&net->builder, t), f->model->classes, 1,
                                1};
        const size_t first = (size_t)(net->builder.tile_start[t] * f->model->classes);
        const bpt_layout *plain;
        net_assert_ok(bpt_layout_plain(net->cpu, dims, 4, &plain));
        net_assert_ok(bpt_cpu_reorder(net->cpu, a->layout[t], plain, &kernels[t]));
        bpt_kernel_bind(kernels[t], BPT_SLOT_SRC, a->value[t]);
        bpt_kernel_bind(kernels[t], BPT_SLOT_DST, (bpt_ref){BPT_BLOCK_FLAT, first * sizeof(float)});
    }
    net_assert_ok(bpt_cpu_resolve(net->cpu, BPT_BLOCK_FLAT, (char *)logits));
    net_assert_ok(
        bpt_cpu_resolve(net->cpu, a->value[0].block, net->blocks.base[a->value[0].block]));
    net_assert_ok(bpt_cpu_reserve_scratch(net->cpu));
    for (size_t t = 0; t < net->builder.n_tiles; t++) net_assert_ok(bpt_kernel_run(kernels[t], 0));
}

/* Of a segment's largest gradient, and of each gradient by itself. The absolute part is what fp32
 * leaves of differences: of exp(log p) - 1 where a sample is learned, of sums that cancel. */
static const double SEGMENT_RTOL = 1e-4, ELEMENT_RTOL = 1e-3, ATOL = 4e-6;

static void check_segment(const bpt_segment *s, const float *gradient, const double *ref) {
    double largest = 0.0, worst = 0.0;
    for (size_t i = 0; i < s->count; i++) {
        const double value = (double)gradient[i], error = fabs(value - ref[i]);
        if (!(error <= ATOL + ELEMENT_RTOL * fabs(ref[i])))
            fail_msg("%s value %zu: the gradient is %.9g, not %.9g", s->name, i, value, ref[i]);
        largest = fmax(largest, fabs(ref[i]));
        worst = fmax(worst, error);
    }
    if (!(worst <= ATOL + SEGMENT_RTOL * largest))
        fail_msg("%s: a gradient is off by %.2g, the largest is %.2g", s->name, worst, largest);
}

static void check_gradient(const net_fixture *f, const float *gradient, const double *ref) {
    const bpt_segments *s = &f->model->segments;
    for (size_t i = 0; i < s->n; i++)
        check_segment(&s->items[i], gradient + s->items[i].offset, ref + s->items[i].offset);
}

static void check_loss(const bpt_batch_result *result, const ref_result *ref) {
    assert_int_equal(result->n_samples, ref->n_samples);
    assert_int_equal(result->n_correct, ref->n_correct);
    if (!(fabs(result->loss_sum - ref->loss_sum) <= 1e-5 * (fabs(ref->loss_sum) + 1.0)))
        fail_msg("the loss is %.9g, not %.9g", result->loss_sum, ref->loss_sum);
}

static void check_logits(const net_fixture *f, const double *ref) {
    const size_t n = (size_t)(f->batch * f->model->classes);
    float *logits = net_floats(n);
    read_logits(f, logits);
    const double error = ref_error(logits, ref, n);
    if (!(error <= 1e-5)) fail_msg("batch %d: the logits are off by %.2g", (int)f->batch, error);
    free(logits);
}

static void check_against_reference(const net_fixture *f) {
    double *ref_logits = ref_zeros((size_t)(f->batch * f->model->classes));
    double *ref_gradient = ref_zeros(f->n_weights);
    const float denominator = (float)f->batch;
    const ref_result ref = ref_network_f32(f->model, f->batch, f->pixels, f->labels, denominator,
                                           f->weights, ref_logits, ref_gradient);
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, denominator, &result));
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    check_loss(&result, &ref);
    check_gradient(f, gradient, ref_gradient);
    check_logits(f, ref_logits);
    free(gradient);
    free(ref_gradient);
    free(ref_logits);
}

static void test_reference(void **state) {
    const model_case *c = *state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        if (c->large && batches[i] > 16) break;
        net_fixture f = open_case(c, batches[i]);
        check_against_reference(&f);
        net_close(&f);
    }
}

/* Samples without a label count for nothing, whatever their pixels; here they are a whole tile and
 * parts of others. */
static void test_ignored_labels(void **state) {
    net_fixture f = open_case(*state, 23);
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

/* ---- against differences ---- */

/* The mean loss in fp32 is known to about 1e-7, so that a difference over 2 * STEP is known to 1e-5
 * and can judge gradients well above 1e-5 / 1e-2. Where a ReLU or a maximum switches within the
 * step, the difference is no derivative; there it is not judged. */
static const double STEP = 1.0 / 64, LARGE = 1e-2, DIFFERENCE_RTOL = 1e-2, SMOOTH_RTOL = 3e-3;

static double mean_loss(const net_fixture *f) {
    bpt_batch_result result;
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_WEIGHTS, f->weights));
    net_assert_ok(bpt_network_evaluate(f->net, f->pixels, f->labels, &result));
    return result.loss_sum / (double)f->batch;
}

typedef struct {
    double slope; /* between the two sides */
    double bend;  /* slope of the right side less that of the left */
} difference;

static difference difference_at(net_fixture *f, size_t i, double step, double loss) {
    const float w = f->weights[i];
    const float above = w + (float)step, below = w - (float)step;
    f->weights[i] = above;
    const double loss_above = mean_loss(f);
    f->weights[i] = below;
    const double loss_below = mean_loss(f);
    f->weights[i] = w;
    const double right = (double)above - (double)w, left = (double)w - (double)below;
    return (difference){(loss_above - loss_below) / (left + right),
                        (loss_above - loss) / right - (loss - loss_below) / left};
}

/* In a smooth function a smaller step keeps the slope, and the bend shrinks with it. A kink far
 * from the middle changes the slope, one near the middle keeps the bend; of two that make up for
 * each other at one step, the next step tells.
 * @return whether the slope can be judged; it is then in *slope */
static bool smooth_slope(net_fixture *f, size_t i, difference whole, double loss, double *slope) {
    static const double parts[] = {0.4, 0.55, 0.75};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const difference part = difference_at(f, i, STEP * parts[p], loss);
        const double most = SMOOTH_RTOL * fabs(whole.slope);
        if (fabs(whole.slope - part.slope) > most) return false;
        if (fabs(whole.bend * parts[p] - part.bend) > most) return false;
        *slope = part.slope;
    }
    return true;
}

/* All weights of a small segment, a few spread over a large one. */
static size_t stride_of(size_t count) {
    const size_t most = 61;
    return count <= most ? 1 : count / most;
}

static void check_differences(net_fixture *f, const float *gradient, size_t *n_large,
                              size_t *n_judged) {
    const bpt_segments *s = &f->model->segments;
    const double loss = mean_loss(f);
    for (size_t g = 0; g < s->n; g++)
        for (size_t j = 0; j < s->items[g].count; j += stride_of(s->items[g].count)) {
            const size_t i = s->items[g].offset + j;
            const double value = (double)gradient[i];
            const difference whole = difference_at(f, i, STEP, loss);
            if (fabs(whole.slope) < LARGE && fabs(value) < LARGE) continue;
            double slope;
            ++*n_large;
            if (!smooth_slope(f, i, whole, loss, &slope)) continue;
            ++*n_judged;
            if (!(fabs(slope - value) <= DIFFERENCE_RTOL * fabs(slope)))
                fail_msg("%s value %zu: the gradient is %.6g, the difference %.6g",
                         s->items[g].name, j, value, slope);
        }
}

static void test_differences(void **state) {
    const model_case *c = *state;
    net_fixture f = open_case(c, 5);
    bpt_batch_result result;
    size_t n_large = 0, n_judged = 0;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 5.0f, &result));
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
    check_differences(&f, gradient, &n_large, &n_judged);
    print_message("%zu of %zu differences judged\n", n_judged, n_large);
    assert_true(n_large > 0);
    assert_true(n_judged * 4 >= n_large);
    free(gradient);
    net_close(&f);
}

/* ---- one test of each sort for each model ---- */

enum { N_CASES = sizeof cases / sizeof *cases, N_SORTS = 3, NAME_SIZE = 96 };

static void add(struct CMUnitTest *test, char *name, const char *sort, const model_case *c,
                CMUnitTestFunction fn) {
    snprintf(name, NAME_SIZE, "%s: %s", sort, c->name);
    *test = (struct CMUnitTest){.name = name, .test_func = fn, .initial_state = (void *)c};
}

int main(void) {
    static char names[N_SORTS * N_CASES][NAME_SIZE];
    struct CMUnitTest tests[N_SORTS * N_CASES];
    size_t n = 0;
    print_message("seed %d\n", (int)SEED);
    for (size_t i = 0; i < N_CASES; i++, n++)
        add(&tests[n], names[n], "reference", &cases[i], test_reference);
    for (size_t i = 0; i < N_CASES; i++) {
        if (cases[i].large) continue;
        add(&tests[n], names[n], "ignored labels", &cases[i], test_ignored_labels);
        n++;
        add(&tests[n], names[n], "differences", &cases[i], test_differences);
        n++;
    }
    /* cmocka_run_group_tests() wants an array of known size */
    return _cmocka_run_group_tests("gradients", tests, n, NULL, NULL);
}
