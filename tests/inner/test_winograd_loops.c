/* The transforms of Winograd's algorithm, with plain matrix products between them, against
 * convolutions in double precision: forward, and both gradients. Images that fill their patches and
 * images that do not, channels that fill their blocks and that do not, weights with gaps.
 *
 * ctest: cpu TIMEOUT=60 */
#include "inner/winograd_loops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20291, VALUES = BPT_WINOGRAD_VALUES, SAMPLES = 2, GAP = 5 };

typedef struct {
    int64_t c, k, h, w, pad, lanes;
} shape;

static const shape shapes[] = {
    {8, 8, 4, 4, 1, 8},    {8, 16, 8, 12, 1, 8},   {11, 5, 7, 9, 1, 8}, {16, 24, 6, 7, 0, 8},
    {16, 16, 9, 5, 1, 16}, {20, 33, 10, 3, 1, 16}, {3, 8, 3, 13, 0, 8}, {8, 8, 1, 1, 1, 8},
};

/* A convolution; activations [n][blocks][h][w][lanes], spare lanes zeros, as are all outputs. */
typedef struct {
    shape s;
    int64_t p, q, all_c, all_k; /* all: with spare channels */
    float *x, *y, *w;           /* w: gaps between filters hold numbers that must not matter */
    bpt_winograd_filters filters;
} fixture;

static float random_value(void) {
    return (float)rand() / (float)RAND_MAX - 0.5f;
}

static float *zeros(int64_t n) {
    float *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    return x;
}

static int64_t whole(int64_t channels, int64_t lanes) {
    return (channels + lanes - 1) / lanes * lanes;
}

static int64_t at(int64_t n, int64_t c, int64_t i, int64_t j, int64_t all, int64_t h, int64_t w,
                  int64_t lanes) {
    return (((n * (all / lanes) + c / lanes) * h + i) * w + j) * lanes + c % lanes;
}

static float *activation(int64_t channels, int64_t all, int64_t h, int64_t w, int64_t lanes) {
    float *x = zeros(SAMPLES * all * h * w);
    for (int64_t n = 0; n < SAMPLES; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < h * w; i++)
                x[at(n, c, i / w, i % w, all, h, w, lanes)] = random_value();
    return x;
}

static fixture open_fixture(shape s) {
    fixture f = {.s = s, .p = s.h + 2 * s.pad - 2, .q = s.w + 2 * s.pad - 2};
    f.all_c = whole(s.c, s.lanes);
    f.all_k = whole(s.k, s.lanes);
    f.x = activation(s.c, f.all_c, s.h, s.w, s.lanes);
    f.y = activation(s.k, f.all_k, f.p, f.q, s.lanes);
    f.filters = (bpt_winograd_filters){s.k, s.c, s.c * (9 + GAP), 9 + GAP, f.all_k, f.all_c};
    f.w = zeros(s.k * s.c * (9 + GAP));
    for (int64_t i = 0; i < s.k * s.c * (9 + GAP); i++) f.w[i] = random_value();
    return f;
}

static void close_fixture(fixture *f) {
    free(f->x);
    free(f->y);
    free(f->w);
}

static double weight(const fixture *f, const float *w, int64_t k, int64_t c, int64_t i) {
    return (double)w[k * f->filters.output_stride + c * f->filters.input_stride + i];
}

/* Calls term() for each product of an input, a weight and an output. */
typedef void term(void *arg, const fixture *f, int64_t x, int64_t y, int64_t k, int64_t c,
                  int64_t i);

static void for_each_product(const fixture *f, term *call, void *arg) {
    const shape *s = &f->s;
    for (int64_t n = 0; n < SAMPLES; n++)
        for (int64_t k = 0; k < s->k; k++)
            for (int64_t c = 0; c < s->c; c++)
                for (int64_t o = 0; o < f->p * f->q * 9; o++) {
                    const int64_t p = o / 9 / f->q, q = o / 9 % f->q, i = o % 9;
                    const int64_t row = p + i / 3 - s->pad, column = q + i % 3 - s->pad;
                    if (row < 0 || row >= s->h || column < 0 || column >= s->w) continue;
                    call(arg, f, at(n, c, row, column, f->all_c, s->h, s->w, s->lanes),
                         at(n, k, p, q, f->all_k, f->p, f->q, s->lanes), k, c, i);
                }
}

static void add_result(void *sum, const fixture *f, int64_t x, int64_t y, int64_t k, int64_t c,
                       int64_t i) {
    ((double *)sum)[y] += (double)f->x[x] * weight(f, f->w, k, c, i);
}

static void add_data(void *sum, const fixture *f, int64_t x, int64_t y, int64_t k, int64_t c,
                     int64_t i) {
    ((double *)sum)[x] += (double)f->y[y] * weight(f, f->w, k, c, i);
}

static void add_weight(void *sum, const fixture *f, int64_t x, int64_t y, int64_t k, int64_t c,
                       int64_t i) {
    ((double *)sum)[(k * f->s.c + c) * 9 + i] += (double)f->x[x] * (double)f->y[y];
}

static void check_near(const char *what, const float *x, const double *ref, int64_t n) {
    double error = 0.0, norm = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)x[i] - ref[i]) * ((double)x[i] - ref[i]);
        norm += ref[i] * ref[i];
    }
    if (!(sqrt(error / norm) <= 2e-6)) fail_msg("%s: wrong by %g", what, sqrt(error / norm));
}

