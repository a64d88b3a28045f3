/* Pooling and response normalisation against loops in double precision.
 *
 * ctest: gpu TIMEOUT=120 */
#include "inner/cuda/cuda_windows.h"
#include "tests/inner/cuda_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define FOR_TYPES(type)                                                                            \
    for (bpt_value_type type = BPT_F32; type <= BPT_BF16; type = (bpt_value_type)(type + 1))

static double *doubles(size_t n) {
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/* ---- pooling ---- */

static size_t n_inputs(const bpt_cuda_pool *p) {
    return (size_t)(p->n * p->h * p->w * p->c);
}

static size_t n_outputs(const bpt_cuda_pool *p) {
    return (size_t)(p->n * p->p * p->q * p->c);
}

/* Calls with each value of the window of one y, row-major. */
typedef void (*value_fn)(void *arg, int64_t from);

static int64_t each_of_window(const bpt_cuda_pool *p, int64_t y, value_fn fn, void *arg) {
    const int64_t c = y % p->c, column = y / p->c % p->q, row = y / p->c / p->q % p->p;
    const int64_t n = y / p->c / p->q / p->p;
    int64_t count = 0;
    for (int64_t r = 0; r < p->kernel[0]; r++)
        for (int64_t s = 0; s < p->kernel[1]; s++) {
            const int64_t h = row * p->stride[0] - p->pad[0] + r;
            const int64_t w = column * p->stride[1] - p->pad[1] + s;
            if (h < 0 || h >= p->h || w < 0 || w >= p->w) continue;
            if (fn) fn(arg, ((n * p->h + h) * p->w + w) * p->c + c);
            count++;
        }
    return count;
}

typedef struct {
    const float *x;
    double *dx;
    double sum, part;
    int64_t largest; /* -1: none yet */
} window_values;

static void look_at(void *arg, int64_t from) {
    window_values *values = arg;
    values->sum += (double)values->x[from];
    if (values->largest < 0 || values->x[from] > values->x[values->largest]) values->largest = from;
}

static void give_part(void *arg, int64_t from) {
    window_values *values = arg;
    values->dx[from] += values->part;
}

static void pool_reference(const bpt_cuda_pool *p, const float *x, const float *dy, double *y,
                           double *dx) {
    for (int64_t i = 0; i < (int64_t)n_outputs(p); i++) {
        window_values values = {.x = x, .dx = dx, .largest = -1};
        const int64_t inside = each_of_window(p, i, look_at, &values);
        const int64_t area = p->kernel[0] * p->kernel[1];
        const double divisor = (double)(p->kind == BPT_CUDA_AVERAGE ? area : inside);
        assert_true(inside > 0);
        if (p->kind == BPT_CUDA_MAX) {
            y[i] = (double)x[values.largest];
            dx[values.largest] += (double)dy[i];
        } else {
            y[i] = values.sum / divisor;
            values.part = (double)dy[i] / divisor;
            each_of_window(p, i, give_part, &values);
        }
    }
}

/* Steps of a half, so that many are equal. */
static void make_equal(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = (float)(int)(2.0f * x[i]) / 2.0f;
}

static void check_pool(const bpt_cuda_pool *p) {
    const size_t n_x = n_inputs(p), n_y = n_outputs(p), bytes = bpt_value_bytes(p->type);
    if (cuda_leaves_out(n_x)) return;
    const size_t chosen_bytes = bpt_cuda_pool_bytes(p);
    float *x = cuda_random(p->type, n_x, 1), *dy = cuda_random(p->type, n_y, 2);
    double *y_expected = doubles(n_y), *dx_expected = doubles(n_x);
    char what[160];
    if (p->kind == BPT_CUDA_MAX) make_equal(x, n_x);
    pool_reference(p, x, dy, y_expected, dx_expected);
    void *x_at = cuda_upload_values(p->type, x, n_x), *y_at = cuda_poisoned(n_y * bytes);
    void *dy_at = cuda_upload_values(p->type, dy, n_y), *dx_at = cuda_poisoned(n_x * bytes);
    void *chosen = chosen_bytes ? cuda_poisoned(chosen_bytes) : NULL;
    snprintf(what, sizeof what, "pooling %d of type %d, %dx%dx%d channels, kernel %dx%d", p->kind,
             p->type, (int)p->h, (int)p->w, (int)p->c, (int)p->kernel[0], (int)p->kernel[1]);
    for (int backward = 0; backward < 2; backward++) { /* without, then with it */
        cuda_ok(bpt_cuda_set(cuda_stream(), y_at, 0xFF, n_y * bytes));
        cuda_ok(bpt_cuda_pool_forward(cuda_stream(), p, x_at, y_at, backward ? chosen : NULL));
        float *y = cuda_download_values(p->type, y_at, n_y);
        cuda_compare(what, p->type, y, y_expected, n_y);
        free(y);
    }
    cuda_ok(bpt_cuda_pool_backward(cuda_stream(), p, dy_at, chosen, dx_at));
    float *dx = cuda_download_values(p->type, dx_at, n_x);
    cuda_compare(what, p->type, dx, dx_expected, n_x);
    if (chosen) { /* only for what is behind it */
        char *read = calloc(1, chosen_bytes);
        assert_non_null(read);
        cuda_download(chosen, read, chosen_bytes);
        free(read);
    }
    void *const memory[] = {x_at, y_at, dy_at, dx_at, chosen};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
    free(dx);
    free(dx_expected);
    free(y_expected);
    free(dy);
    free(x);
}

static void test_pooling(void **state) {
    static const bpt_cuda_pool cases[] = {
        {.n = 2, .c = 8, .h = 7, .w = 9, .p = 3, .q = 4, {3, 3}, {2, 2}, {0, 0}},
        {.n = 2, .c = 20, .h = 6, .w = 8, .p = 3, .q = 4, {2, 2}, {2, 2}, {0, 0}},
        {.n = 3, .c = 50, .h = 5, .w = 8, .p = 3, .q = 4, {3, 2}, {2, 2}, {1, 0}},
        {.n = 1, .c = 4, .h = 20, .w = 19, .p = 4, .q = 3, {17, 17}, {1, 1}, {0, 0}},
        {.n = 2, .c = 12, .h = 4, .w = 5, .p = 1, .q = 1, {4, 5}, {1, 1}, {0, 0}},
        {.n = 2, .c = 5, .h = 7, .w = 9, .p = 4, .q = 5, {3, 3}, {2, 2}, {1, 1}},
        {.n = 1, .c = 16, .h = 8, .w = 8, .p = 4, .q = 4, {3, 3}, {2, 2}, {0, 0}}, /* hangs over */
        {.n = 3, .c = 1, .h = 5, .w = 6, .p = 5, .q = 6, {3, 3}, {1, 1}, {1, 1}},
        {.n = 1, .c = 24, .h = 9, .w = 11, .p = 2, .q = 6, {5, 2}, {4, 2}, {2, 1}},
        {.n = 2, .c = 3, .h = 10, .w = 7, .p = 3, .q = 2, {2, 3}, {4, 5}, {0, 0}}, /* with gaps */
        {.n = 2, .c = 8, .h = 20, .w = 18, .p = 5, .q = 3, {16, 16}, {1, 1}, {0, 0}},
        {.n = 2, .c = 8, .h = 20, .w = 19, .p = 4, .q = 3, {17, 17}, {1, 1}, {0, 0}},
        {.n = 1, .c = 3, .h = 40, .w = 37, .p = 2, .q = 3, {33, 31}, {7, 5}, {0, 2}},
        {.n = 3, .c = 2056, .h = 2, .w = 2, .p = 1, .q = 1, {2, 2}, {2, 2}, {0, 0}},
        {.n = 70, .c = 64, .h = 7, .w = 7, .p = 1, .q = 1, {7, 7}, {1, 1}, {0, 0}}, /* whole */
        {.n = 3, .c = 10, .h = 7, .w = 5, .p = 1, .q = 1, {7, 5}, {1, 1}, {0, 0}},
        {.n = 2, .c = 1, .h = 61, .w = 57, .p = 1, .q = 1, {61, 57}, {1, 1}, {0, 0}},
        {.n = 5, .c = 520, .h = 3, .w = 3, .p = 1, .q = 1, {3, 3}, {1, 1}, {0, 0}},
        {.n = 2, .c = 8, .h = 1, .w = 1, .p = 1, .q = 1, {1, 1}, {1, 1}, {0, 0}},
        {.n = 2, .c = 8, .h = 3, .w = 3, .p = 1, .q = 1, {5, 5}, {1, 1}, {1, 1}},
        {.n = 0, .c = 8, .h = 4, .w = 4, .p = 2, .q = 2, {2, 2}, {2, 2}, {0, 0}},
        {.n = 9, .c = 1, .h = 300, .w = 301, .p = 300, .q = 301, {2, 2}, {1, 1}, {1, 1}},
    };
    (void)state;
    FOR_TYPES(type)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kind = BPT_CUDA_MAX; kind <= BPT_CUDA_AVERAGE_INSIDE; kind++) {
            bpt_cuda_pool pool = cases[i];
            pool.kind = (bpt_cuda_pooling)kind;
            pool.type = type;
            check_pool(&pool);
        }
}

