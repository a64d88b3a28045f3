/* The transforms of Winograd's algorithm, with plain matrix products between them, against
 * convolutions in double precision: forward, and both gradients. Images that fill their patches and
 * images that do not, channels that fill their blocks and that do not, weights with gaps; of
 * floats, and of bfloat16 as exactly as its digits allow.
 *
 * ctest: cpu TIMEOUT=60 */
#include "inner/loops/winograd_native.h"

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

enum { SEED = 20291, SAMPLES = 2, GAP = 5 };

typedef struct {
    int64_t c, k, h, w, pad, lanes;
    bpt_value_type type;
} shape;

static const shape shapes[] = {
    {8, 8, 4, 4, 1, 8, BPT_F32},     {8, 16, 8, 12, 1, 8, BPT_F32},
    {11, 5, 7, 9, 1, 8, BPT_F32},    {16, 24, 6, 7, 0, 8, BPT_F32},
    {16, 16, 9, 5, 1, 16, BPT_F32},  {20, 33, 10, 3, 1, 16, BPT_F32},
    {3, 8, 3, 13, 0, 8, BPT_F32},    {8, 8, 1, 1, 1, 8, BPT_F32},
    {16, 16, 4, 4, 1, 16, BPT_BF16}, {16, 32, 8, 12, 1, 16, BPT_BF16},
    {11, 5, 7, 9, 1, 16, BPT_BF16},  {20, 33, 10, 3, 1, 16, BPT_BF16},
    {16, 40, 6, 7, 0, 16, BPT_BF16}, {3, 8, 3, 13, 0, 16, BPT_BF16},
    {8, 8, 1, 1, 1, 16, BPT_BF16},
};

/* A convolution; activations [n][blocks][h][w][lanes], spare lanes zeros. Floats, also of bfloat16:
 * such as it can hold. */
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

/* @return the values as the type has them in memory */
static void *in_memory(bpt_value_type type, const float *x, int64_t n) {
    char *out = calloc((size_t)n, bpt_value_bytes(type));
    assert_non_null(out);
    for (int64_t i = 0; i < n; i++)
        if (type == BPT_F32)
            ((float *)(void *)out)[i] = x[i];
        else
            ((bpt_bf16 *)(void *)out)[i] = bpt_to_bf16(x[i]);
    return out;
}

static float value_at(bpt_value_type type, const void *x, int64_t i) {
    return type == BPT_F32 ? ((const float *)x)[i] : bpt_from_bf16(((const bpt_bf16 *)x)[i]);
}

static int64_t whole(int64_t channels, int64_t lanes) {
    return (channels + lanes - 1) / lanes * lanes;
}

static int64_t at(int64_t n, int64_t c, int64_t i, int64_t j, int64_t all, int64_t h, int64_t w,
                  int64_t lanes) {
    return (((n * (all / lanes) + c / lanes) * h + i) * w + j) * lanes + c % lanes;
}

static float *activation(const shape *s, int64_t channels, int64_t all, int64_t h, int64_t w) {
    float *x = zeros(SAMPLES * all * h * w);
    for (int64_t n = 0; n < SAMPLES; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < h * w; i++) {
                const float value = random_value();
                x[at(n, c, i / w, i % w, all, h, w, s->lanes)] =
                    s->type == BPT_F32 ? value : bpt_from_bf16(bpt_to_bf16(value));
            }
    return x;
}

static fixture open_fixture(shape s) {
    fixture f = {.s = s, .p = s.h + 2 * s.pad - 2, .q = s.w + 2 * s.pad - 2};
    f.all_c = whole(s.c, s.lanes);
    f.all_k = whole(s.k, s.lanes);
    f.x = activation(&s, s.c, f.all_c, s.h, s.w);
    f.y = activation(&s, s.k, f.all_k, f.p, f.q);
    f.filters =
        (bpt_winograd_filters){s.type, s.k, s.c, s.c * (9 + GAP), 9 + GAP, f.all_k, f.all_c};
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

/* Wrong by rounding alone: bfloat16 has digits for 2^-9 of a value, and rounds factors on the way.
 */
static void check_near(const char *what, bpt_value_type type, const float *x, const double *ref,
                       int64_t n) {
    const double most = type == BPT_F32 ? 2e-6 : 8e-3;
    double error = 0.0, norm = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)x[i] - ref[i]) * ((double)x[i] - ref[i]);
        norm += ref[i] * ref[i];
    }
    if (!(sqrt(error / norm) <= most)) fail_msg("%s: wrong by %g", what, sqrt(error / norm));
}

/* Matrices as many as there are transformed values, each on a plane of its own. */
typedef struct {
    bpt_value_type type;
    int64_t n; /* values of one */
    void *values;
} matrices;

