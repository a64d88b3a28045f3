/* Vectors between the canonical order and that of kernels: there, back, and added up.
 *
 * ctest: gpu TIMEOUT=60 */
#include "inner/cuda/cuda_transfer.h"
#include "tests/inner/cuda_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N_SEGMENTS = 9, NATIVE_STEP = 64 };

typedef struct {
    int64_t k, c, taps, padded; /* taps 0: k values, alike on both sides */
} segment;

static const segment segments[N_SEGMENTS] = {
    {.k = 1, .c = 1, .taps = 1, .padded = 1},
    {.k = 4, .c = 3, .taps = 9, .padded = 3},
    {.k = 17},
    {.k = 5, .c = 3, .taps = 49, .padded = 8},
    {.k = 1},
    {.k = 2, .c = 17, .taps = 25, .padded = 24},
    {.k = 300, .c = 50, .taps = 50, .padded = 56},
    {.k = 20000},
    {.k = 3},
};

/* All segments: where they are on both sides, and how large these are. */
typedef struct {
    bpt_cuda_order orders[N_SEGMENTS];
    size_t n_canonical, n_native;
} layout;

static layout lay(void) {
    layout l = {.n_canonical = 0};
    for (size_t s = 0; s < N_SEGMENTS; s++) {
        const segment *g = &segments[s];
        const int64_t count = g->taps ? g->k * g->taps * g->padded : g->k;
        l.orders[s] = (bpt_cuda_order){.canonical = (int64_t)l.n_canonical,
                                       .native = (int64_t)l.n_native,
                                       .count = count,
                                       .c = g->c,
                                       .taps = g->taps,
                                       .padded = g->padded};
        l.n_canonical += (size_t)(g->taps ? g->k * g->c * g->taps : g->k);
        l.n_native += ((size_t)count + NATIVE_STEP - 1) / NATIVE_STEP * NATIVE_STEP;
    }
    return l;
}

typedef void (*visit_fn)(void *context, size_t canonical, size_t native);

/* Calls @p visit for every value that both sides have. */
static void visit_values(const layout *l, visit_fn visit, void *context) {
    for (size_t s = 0; s < N_SEGMENTS; s++) {
        const segment *g = &segments[s];
        const size_t canonical = (size_t)l->orders[s].canonical;
        const size_t native = (size_t)l->orders[s].native;
        const size_t c = g->taps ? (size_t)g->c : 1, taps = g->taps ? (size_t)g->taps : 1;
        const size_t padded = g->taps ? (size_t)g->padded : 1;
        for (size_t k = 0; k < (size_t)g->k; k++)
            for (size_t i = 0; i < c; i++)
                for (size_t t = 0; t < taps; t++)
                    visit(context, canonical + (k * c + i) * taps + t,
                          native + (k * taps + t) * padded + i);
    }
}

typedef struct {
    const float *canonical; /* values given */
    float *native;          /* values expected */
} expectation;

static void expect_in(void *context, size_t canonical, size_t native) {
    expectation *e = context;
    e->native[native] = e->canonical[canonical];
}

static void expect_sum(void *context, size_t canonical, size_t native) {
    expectation *e = context;
    e->native[native] += e->canonical[canonical];
}

/* Padding is 0 where a segment is, and what lies between segments is as it was. */
static void fill_around(const layout *l, float between, float *native) {
    for (size_t i = 0; i < l->n_native; i++) native[i] = between;
    for (size_t s = 0; s < N_SEGMENTS; s++)
        for (int64_t i = 0; i < l->orders[s].count; i++) native[l->orders[s].native + i] = 0.0f;
}

static void assert_values(const char *what, const float *device, const float *expected, size_t n) {
    float *values = cuda_download_values(BPT_F32, device, n);
    for (size_t i = 0; i < n; i++) {
        const bool both_nan = isnan(values[i]) && isnan(expected[i]);
        if (!both_nan && !(fabsf(values[i] - expected[i]) <= 1e-6f * fabsf(expected[i])))
            fail_msg("%s: value %zu is %.9g, not %.9g", what, i, (double)values[i],
                     (double)expected[i]);
    }
    free(values);
}

static bpt_cuda_transfer *create(const layout *l) {
    bpt_cuda_transfer *t;
    cuda_ok(bpt_cuda_transfer_create(l->orders, N_SEGMENTS, &t));
    return t;
}

/* The canonical side one float behind an address that is aligned. */
static void test_there_and_back(void **state) {
    (void)state;
    const layout l = lay();
    bpt_cuda_transfer *t = create(&l);
    float *x = cuda_random(BPT_F32, l.n_canonical + 1, 1), *expected = malloc(l.n_native * 4);
    assert_non_null(expected);
    fill_around(&l, NAN, expected); /* the poison that is left */
    expectation e = {.canonical = x + 1, .native = expected};
    visit_values(&l, expect_in, &e);
    float *from = cuda_upload_values(BPT_F32, x, l.n_canonical + 1);
    float *to = cuda_poisoned(l.n_native * sizeof *to);
    float *back = cuda_poisoned((l.n_canonical + 1) * sizeof *back);
    cuda_ok(bpt_cuda_transfer_in(cuda_stream(), t, 1, N_SEGMENTS - 1, from + 1, to));
    cuda_ok(bpt_cuda_transfer_in(cuda_stream(), t, 0, 1, from + 1, to));
    cuda_ok(bpt_cuda_transfer_out(cuda_stream(), t, 1, N_SEGMENTS - 1, to, back + 1));
    cuda_ok(bpt_cuda_transfer_out(cuda_stream(), t, 0, 1, to, back + 1));
    x[0] = NAN;
    assert_values("there", to, expected, l.n_native);
    assert_values("back", back, x, l.n_canonical + 1);
    cuda_free(back);
    cuda_free(to);
    cuda_free(from);
    free(expected);
    free(x);
    bpt_cuda_transfer_free(t);
}

static void test_add(void **state) {
    (void)state;
    const layout l = lay();
    bpt_cuda_transfer *t = create(&l);
    float *x = cuda_random(BPT_F32, l.n_canonical, 2), *y = cuda_random(BPT_F32, l.n_native, 3);
    float *from = cuda_upload_values(BPT_F32, x, l.n_canonical);
    float *to = cuda_upload_values(BPT_F32, y, l.n_native);
    expectation e = {.canonical = x, .native = y};
    visit_values(&l, expect_sum, &e);
    cuda_ok(bpt_cuda_transfer_add(cuda_stream(), t, 0, N_SEGMENTS, from, to));
    assert_values("sum", to, y, l.n_native);
    cuda_free(to);
    cuda_free(from);
    free(y);
    free(x);
    bpt_cuda_transfer_free(t);
}

static void test_nothing(void **state) {
    (void)state;
    bpt_cuda_transfer *t;
    cuda_ok(bpt_cuda_transfer_create(NULL, 0, &t));
    float *x = cuda_poisoned(4);
    cuda_ok(bpt_cuda_transfer_in(cuda_stream(), t, 0, 0, x, x));
    cuda_free(x);
    bpt_cuda_transfer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_nothing),
    };
    const int missing = cuda_begin();
    if (missing) return missing;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