/* A maximum that hides it would hide that a network has gone wrong; minus infinity is a value. */
static void test_maximum_of_special_values(void **state) {
    const bpt_cuda_pool pool = {BPT_CUDA_MAX, BPT_F32, 1, 1, 1, 4, 1, 2, {1, 2}, {1, 2}, {0, 0}};
    const float x[] = {NAN, 1.0f, -INFINITY, -INFINITY}, dy[] = {2.0f, 3.0f};
    (void)state;
    void *x_at = cuda_upload(x, sizeof x), *dy_at = cuda_upload(dy, sizeof dy);
    void *y_at = cuda_poisoned(sizeof dy), *dx_at = cuda_poisoned(sizeof x);
    void *chosen = cuda_poisoned(bpt_cuda_pool_bytes(&pool));
    cuda_ok(bpt_cuda_pool_forward(cuda_stream(), &pool, x_at, y_at, chosen));
    cuda_ok(bpt_cuda_pool_backward(cuda_stream(), &pool, dy_at, chosen, dx_at));
    float y[2], dx[4];
    cuda_download(y_at, y, sizeof y);
    cuda_download(dx_at, dx, sizeof dx);
    assert_true(isnan(y[0]) && y[1] == -INFINITY);
    assert_true(dx[0] == 2.0f && dx[1] == 0.0f && dx[2] == 3.0f && dx[3] == 0.0f);
    void *const memory[] = {x_at, dy_at, y_at, dx_at, chosen};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
}