static matrices new_matrices(const shape *s, bpt_value_type type, int64_t n) {
    const int64_t all = bpt_winograd_values(s->type) * bpt_winograd_plane(type, n);
    matrices m = {type, n, calloc((size_t)all, bpt_value_bytes(type))};
    assert_non_null(m.values);
    return m;
}

static float element(const matrices *m, int64_t v, int64_t i) {
    return value_at(m->type, m->values, v * bpt_winograd_plane(m->type, m->n) + i);
}

/* out[rows][columns] = a[rows][inner] b[inner][columns], or with a as [inner][rows]. */
static void multiply(const shape *s, const matrices *a, bool transposed, const matrices *b,
                     matrices *out, int64_t rows, int64_t inner, int64_t columns) {
    const int64_t plane = bpt_winograd_plane(BPT_F32, out->n);
    assert_int_equal(out->n, rows * columns);
    for (int64_t v = 0; v < bpt_winograd_values(s->type); v++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                double sum = 0.0;
                for (int64_t l = 0; l < inner; l++)
                    sum += (double)element(a, v, transposed ? l * rows + i : i * inner + l) *
                           (double)element(b, v, l * columns + j);
                ((float *)out->values)[v * plane + i * columns + j] = (float)sum;
            }
}

static bpt_winograd_image image(const shape *s, int64_t all, int64_t h, int64_t w, int64_t of_h,
                                int64_t of_w, int64_t pad) {
    const int64_t patch = bpt_winograd_patch(s->type);
    return (bpt_winograd_image){.type = s->type,
                                .n = SAMPLES,
                                .there = SAMPLES,
                                .blocks = all / s->lanes,
                                .lanes = s->lanes,
                                .h = h,
                                .w = w,
                                .rows = (of_h + patch - 1) / patch,
                                .columns = (of_w + patch - 1) / patch,
                                .pad = {pad, pad}};
}

/* Windows of one activation times filters are patches of the other. */
static float *convolve(const fixture *f, bool turned, const float *bias, bool relu) {
    const shape *s = &f->s;
    const int64_t c = f->all_c, k = f->all_k, from = turned ? k : c, to = turned ? c : k;
    const bpt_winograd_image x = image(s, c, s->h, s->w, f->p, f->q, s->pad),
                             y = image(s, k, f->p, f->q, f->p, f->q, 0),
                             dy = image(s, k, f->p, f->q, s->h, s->w, 2 - s->pad),
                             dx = image(s, c, s->h, s->w, s->h, s->w, 0);
    const bpt_winograd_image *in = turned ? &dy : &x, *out = turned ? &dx : &y;
    const int64_t n = SAMPLES * to * out->h * out->w;
    matrices v = new_matrices(s, s->type, bpt_winograd_matrix(in));
    matrices u = new_matrices(s, s->type, c * k);
    matrices m = new_matrices(s, BPT_F32, bpt_winograd_matrix(out));
    void *given = in_memory(s->type, turned ? f->y : f->x, SAMPLES * from * in->h * in->w);
    float *result = zeros(n);
    void *raw = in_memory(s->type, result, n);
    bpt_winograd_windows(in, given, v.values);
    bpt_winograd_transform_filters(&f->filters, turned, f->w, u.values);
    multiply(s, &v, false, &u, &m, SAMPLES * in->rows * in->columns, from, to);
    bpt_winograd_results(out, m.values, bias, s->k, relu, raw);
    for (int64_t i = 0; i < n; i++) result[i] = value_at(s->type, raw, i);
    free(v.values);
    free(u.values);
    free(m.values);
    free(given);
    free(raw);
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
    check_near(relu ? "rectified" : "forward", f->s.type, y, ref, n);
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
    check_near("backward data", f->s.type, dx, ref, n);
    free(dx);
    free(ref);
}

