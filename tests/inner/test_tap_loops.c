/* Weights' gradients from what is gathered for each tap, with plain matrix products between,
 * against sums over all outputs: strides, dilation, pads of any width, images smaller than the
 * kernel, tiles and ranges of filters; of floats and of bfloat16, whose values are copied as they
 * are.
 *
 * ctest: cpu TIMEOUT=60 */
#include "inner/layers/tap_loops.h"

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

enum { SEED = 20317, N_TILES = 3 };

typedef struct {
    bpt_conv_problem p;
    int64_t lanes, range; /* filters of a range */
} shape;

#define IMAGE(N, C, H, W, K, R, S)                                                                 \
    .n = (N), .c = (C), .h = (H), .w = (W), .k = (K), .r = (R), .s = (S)
#define WINDOW(SH, SW, PH, PW, DH, DW)                                                             \
    .stride = {(SH), (SW)}, .pad = {(PH), (PW)}, .dilation = {(DH), (DW)}

/* Outputs are counted in open_fixture(). */
static const shape shapes[] = {
    {{IMAGE(5, 8, 4, 4, 16, 3, 3), WINDOW(1, 1, 1, 1, 1, 1)}, 8, 8},
    {{IMAGE(3, 16, 7, 5, 48, 3, 3), WINDOW(1, 1, 1, 1, 1, 1)}, 16, 32},
    {{IMAGE(4, 8, 7, 6, 8, 3, 2), WINDOW(2, 3, 1, 0, 1, 1)}, 8, 8},
    {{IMAGE(7, 8, 9, 8, 24, 3, 3), WINDOW(3, 2, 2, 2, 2, 2)}, 8, 16},
    {{IMAGE(3, 8, 5, 6, 8, 1, 1), WINDOW(2, 2, 0, 0, 1, 1)}, 8, 8},
    {{IMAGE(6, 16, 1, 1, 16, 3, 3), WINDOW(1, 1, 1, 1, 1, 1)}, 16, 16},
    {{IMAGE(3, 8, 2, 2, 8, 5, 5), WINDOW(1, 1, 4, 4, 1, 1)}, 8, 8},
    {{IMAGE(4, 8, 3, 2, 8, 2, 2), WINDOW(1, 1, 1, 1, 1, 1)},
     8,
     8}, /* no column meets all outputs */
    /* Tiles of more than 8 samples, and what is left of those. */
    {{IMAGE(33, 16, 3, 4, 16, 3, 3), WINDOW(1, 1, 1, 1, 1, 1)}, 16, 16},
    {{IMAGE(48, 8, 4, 3, 8, 3, 3), WINDOW(2, 1, 1, 1, 1, 1)}, 8, 8},
};

typedef struct {
    bpt_conv_problem p;
    int64_t lanes, range;
    float *x, *dy; /* tile by tile, [n][blocks][h][w][lanes]; such as the type can hold */
} fixture;

static float random_value(void) {
    return (float)rand() / (float)RAND_MAX * 2.0f - 1.0f;
}

static void *zeros(int64_t n, size_t bytes) {
    void *x = calloc((size_t)n, bytes);
    assert_non_null(x);
    return x;
}

static float *values(bpt_value_type type, int64_t n) {
    float *x = zeros(n, sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = random_value();
        if (type == BPT_BF16) x[i] = bpt_from_bf16(bpt_to_bf16(x[i]));
    }
    return x;
}

static int64_t outputs(const bpt_conv_problem *p, int axis) {
    const int64_t in = axis ? p->w : p->h, kernel = axis ? p->s : p->r;
    const int64_t window = (kernel - 1) * p->dilation[axis] + 1;
    return (in + 2 * p->pad[axis] - window) / p->stride[axis] + 1;
}

static fixture open_fixture(const shape *s, bpt_value_type type) {
    fixture f = {.p = s->p, .lanes = s->lanes, .range = s->range};
    f.p.type = type;
    f.p.groups = 1;
    f.p.bias = true;
    f.p.p = outputs(&f.p, 0);
    f.p.q = outputs(&f.p, 1);
    f.x = values(type, f.p.n * f.p.c * f.p.h * f.p.w);
    f.dy = values(type, f.p.n * f.p.k * f.p.p * f.p.q);
    return f;
}

static void close_fixture(fixture *f) {
    free(f->x);
    free(f->dy);
}

/* ---- reference ---- */

/* Since samples lie one behind the other, whatever the tiles are. */
static int64_t at(const fixture *f, int64_t n, int64_t c, int64_t i, int64_t j, int64_t channels,
                  int64_t h, int64_t w) {
    return (((n * (channels / f->lanes) + c / f->lanes) * h + i) * w + j) * f->lanes + c % f->lanes;
}

