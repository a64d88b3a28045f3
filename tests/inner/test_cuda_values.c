/* Kernels over values against loops: all are exact.
 *
 * ctest: gpu TIMEOUT=120 */
#include "inner/cuda/cuda_values.h"
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

enum { MANY = 2048 * 256 * 8 + 13 }; /* more than one for each thread of a launch */

static const size_t sizes[] = {0, 1, 7, 8, 9, 64, 1003, 4096, MANY};
#define N_SIZES (sizeof sizes / sizeof *sizes)

static const bpt_value_type types[] = {BPT_F32, BPT_BF16};

#define FOR_TYPES(type)                                                                            \
    for (bpt_value_type type = BPT_F32; type <= BPT_BF16; type = (bpt_value_type)(type + 1))

static float *floats(size_t n) {
    float *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static bool same(float a, float b) {
    return (isnan(a) && isnan(b)) || a == b;
}

/* Compares what is at @p at with @p expected, and frees both. */
static void check(const char *what, bpt_value_type type, void *at, float *expected, size_t n) {
    float *values = cuda_download_values(type, at, n);
    for (size_t i = 0; i < n; i++)
        if (!same(values[i], expected[i]))
            fail_msg("%s: value %zu of %zu is %.9g, not %.9g", what, i, n, (double)values[i],
                     (double)expected[i]);
    free(values);
    free(expected);
    cuda_free(at);
}

/* ---- one value from one of each array ---- */

static void check_convert(bpt_value_type from, bpt_value_type to, size_t n) {
    if (cuda_leaves_out(n)) return;
    float *x = cuda_random(from, n, n), *expected = floats(n);
    for (size_t i = 0; i < n; i += 5) x[i] = cuda_rounded(from, x[i] * 1e38f); /* or infinite */
    for (size_t i = 3; i < n; i += 11) x[i] = NAN;
    for (size_t i = 0; i < n; i++) expected[i] = cuda_rounded(to, x[i]);
    void *at = cuda_upload_values(from, x, n), *out = cuda_poisoned(n * bpt_value_bytes(to));
    cuda_ok(bpt_cuda_convert(cuda_stream(), at, from, out, to, (int64_t)n));
    check("convert", to, out, expected, n);
    cuda_free(at);
    free(x);
}

static void test_convert(void **state) {
    (void)state;
    for (size_t s = 0; s < N_SIZES; s++)
        for (size_t i = 0; i < 4; i++) check_convert(types[i / 2], types[i % 2], sizes[s]);
}

static void check_relu(bpt_value_type type, size_t n, bool in_place) {
    if (cuda_leaves_out(n)) return;
    float *x = cuda_random(type, n, n), *expected = floats(n);
    for (size_t i = 2; i < n; i += 13) x[i] = NAN;
    for (size_t i = 3; i < n; i += 13) x[i] = -INFINITY;
    for (size_t i = 0; i < n; i++) expected[i] = x[i] <= 0.0f ? 0.0f : x[i];
    void *at = cuda_upload_values(type, x, n);
    void *out = in_place ? at : cuda_poisoned(n * bpt_value_bytes(type));
    cuda_ok(bpt_cuda_relu(cuda_stream(), at, type, (int64_t)n, out));
    check("relu", type, out, expected, n);
    if (!in_place) cuda_free(at);
    free(x);
}

static void check_relu_backward(bpt_value_type type, size_t n, bool in_place) {
    float *y = cuda_random(type, n, n), *dy = cuda_random(type, n, n + 1), *expected = floats(n);
    for (size_t i = 1; i < n; i += 3) y[i] = 0.0f;
    for (size_t i = 2; i < n; i += 13) y[i] = NAN;
    for (size_t i = 3; i < n; i += 17) dy[i] = NAN;
    for (size_t i = 0; i < n; i++) expected[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    void *at = cuda_upload_values(type, y, n), *from = cuda_upload_values(type, dy, n);
    void *out = in_place ? from : cuda_poisoned(n * bpt_value_bytes(type));
    cuda_ok(bpt_cuda_relu_backward(cuda_stream(), at, from, type, (int64_t)n, out));
    check("relu backward", type, out, expected, n);
    if (!in_place) cuda_free(from);
    cuda_free(at);
    free(dy);
    free(y);
}

static void test_relu(void **state) {
    (void)state;
    FOR_TYPES(type)
    for (size_t s = 0; s < N_SIZES; s++)
        for (int in_place = 0; in_place < 2; in_place++) {
            check_relu(type, sizes[s], in_place);
            check_relu_backward(type, sizes[s], in_place);
        }
}

/* @param over which term the sum replaces; n_terms: none */
static void check_add(bpt_value_type type, size_t n, int n_terms, int over) {
    if (cuda_leaves_out(n)) return;
    float *expected = floats(n);
    void *terms[BPT_CUDA_MAX_TERMS];
    for (int t = 0; t < n_terms; t++) {
        float *x = cuda_random(type, n, n + (size_t)t);
        for (size_t i = 0; i < n; i++) expected[i] = t ? expected[i] + x[i] : x[i];
        terms[t] = cuda_upload_values(type, x, n);
        free(x);
    }
    for (size_t i = 0; i < n; i++) expected[i] = cuda_rounded(type, expected[i]);
    void *sum = over < n_terms ? terms[over] : cuda_poisoned(n * bpt_value_bytes(type));
    cuda_ok(
        bpt_cuda_add(cuda_stream(), (const void *const *)terms, n_terms, type, (int64_t)n, sum));
    check("add", type, sum, expected, n);
    for (int t = 0; t < n_terms; t++)
        if (t != over) cuda_free(terms[t]);
}

static void test_add(void **state) {
    (void)state;
    FOR_TYPES(type) {
        for (size_t s = 0; s + 1 < N_SIZES; s++)
            for (int n_terms = 1; n_terms <= BPT_CUDA_MAX_TERMS; n_terms++)
                for (int over = 0; over <= n_terms; over += n_terms > 2 ? 2 : 1)
                    check_add(type, sizes[s], n_terms, over);
        check_add(type, MANY, 2, 2);
        check_add(type, MANY, 3, 0);
    }
}

/* @param bad number of the value that is not finite; n: none */
static void check_finite(bpt_value_type type, size_t n, size_t bad, float value) {
    float *x = cuda_random(type, n, n);
    if (bad < n) x[bad] = value;
    void *at = cuda_upload_values(type, x, n);
    for (int before = 0; before < 2; before++) {
        void *flag = cuda_upload(&before, sizeof before);
        int found;
        cuda_ok(bpt_cuda_check_finite(cuda_stream(), at, type, (int64_t)n, flag));
        cuda_download(flag, &found, sizeof found);
        assert_int_equal(found, before || bad < n);
        cuda_free(flag);
    }
    cuda_free(at);
    free(x);
}

static void test_check_finite(void **state) {
    (void)state;
    FOR_TYPES(type)
    for (size_t s = 0; s < N_SIZES; s++) {
        const size_t n = sizes[s];
        check_finite(type, n, n, 0.0f);
        if (n == 0 || cuda_leaves_out(n)) continue;
        check_finite(type, n, 0, NAN);
        check_finite(type, n, n / 2, INFINITY);
        check_finite(type, n, n - 1, -INFINITY);
    }
}

/* ---- other orders ---- */

typedef struct {
    size_t from_c, from_first, to_c, to_first, n, n_zeros, rows;
} channel_case;

static void check_copy_channels(bpt_value_type type, channel_case p) {
    float *x = cuda_random(type, p.rows * p.from_c, 13), *expected = floats(p.rows * p.to_c);
    for (size_t i = 0; i < p.rows * p.to_c; i++) expected[i] = NAN; /* the poison that is left */
    for (size_t row = 0; row < p.rows; row++) {
        float *to = expected + row * p.to_c + p.to_first;
        for (size_t i = 0; i < p.n; i++) to[i] = x[row * p.from_c + p.from_first + i];
        for (size_t i = 0; i < p.n_zeros; i++) to[p.n + i] = 0.0f;
    }
    void *at = cuda_upload_values(type, x, p.rows * p.from_c);
    void *out = cuda_poisoned(p.rows * p.to_c * bpt_value_bytes(type));
    cuda_ok(bpt_cuda_copy_channels(cuda_stream(), at, (int64_t)p.from_c, (int64_t)p.from_first, out,
                                   (int64_t)p.to_c, (int64_t)p.to_first, (int64_t)p.n,
                                   (int64_t)p.n_zeros, type, (int64_t)p.rows));
    check("copy channels", type, out, expected, p.rows * p.to_c);
    cuda_free(at);
    free(x);
}

static void test_copy_channels(void **state) {
    static const channel_case cases[] = {
        {3, 0, 8, 0, 3, 5, 50},         {64, 0, 96, 32, 64, 0, 33},     {96, 32, 64, 0, 64, 0, 33},
        {1, 0, 1, 0, 1, 0, 1},          {10, 3, 20, 7, 5, 2, 17},       {16, 8, 40, 16, 8, 8, 9},
        {8, 0, 8, 0, 0, 8, 5},          {4096, 0, 4104, 8, 4096, 0, 3}, {300, 1, 300, 0, 299, 1, 4},
        {2600, 0, 2600, 0, 2600, 0, 3}, {5, 0, 5, 0, 5, 0, 0},          {8, 0, 8, 0, 0, 0, 3},
        {3, 0, 4, 0, 3, 1, 300000},     {24, 0, 24, 0, 16, 8, 200000}};
    (void)state;
    FOR_TYPES(type)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_copy_channels(type, cases[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convert),       cmocka_unit_test(test_relu),
        cmocka_unit_test(test_add),           cmocka_unit_test(test_check_finite),
        cmocka_unit_test(test_copy_channels),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
