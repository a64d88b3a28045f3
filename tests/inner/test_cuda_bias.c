/* Biases on a GPU against sums in double, and sizes that 31 bits do not count.
 *
 * ctest: gpu TIMEOUT=120 */
#include "inner/cuda/cuda_bias.h"
#include "tests/inner/cuda_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Values on the host and on the GPU. */
typedef struct {
    bpt_value_type type;
    int64_t rows, c;
    size_t n;
    float *y, *dy, *bias;
    void *gpu_y;
    float *gpu_bias;
} values;

static double *doubles(size_t n) {
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static values make_values(bpt_value_type type, int64_t rows, int64_t c) {
    values v = {.type = type, .rows = rows, .c = c, .n = (size_t)(rows * c)};
    v.y = cuda_random(type, v.n, 1);
    v.dy = cuda_random(type, v.n, 2);
    v.bias = cuda_random(BPT_F32, (size_t)c, 3);
    v.gpu_y = cuda_upload_values(type, v.y, v.n);
    v.gpu_bias = cuda_upload(v.bias, (size_t)c * sizeof(float));
    return v;
}

static void free_values(values *v) {
    free(v->y);
    free(v->dy);
    free(v->bias);
    cuda_free(v->gpu_y);
    cuda_free(v->gpu_bias);
}

static void compare(const char *what, bpt_value_type type, const void *gpu, const double *expected,
                    size_t n) {
    float *found = cuda_download_values(type, gpu, n);
    cuda_compare(what, type, found, expected, n);
    free(found);
}

static void check_forward(const values *v, bool relu) {
    void *gpu = cuda_upload_values(v->type, v->y, v->n);
    double *expected = doubles(v->n);
    cuda_ok(bpt_cuda_bias(cuda_stream(), gpu, v->gpu_bias, relu, v->type, v->rows, v->c));
    for (size_t i = 0; i < v->n; i++) {
        expected[i] = (double)v->y[i] + (double)v->bias[i % (size_t)v->c];
        if (relu && expected[i] < 0.0) expected[i] = 0.0;
    }
    compare("y", v->type, gpu, expected, v->n);
    free(expected);
    cuda_free(gpu);
}

/* Twice: to a place of its own, if anything is written, and in place. */
static void check_backward(const values *v, bool relu, bool bias) {
    const void *y = relu ? v->gpu_y : NULL;
    const size_t bytes = v->n * bpt_value_bytes(v->type), c = (size_t)v->c;
    double *sums = doubles(c), *expected = doubles(v->n);
    for (size_t i = 0; i < v->n; i++) {
        expected[i] = relu && !(v->y[i] > 0.0f) ? 0.0 : (double)v->dy[i];
        sums[i % c] += expected[i];
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        float *gradient = bias ? cuda_poisoned(c * sizeof(float)) : NULL;
        void *workspace = cuda_poisoned(bpt_cuda_bias_workspace(v->rows, v->c));
        void *dy = cuda_upload_values(v->type, v->dy, v->n), *apart = cuda_poisoned(bytes);
        void *dx = in_place ? dy : apart;
        unsigned char byte;
        cuda_ok(bpt_cuda_bias_backward(cuda_stream(), y, dy, v->type, v->rows, v->c, dx, gradient,
                                       workspace));
        if (bias) compare("bias' gradient", BPT_F32, gradient, sums, c);
        if (relu || in_place) compare("dx", v->type, dx, expected, v->n);
        cuda_download(workspace, &byte, bias ? 1 : 0); /* looks at the bytes behind it */
        cuda_free(apart);
        cuda_free(dy);
        cuda_free(workspace);
        cuda_free(gradient);
    }
    free(sums);
    free(expected);
}

static void test_bias(void **state) {
    static const int64_t rows[] = {1, 2, 7, 1000}, c[] = {3, 10, 64, 264, 1001, 2048};
    (void)state;
    for (size_t i = 0; i < 4 * 6 * 2; i++) {
        values v = make_values(i % 2 ? BPT_BF16 : BPT_F32, rows[i / 2 % 4], c[i / 8]);
        for (int relu = 0; relu < 2; relu++) {
            check_forward(&v, relu);
            check_backward(&v, relu, true);
            check_backward(&v, relu, false);
        }
        free_values(&v);
    }
}

static void test_many_rows(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        values v = make_values(i % 2 ? BPT_BF16 : BPT_F32, 100000, i / 2 ? 10 : 16);
        check_forward(&v, true);
        check_backward(&v, true, true);
        free_values(&v);
    }
}

/* Constant values: what counts is that all of them are found. */
static void test_large(void **state) {
    enum { C = 8, PATTERN = 0x3C };
    const int64_t rows = ((int64_t)1 << 28) + 3;
    const size_t bytes = (size_t)rows * C * sizeof(bpt_bf16);
    const double value = (double)bpt_from_bf16(PATTERN << 8 | PATTERN);
    float bias[C];
    double sums[C];
    bpt_bf16 last[C];
    void *y;
    (void)state;
    if (bpt_cuda_allocate(bytes, &y)) skip();
    for (int i = 0; i < C; i++) {
        bias[i] = 1.0f + (float)i;
        sums[i] = value * (double)rows;
    }
    float *gpu_bias = cuda_upload(bias, sizeof bias), *gradient = cuda_poisoned(sizeof bias);
    void *workspace = cuda_poisoned(bpt_cuda_bias_workspace(rows, C));
    cuda_ok(bpt_cuda_set(cuda_stream(), y, PATTERN, bytes));
    cuda_ok(bpt_cuda_bias_backward(cuda_stream(), NULL, y, BPT_BF16, rows, C, NULL, gradient,
                                   workspace));
    compare("sum", BPT_F32, gradient, sums, C);
    cuda_ok(bpt_cuda_bias(cuda_stream(), y, gpu_bias, true, BPT_BF16, rows, C));
    cuda_ok(bpt_cuda_copy(cuda_stream(), last, (char *)y + bytes - sizeof last, sizeof last));
    cuda_ok(bpt_cuda_wait(cuda_stream()));
    for (int i = 0; i < C; i++)
        assert_true(fabs((double)bpt_from_bf16(last[i]) - value - 1.0 - i) <= 1e-2 * (1.0 + i));
    bpt_cuda_free(y);
    cuda_free(workspace);
    cuda_free(gradient);
    cuda_free(gpu_bias);
}

static void test_empty(void **state) {
    values v = make_values(BPT_BF16, 0, 8);
    (void)state;
    check_forward(&v, true);
    check_backward(&v, true, true);
    free_values(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_empty),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