static double weight_gradient(const fixture *f, int64_t k, int64_t c, int64_t r, int64_t s) {
    const bpt_conv_problem *p = &f->p;
    double sum = 0.0;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t i = 0; i < p->p; i++)
            for (int64_t j = 0; j < p->q; j++) {
                const int64_t y = i * p->stride[0] + r * p->dilation[0] - p->pad[0];
                const int64_t x = j * p->stride[1] + s * p->dilation[1] - p->pad[1];
                if (y < 0 || y >= p->h || x < 0 || x >= p->w) continue;
                sum += (double)f->x[at(f, n, c, y, x, p->c, p->h, p->w)] *
                       (double)f->dy[at(f, n, k, i, j, p->k, p->p, p->q)];
            }
    return sum;
}

static double bias_gradient(const fixture *f, int64_t k) {
    const bpt_conv_problem *p = &f->p;
    double sum = 0.0;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t i = 0; i < p->p * p->q; i++)
            sum += (double)f->dy[at(f, n, k, i / p->q, i % p->q, p->k, p->p, p->q)];
    return sum;
}

/* ---- what is tested ---- */

static float value_at(bpt_value_type type, const void *x, int64_t i) {
    return type == BPT_F32 ? ((const float *)x)[i] : bpt_from_bf16(((const bpt_bf16 *)x)[i]);
}

static void *in_memory(bpt_value_type type, const float *x, int64_t n) {
    void *out = zeros(n, bpt_value_bytes(type));
    for (int64_t i = 0; i < n; i++)
        if (type == BPT_F32)
            ((float *)out)[i] = x[i];
        else
            ((bpt_bf16 *)out)[i] = bpt_to_bf16(x[i]);
    return out;
}

static bpt_tap_tile tile_of(const fixture *f, int64_t t) {
    const int64_t first = f->p.n * t / N_TILES;
    return (bpt_tap_tile){first, f->p.n * (t + 1) / N_TILES - first, f->lanes};
}

/* As the kernels of a range do: sums over what the tap meets, rows that are neighbours. */
static float *multiply(const fixture *f, int64_t filters, int64_t r, int64_t s, const void *source,
                       const void *gradient) {
    const bpt_conv_problem *p = &f->p;
    const bpt_tap_span rows = bpt_tap_span_of(p, 0, r), columns = bpt_tap_span_of(p, 1, s);
    const int64_t row = columns.n * p->n, n = rows.n * row;
    if (n == 0) return NULL;
    const int64_t input = rows.first * p->stride[0] + r * p->dilation[0] - p->pad[0];
    const int64_t a = bpt_tap_source(p, s) + bpt_tap_row(p, input) * row;
    const int64_t b = bpt_tap_gradient(p, filters, s) + rows.first * row * filters;
    float *out = zeros(p->c * filters, sizeof *out);
    for (int64_t c = 0; c < p->c; c++)
        for (int64_t k = 0; k < filters; k++) {
            double sum = 0.0;
            for (int64_t i = 0; i < n; i++)
                sum += (double)value_at(p->type, source, a + c * bpt_tap_channel(p, s) + i) *
                       (double)value_at(p->type, gradient, b + i * filters + k);
            out[c * filters + k] = (float)sum;
        }
    return out;
}

static void range_gradient(const fixture *f, bpt_tap_filters filters, const void *source,
                           const void *dy, float *dw, float *bias) {
    const bpt_conv_problem *p = &f->p;
    const int64_t sample = p->k * p->p * p->q * (int64_t)bpt_value_bytes(p->type);
    void *gradient = zeros(bpt_tap_gradient(p, filters.n, p->s), bpt_value_bytes(p->type));
    for (int64_t t = 0; t < N_TILES; t++) {
        const bpt_tap_tile tile = tile_of(f, t);
        const char *of_tile = (const char *)dy + tile.first * sample;
        bpt_tap_gather_gradient(p, tile, filters, of_tile, gradient);
        bpt_tap_sum_bias(p, tile, filters, of_tile, bias + t * p->k + filters.first);
    }
    for (int64_t tap = 0; tap < p->r * p->s; tap++) {
        float *product = multiply(f, filters.n, tap / p->s, tap % p->s, source, gradient);
        bpt_tap_store(p, f->lanes, filters, tap, product, dw);
        free(product);
    }
    free(gradient);
}

static void check_near(const char *what, double x, double ref) {
    if (!(fabs(x - ref) <= 1e-5 + 1e-5 * fabs(ref))) fail_msg("%s: %.9g, not %.9g", what, x, ref);
}