/* ---- response normalisation ---- */

/* @return sum of a[i] over the window of channel @p c of a row */
static double window_sum(const bpt_cuda_lrn *lrn, const double *row, int64_t c) {
    double sum = 0.0;
    for (int64_t i = c - lrn->size / 2; i <= c + lrn->size / 2; i++)
        if (i >= 0 && i < lrn->c) sum += row[i];
    return sum;
}

/* Of one row. */
static void lrn_reference(const bpt_cuda_lrn *lrn, const float *x, const float *dy, double *y,
                          double *dx) {
    const size_t c = (size_t)lrn->c;
    const double alpha = (double)lrn->alpha / (double)lrn->size, beta = (double)lrn->beta;
    double *squares = doubles(c), *s = doubles(c), *parts = doubles(c);
    for (size_t i = 0; i < c; i++) squares[i] = (double)x[i] * (double)x[i];
    for (size_t i = 0; i < c; i++) {
        s[i] = (double)lrn->k + alpha * window_sum(lrn, squares, (int64_t)i);
        y[i] = (double)x[i] * pow(s[i], -beta);
        parts[i] = (double)dy[i] * (double)x[i] * pow(s[i], -beta - 1.0);
    }
    for (size_t i = 0; i < c; i++)
        dx[i] = (double)dy[i] * pow(s[i], -beta) -
                2.0 * alpha * beta * (double)x[i] * window_sum(lrn, parts, (int64_t)i);
    free(parts);
    free(s);
    free(squares);
}