/* [36]: out[rows][columns] = a[rows][inner] b[inner][columns], or with a as [inner][rows]. */
static void multiply(const float *a, bool transposed, const float *b, float *out, int64_t rows,
                     int64_t inner, int64_t columns) {
    for (int64_t m = 0; m < VALUES; m++, a += rows * inner, b += inner * columns)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                double sum = 0.0;
                for (int64_t l = 0; l < inner; l++)
                    sum += (double)a[transposed ? l * rows + i : i * inner + l] *
                           (double)b[l * columns + j];
                *out++ = (float)sum;
            }
}

static bpt_winograd_image image(int64_t all, int64_t h, int64_t w, int64_t of_h, int64_t of_w,
                                int64_t pad, int64_t lanes) {
    return (bpt_winograd_image){SAMPLES, all / lanes,    lanes,          h,
                                w,       (of_h + 3) / 4, (of_w + 3) / 4, {pad, pad}};
}

/* Windows of one activation times filters are patches of the other. */
static float *convolve(const fixture *f, bool turned, const float *bias, bool relu) {
    const shape *s = &f->s;
    const int64_t c = f->all_c, k = f->all_k, from = turned ? k : c, to = turned ? c : k;
    const bpt_winograd_image x = image(c, s->h, s->w, f->p, f->q, s->pad, s->lanes),
                             y = image(k, f->p, f->q, f->p, f->q, 0, s->lanes),
                             dy = image(k, f->p, f->q, s->h, s->w, 2 - s->pad, s->lanes),
                             dx = image(c, s->h, s->w, s->h, s->w, 0, s->lanes);
    const bpt_winograd_image *in = turned ? &dy : &x, *out = turned ? &dx : &y;
    float *v = zeros((int64_t)bpt_winograd_floats(in)), *u = zeros(VALUES * c * k);
    float *m = zeros((int64_t)bpt_winograd_floats(out));
    float *result = zeros(SAMPLES * to * out->h * out->w);
    bpt_winograd_windows(in, turned ? f->y : f->x, v);
    bpt_winograd_transform_filters(&f->filters, turned, f->w, u);
    multiply(v, false, u, m, SAMPLES * in->rows * in->columns, from, to);
    bpt_winograd_results(out, m, bias, s->k, relu, result);
    free(v);
    free(u);
    free(m);
    return result;
}

static void check_forward(const fixture *f, bool relu) {
    const int64_t n = SAMPLES * f->all_k * f->p * f->q;
    double *ref = calloc((size_t)n, sizeof *ref);
    float *bias = zeros(f->s.k);
    assert_non_null(ref);
    for (int64_t i = 0; i < f->s.k; i++) bias[i] = random_value();
    for_each_product(f, add_result, ref);
    for (int64_t i = 0; i < n; i++) {
        const int64_t lane = i % f->s.lanes, block = i / (f->s.lanes * f->p * f->q);
        const int64_t k = block % (f->all_k / f->s.lanes) * f->s.lanes + lane;
        if (k < f->s.k) ref[i] += (double)bias[k];
        if (relu && ref[i] < 0.0) ref[i] = 0.0;
    }
    float *y = convolve(f, false, bias, relu);
    check_near(relu ? "rectified" : "forward", y, ref, n);
    free(y);
    free(bias);
    free(ref);
}

static void check_data(const fixture *f) {
    const int64_t n = SAMPLES * f->all_c * f->s.h * f->s.w;
    double *ref = calloc((size_t)n, sizeof *ref);
    assert_non_null(ref);
    for_each_product(f, add_data, ref);
    float *dx = convolve(f, true, NULL, false);
    check_near("backward data", dx, ref, n);
    free(dx);
    free(ref);
}

static void check_weights(const fixture *f) {
    const shape *s = &f->s;
    const int64_t n = s->k * s->c * 9;
    const bpt_winograd_image in = image(f->all_c, s->h, s->w, f->p, f->q, s->pad, s->lanes),
                             out = image(f->all_k, f->p, f->q, f->p, f->q, 0, s->lanes);
    float *v = zeros((int64_t)bpt_winograd_floats(&in)), *dw = zeros(n);
    float *z = zeros((int64_t)bpt_winograd_floats(&out)), *du = zeros(VALUES * f->all_c * f->all_k);
    double *ref = calloc((size_t)n, sizeof *ref);
    bpt_winograd_filters dense = f->filters;
    dense.input_stride = 9;
    dense.output_stride = 9 * s->c;
    assert_non_null(ref);
    for_each_product(f, add_weight, ref);
    bpt_winograd_windows(&in, f->x, v);
    bpt_winograd_gradients(&out, f->y, z);
    multiply(v, true, z, du, f->all_c, SAMPLES * in.rows * in.columns, f->all_k);
    bpt_winograd_filter_gradients(&dense, du, dw);
    check_near("backward weights", dw, ref, n);
    free(v);
    free(z);
    free(du);
    free(dw);
    free(ref);
}

static void test_a_convolution_and_its_gradients(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fixture f = open_fixture(shapes[i]);
        if (f.p > 0 && f.q > 0) {
            check_forward(&f, false);
            check_forward(&f, true);
            check_data(&f);
            check_weights(&f);
        }
        close_fixture(&f);
    }
}

/* Spare channels of results are zeros, whatever the bias. */
static void test_spare_channels_stay_zeros(void **state) {
    (void)state;
    fixture f = open_fixture((shape){8, 5, 6, 6, 1, 8});
    const float bias[] = {1, 2, 3, 4, 5};
    float *y = convolve(&f, false, bias, true);
    for (int64_t i = 0; i < SAMPLES * f.p * f.q; i++)
        for (int64_t l = 5; l < 8; l++) assert_true(y[i * 8 + l] == 0.0f);
    free(y);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_convolution_and_its_gradients),
        cmocka_unit_test(test_spare_channels_stay_zeros),
    };
    srand(SEED);
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