static void check_weights(const fixture *f, const float *dw) {
    const bpt_conv_problem *p = &f->p;
    const int64_t l = f->lanes;
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t c = 0; c < p->c; c++)
            for (int64_t tap = 0; tap < p->r * p->s; tap++) {
                const int64_t block = (k / l * (p->c / l) + c / l) * p->r * p->s + tap;
                check_near("weight", (double)dw[block * l * l + c % l * l + k % l],
                           weight_gradient(f, k, c, tap / p->s, tap % p->s));
            }
}

static void check_bias(const fixture *f, const float *bias) {
    for (int64_t k = 0; k < f->p.k; k++) {
        double sum = 0.0;
        for (int64_t t = 0; t < N_TILES; t++) sum += (double)bias[t * f->p.k + k];
        check_near("bias", sum, bias_gradient(f, k));
    }
}

static void check(const fixture *f) {
    const bpt_conv_problem *p = &f->p;
    const int64_t n_x = p->n * p->c * p->h * p->w, n_w = p->k * p->c * p->r * p->s;
    void *x = in_memory(p->type, f->x, n_x);
    void *dy = in_memory(p->type, f->dy, p->n * p->k * p->p * p->q);
    void *source = zeros(bpt_tap_source(p, p->s), bpt_value_bytes(p->type));
    float *dw = zeros(n_w, sizeof *dw), *bias = zeros(N_TILES * p->k, sizeof *bias);
    for (int64_t i = 0; i < n_w; i++) dw[i] = NAN; /* all of it is written */
    for (int64_t t = 0; t < N_TILES; t++) {
        const bpt_tap_tile tile = tile_of(f, t);
        const int64_t bytes = n_x / p->n * (int64_t)bpt_value_bytes(p->type);
        bpt_tap_gather_source(p, tile, (const char *)x + tile.first * bytes, source);
    }
    for (int64_t k = 0; k < p->k; k += f->range) {
        const int64_t left = p->k - k;
        const bpt_tap_filters filters = {k, left < f->range ? left : f->range};
        range_gradient(f, filters, source, dy, dw, bias);
    }
    check_weights(f, dw);
    check_bias(f, bias);
    free(x);
    free(dy);
    free(source);
    free(dw);
    free(bias);
}

static void test_gradients(void **state) {
    (void)state;
    srand(SEED);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int type = BPT_F32; type <= BPT_BF16; type++) {
            print_message("shape %d, %s\n", (int)i, type == BPT_F32 ? "fp32" : "bf16");
            fixture f = open_fixture(&shapes[i], (bpt_value_type)type);
            check(&f);
            close_fixture(&f);
        }
}

/* ---- geometry ---- */

static void test_outputs_of_a_tap(void **state) {
    (void)state;
    const bpt_conv_problem p = {IMAGE(1, 8, 7, 5, 8, 3, 3), .p = 4, .q = 5,
                                WINDOW(2, 1, 1, 1, 1, 1)};
    const bpt_tap_span rows[] = {{1, 3}, {0, 4}, {0, 3}}, columns[] = {{1, 4}, {0, 5}, {0, 4}};
    for (int64_t tap = 0; tap < 3; tap++) {
        assert_int_equal(bpt_tap_span_of(&p, 0, tap).first, rows[tap].first);
        assert_int_equal(bpt_tap_span_of(&p, 0, tap).n, rows[tap].n);
        assert_int_equal(bpt_tap_span_of(&p, 1, tap).first, columns[tap].first);
        assert_int_equal(bpt_tap_span_of(&p, 1, tap).n, columns[tap].n);
    }
    const int64_t order[] = {0, 4, 1, 5, 2, 6, 3}; /* even rows, then odd ones */
    for (int64_t i = 0; i < 7; i++) assert_int_equal(bpt_tap_row(&p, i), order[i]);
}

/* No two channels share a set of the cache, and all begin with a line. */
static void test_channels_are_odd_lines_apart(void **state) {
    (void)state;
    bpt_conv_problem p = {IMAGE(64, 8, 4, 4, 8, 3, 3), .p = 4, .q = 4, WINDOW(1, 1, 1, 1, 1, 1)};
    assert_int_equal(bpt_tap_channel(&p, 1), (64 + 1) * 16);
    assert_int_equal(bpt_tap_channel(&p, 0), (48 + 1) * 16);
    p.type = BPT_BF16;
    assert_int_equal(bpt_tap_channel(&p, 1), (32 + 1) * 32);
    assert_int_equal(bpt_tap_source(&p, 2), 8 * (bpt_tap_channel(&p, 0) + bpt_tap_channel(&p, 1)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_outputs_of_a_tap),
        cmocka_unit_test(test_channels_are_odd_lines_apart),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