static void check_weights(const fixture *f) {
    const shape *s = &f->s;
    const int64_t n = s->k * s->c * 9;
    const int64_t c = f->all_c, k = f->all_k;
    const bpt_winograd_image in = image(s, c, s->h, s->w, f->p, f->q, s->pad),
                             out = image(s, k, f->p, f->q, f->p, f->q, 0);
    matrices v = new_matrices(s, s->type, bpt_winograd_matrix(&in));
    matrices z = new_matrices(s, s->type, bpt_winograd_matrix(&out));
    matrices du = new_matrices(s, BPT_F32, c * k);
    void *x = in_memory(s->type, f->x, SAMPLES * c * s->h * s->w);
    void *dy = in_memory(s->type, f->y, SAMPLES * k * f->p * f->q);
    float *dw = zeros(n);
    double *ref = calloc((size_t)n, sizeof *ref);
    bpt_winograd_filters dense = f->filters;
    dense.input_stride = 9;
    dense.output_stride = 9 * s->c;
    assert_non_null(ref);
    for_each_product(f, add_weight, ref);
    bpt_winograd_windows(&in, x, v.values);
    bpt_winograd_gradients(&out, dy, z.values);
    multiply(s, &v, true, &z, &du, c, SAMPLES * in.rows * in.columns, k);
    bpt_winograd_filter_gradients(&dense, du.values, dw);
    check_near("backward weights", s->type, dw, ref, n);
    free(v.values);
    free(z.values);
    free(du.values);
    free(x);
    free(dy);
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

/* ---- the loops for bfloat16 and those for all types ---- */

/* Where nothing is written it stays, which both must agree on as well. */
static void *untouched(size_t bytes) {
    void *x = malloc(bytes);
    assert_non_null(x);
    memset(x, 0x5a, bytes);
    return x;
}

static void *random_values(bpt_value_type type, int64_t n) {
    float *x = zeros(n);
    for (int64_t i = 0; i < n; i++) x[i] = random_value();
    x[n / 2] = NAN;
    x[n / 3] = -0.0f;
    x[n / 5] = -INFINITY;
    void *out = in_memory(type, x, n);
    free(x);
    return out;
}

static void check_in(const bpt_winograd_image *m, bool windows) {
    const bpt__winograd_transforms *native = bpt__winograd_native(), *plain = &bpt__winograd_plain;
    const size_t bytes = (size_t)(bpt_winograd_values(BPT_BF16) *
                                  bpt_winograd_plane(BPT_BF16, bpt_winograd_matrix(m))) *
                         sizeof(bpt_bf16);
    void *x = random_values(BPT_BF16, m->there * m->blocks * m->lanes * m->h * m->w);
    void *a = untouched(bytes), *b = untouched(bytes);
    (windows ? native->windows : native->gradients)(m, x, a);
    (windows ? plain->windows : plain->gradients)(m, x, b);
    assert_memory_equal(a, b, bytes);
    free(a);
    free(b);
    free(x);
}

static void check_out(const bpt_winograd_image *m, const float *bias, int64_t n_bias, bool relu) {
    const int64_t n = m->n * m->blocks * m->lanes * m->h * m->w;
    const size_t bytes = (size_t)n * sizeof(bpt_bf16);
    void *v = random_values(BPT_F32, bpt_winograd_values(BPT_BF16) *
                                         bpt_winograd_plane(BPT_F32, bpt_winograd_matrix(m)));
    void *a = untouched(bytes), *b = untouched(bytes);
    bpt__winograd_native()->results(m, v, bias, n_bias, relu, a);
    bpt__winograd_plain.results(m, v, bias, n_bias, relu, b);
    assert_memory_equal(a, b, bytes);
    free(a);
    free(b);
    free(v);
}

/* Also where fewer samples are there than matrices have rows for. */
static void test_native_transforms_have_the_same_bits(void **state) {
    (void)state;
    enum { MAX_BIAS = 40 };
    if (!bpt__winograd_native()) skip();
    float bias[MAX_BIAS];
    for (int i = 0; i < MAX_BIAS; i++) bias[i] = random_value();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        const int64_t p = s->h + 2 * s->pad - 2, q = s->w + 2 * s->pad - 2;
        if (s->type != BPT_BF16 || p < 1 || q < 1) continue;
        bpt_winograd_image in = image(s, whole(s->c, s->lanes), s->h, s->w, p, q, s->pad);
        bpt_winograd_image out = image(s, whole(s->k, s->lanes), p, q, p, q, 0);
        in.n = out.n = SAMPLES + 1;
        check_in(&in, true);
        check_in(&out, false);
        for (int relu = 0; relu < 2; relu++) {
            check_out(&out, bias, s->k, relu);
            check_out(&out, NULL, s->k, relu);
        }
    }
}

/* Spare channels of results are zeros, whatever the bias. */
static void test_spare_channels_stay_zeros(void **state) {
    (void)state;
    static const shape spare[] = {{8, 5, 6, 6, 1, 8, BPT_F32}, {16, 5, 6, 6, 1, 16, BPT_BF16}};
    for (size_t s = 0; s < sizeof spare / sizeof *spare; s++) {
        fixture f = open_fixture(spare[s]);
        const float bias[] = {1, 2, 3, 4, 5};
        float *y = convolve(&f, false, bias, true);
        for (int64_t i = 0; i < SAMPLES * f.p * f.q; i++)
            for (int64_t l = 5; l < f.s.lanes; l++) assert_true(y[i * f.s.lanes + l] == 0.0f);
        free(y);
        close_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_convolution_and_its_gradients),
        cmocka_unit_test(test_native_transforms_have_the_same_bits),
        cmocka_unit_test(test_spare_channels_stay_zeros),
    };
    srand(SEED);
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
