#include "tests/inner/gradient_cases.h"

#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20260, MAX_TESTS = 96, NAME_SIZE = 96 };

#define MODEL(input, classes, layers)                                                              \
    "{name: t, input: " input ", classes: " classes ", layers: [" layers "]}"
#define TO_CLASSES "fc: {outputs: classes}"

/* Names say what is special. Few layers each: with every layer there are more values that lie
 * within rounding error of a kink (ReLU at 0, two equal values in a window). */
const gradient_case gradient_cases[] = {
    {.name = "fc alone", .text = MODEL("[1, 1, 13]", "3", TO_CLASSES)},
    {.name = "fc of an image, without bias",
     .text = MODEL("[3, 5, 7]", "17", "fc: {outputs: classes, bias: false}")},
    {.name = "fc in several pieces",
     .text = MODEL("[2, 9, 11]", "5",
                   "fc: {name: a, outputs: 150}, relu, fc: {name: b, outputs: 70, bias: false}, "
                   "relu, fc: {name: c, outputs: classes}"),
     .small = MODEL("[1, 3, 5]", "5",
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
                   "2}, " TO_CLASSES),
     .small = MODEL("[3, 4, 3]", "10",
                    "conv: {name: a, filters: 16, kernel: 3, pad: 1}, relu, "
                    "conv: {name: b, filters: 32, kernel: 3, pad: 1}, relu, maxpool: {kernel: "
                    "2}, " TO_CLASSES)},
    {.name = "conv 3x3 padded, 17 to 33 to 20 channels",
     .text =
         MODEL("[17, 6, 7]", "5",
               "conv: {name: a, filters: 33, kernel: 3, pad: 1}, relu, "
               "conv: {name: b, filters: 20, kernel: 3, pad: 1, bias: false}, relu, " TO_CLASSES),
     .small =
         MODEL("[17, 2, 3]", "5",
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
                   "conv: {name: b, filters: 2, kernel: 5, pad: 1}, " TO_CLASSES),
     .small = MODEL("[3, 4, 5]", "4",
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
               "relu, " TO_CLASSES),
     .small =
         MODEL("[3, 5, 8]", "4",
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
    {.name = "lenet",
     .channels = 1,
     .size = 16,
     .small = MODEL("[1, 16, 16]", "5",
                    "conv: {name: conv1, filters: 3, kernel: 5}, relu, "
                    "maxpool: {name: pool1, kernel: 2}, "
                    "conv: {name: conv2, filters: 5, kernel: 5}, relu, "
                    "maxpool: {name: pool2, kernel: 2}, "
                    "fc: {name: fc1, outputs: 11}, relu, fc: {name: fc2, outputs: classes}")},
    {.name = "vgg-small",
     .channels = 3,
     .size = 8,
     .large = true,
     .small = MODEL("[3, 8, 8]", "5",
                    "conv: {name: conv1_1, filters: 5, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv1_2, filters: 5, kernel: 3, pad: 1}, relu, "
                    "maxpool: {name: pool1, kernel: 2}, "
                    "conv: {name: conv2_1, filters: 7, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv2_2, filters: 7, kernel: 3, pad: 1}, relu, "
                    "maxpool: {name: pool2, kernel: 2}, "
                    "conv: {name: conv3_1, filters: 9, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv3_2, filters: 9, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv3_3, filters: 9, kernel: 3, pad: 1}, relu, "
                    "maxpool: {name: pool3, kernel: 2}, "
                    "fc: {name: fc1, outputs: 11}, relu, fc: {name: fc2, outputs: classes}")},
};

const size_t gradient_n_cases = sizeof gradient_cases / sizeof *gradient_cases;

static const net_options options = {.n_workers = 2, .seed = SEED};

net_fixture gradient_open(const gradient_case *c, int64_t batch) {
    if (c->text) return net_open(c->text, batch, options);
    const bpt_model_override override = {.input = {c->channels, c->size, c->size}};
    return net_open_built_in(c->name, &override, batch, options);
}

net_fixture gradient_open_small(const gradient_case *c, int64_t batch) {
    return net_open(c->small ? c->small : c->text, batch, options);
}

/* ---- against double precision ---- */

static const double LENGTH_RTOL = 1e-5, VALUE_RTOL = 1e-4, LARGE = 0.1;

static double length(const double *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static void check_segment(const bpt_segment *s, const float *gradient, const double *ref,
                          const double *terms) {
    const double large = LARGE * length(terms, s->count); /* of a whole segment */
    const double large_value = large / sqrt((double)s->count);
    double error2 = 0.0;
    for (size_t i = 0; i < s->count; i++) {
        const double value = (double)gradient[i], error = value - ref[i];
        error2 += error * error;
        if (!(fabs(error) <= VALUE_RTOL * fmax(fabs(ref[i]), large_value)))
            fail_msg("%s value %zu: the gradient is %.9g, not %.9g", s->name, i, value, ref[i]);
    }
    if (!(sqrt(error2) <= LENGTH_RTOL * fmax(length(ref, s->count), large)))
        fail_msg("%s: the gradient is off by %.2g of its length", s->name,
                 sqrt(error2) / length(ref, s->count));
}

void gradient_check(const net_fixture *f, const float *gradient, const double *ref,
                    const double *terms) {
    const bpt_segments *s = &f->model->segments;
    for (size_t i = 0; i < s->n; i++) {
        const size_t first = s->items[i].offset;
        check_segment(&s->items[i], gradient + first, ref + first, terms + first);
    }
}

/* ---- one test of each sort for each model ---- */

int gradient_run(const char *group, const gradient_sort *sorts, size_t n_sorts) {
    static char names[MAX_TESTS][NAME_SIZE];
    struct CMUnitTest tests[MAX_TESTS];
    size_t n = 0;
    print_message("seed %d\n", (int)SEED);
    assert_true(n_sorts * gradient_n_cases <= MAX_TESTS);
    for (size_t s = 0; s < n_sorts; s++)
        for (size_t i = 0; i < gradient_n_cases; i++, n++) {
            snprintf(names[n], NAME_SIZE, "%s: %s", sorts[s].name, gradient_cases[i].name);
            tests[n] = (struct CMUnitTest){.name = names[n],
                                           .test_func = sorts[s].run,
                                           .initial_state = (void *)&gradient_cases[i]};
        }
    /* cmocka_run_group_tests() wants an array of known size */
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}