static void check_lrn(const bpt_cuda_lrn *lrn) {
    const size_t n = (size_t)(lrn->rows * lrn->c), bytes = n * bpt_value_bytes(lrn->type);
    if (cuda_leaves_out(n)) return;
    float *x = cuda_random(lrn->type, n, 3), *dy = cuda_random(lrn->type, n, 4);
    double *y_expected = doubles(n), *dx_expected = doubles(n);
    char what[120];
    for (size_t i = 0; i < n; i += (size_t)lrn->c)
        lrn_reference(lrn, x + i, dy + i, y_expected + i, dx_expected + i);
    void *x_at = cuda_upload_values(lrn->type, x, n), *y_at = cuda_poisoned(bytes);
    void *dy_at = cuda_upload_values(lrn->type, dy, n), *dx_at = cuda_poisoned(bytes);
    cuda_ok(bpt_cuda_lrn_forward(cuda_stream(), lrn, x_at, y_at));
    cuda_ok(bpt_cuda_lrn_backward(cuda_stream(), lrn, x_at, dy_at, dx_at));
    snprintf(what, sizeof what, "lrn of type %d, %d rows of %d, size %d", lrn->type, (int)lrn->rows,
             (int)lrn->c, (int)lrn->size);
    float *y = cuda_download_values(lrn->type, y_at, n);
    float *dx = cuda_download_values(lrn->type, dx_at, n);
    cuda_compare(what, lrn->type, y, y_expected, n);
    cuda_compare(what, lrn->type, dx, dx_expected, n);
    void *const memory[] = {x_at, y_at, dy_at, dx_at};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
    free(dx);
    free(y);
    free(dx_expected);
    free(y_expected);
    free(dy);
    free(x);
}

static void test_lrn(void **state) {
    static const bpt_cuda_lrn cases[] = {
        {.rows = 35, .c = 96, .size = 5, .alpha = 1e-1f, .beta = 0.75f, .k = 1.0f},
        {.rows = 50, .c = 3, .size = 5, .alpha = 1.0f, .beta = 0.75f, .k = 2.0f},
        {.rows = 7, .c = 1, .size = 3, .alpha = 1.0f, .beta = 0.5f, .k = 1.0f},
        {.rows = 1, .c = 1, .size = 1, .alpha = 1.0f, .beta = 1.0f, .k = 1.0f},
        {.rows = 9, .c = 1025, .size = 63, .alpha = 5.0f, .beta = 0.75f, .k = 1.0f},
        {.rows = 129, .c = 16, .size = 63, .alpha = 2.0f, .beta = 0.6f, .k = 0.5f},
        {.rows = 3, .c = 3000, .size = 7, .alpha = 1.0f, .beta = 1.5f, .k = 1.0f},
        {.rows = 4, .c = 64, .size = 5, .alpha = 0.0f, .beta = 0.0f, .k = 1.0f},
        {.rows = 0, .c = 64, .size = 5, .alpha = 1.0f, .beta = 0.75f, .k = 1.0f},
        {.rows = 33001, .c = 65, .size = 5, .alpha = 1.0f, .beta = 0.75f, .k = 1.0f},
    };
    (void)state;
    FOR_TYPES(type)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_cuda_lrn lrn = cases[i];
        lrn.type = type;
        check_lrn(&lrn);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_maximum_of_special_values),
        cmocka_unit_test(test_lrn),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
