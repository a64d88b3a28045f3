/* Batch normalisation on a GPU against sums in double: sizes that fill no vector, no
 * block and no grid, both types, all that may follow, buffers that are shared.
 *
 * ctest: gpu TIMEOUT=300 */
#include "inner/cuda/cuda_batchnorm.h"
#include "tests/inner/cuda_fixture.h"

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

static const float eps = 1e-5f;

typedef struct {
    int64_t rows, c;
    int64_t absent; /* rows of samples that are not there: the last ones */
    int64_t pixels; /* of a sample; 0: one */
} shape;

/* 264 channels are 33 groups of 8: two tiles of 17 with one to spare. */
static const shape shapes[] = {
    {1, 3, 0, 0},      {2, 10, 0, 0},        {7, 64, 0, 0},    {1, 64, 0, 0},
    {1000, 3, 0, 0},   {1000, 10, 0, 0},     {7, 2048, 0, 0},  {1000, 2048, 0, 0},
    {1000, 264, 0, 0}, {1000, 1001, 0, 0},   {513, 8, 0, 0},   {4000, 256, 0, 0},
    {100000, 3, 0, 0}, {100000, 8, 0, 0},    {700, 10, 70, 7}, {7, 64, 6, 0},
    {4000, 256, 1, 0}, {2000, 264, 1996, 4}, {513, 8, 512, 0}, {1000, 3, 500, 500},
    {100, 264, 0, 0},  {60, 1001, 0, 0},     {100, 264, 96, 4}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* A layer, its values on the host and on the GPU. */
typedef struct {
    bpt_cuda_batchnorm bn;
    bpt_cuda_batchnorm_memory memory;
    size_t n, c;
    int64_t there; /* rows that count */
    float *x, *added, *dy, *weight, *bias, *running_mean, *running_variance;
    void *gpu_x, *gpu_added, *gpu_dy, *gpu_y;
    float *gpu_weight, *gpu_bias, *gpu_running_mean, *gpu_running_variance;
    float *values_y; /* of the forward pass, as it was stored */
} layer;

/* Of a channel, in double. */
typedef struct {
    double *mean, *variance;
} moments;

static double *doubles(size_t n) {
    double *values = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    return values;
}

static layer make_layer(bpt_value_type type, shape size, float offset) {
    const size_t c = (size_t)size.c, n = (size_t)(size.rows * size.c);
    layer l = {
        .bn = {.type = type,
               .rows = size.rows,
               .c = size.c,
               .pixels = size.pixels ? size.pixels : 1,
               .eps = eps},
        .n = n,
        .c = c,
        .there = size.rows - size.absent,
    };
    l.x = cuda_random(type, n, 1);
    for (size_t i = 0; i < n; i++)
        l.x[i] = cuda_rounded(type, l.x[i] + offset + 0.5f * (float)(i % c % 5));
    l.added = cuda_random(type, n, 2);
    l.dy = cuda_random(type, n, 3);
    for (size_t i = (size_t)l.there * c; i < n; i++) {
        l.x[i] = cuda_rounded(type, 100.0f * l.x[i]);
        l.dy[i] = 0.0f;
    }
    l.weight = cuda_random(BPT_F32, c, 4);
    l.bias = cuda_random(BPT_F32, c, 5);
    l.running_mean = cuda_random(BPT_F32, c, 6);
    l.running_variance = cuda_random(BPT_F32, c, 7);
    for (size_t i = 0; i < c; i++) {
        l.weight[i] = 1.0f + 0.25f * l.weight[i];
        l.running_variance[i] = 0.5f + l.running_variance[i] * l.running_variance[i];
    }
    l.gpu_x = cuda_upload_values(type, l.x, n);
    l.gpu_added = cuda_upload_values(type, l.added, n);
    l.gpu_dy = cuda_upload_values(type, l.dy, n);
    l.gpu_weight = cuda_upload(l.weight, c * sizeof(float));
    l.gpu_bias = cuda_upload(l.bias, c * sizeof(float));
    l.gpu_running_mean = cuda_upload(l.running_mean, c * sizeof(float));
    l.gpu_running_variance = cuda_upload(l.running_variance, c * sizeof(float));
    return l;
}

static void free_layer(layer *l) {
    float *const on_host[] = {
        l->x, l->added, l->dy, l->weight, l->bias, l->running_mean, l->running_variance};
    void *const on_gpu[] = {l->gpu_x,
                            l->gpu_added,
                            l->gpu_dy,
                            l->gpu_weight,
                            l->gpu_bias,
                            l->gpu_running_mean,
                            l->gpu_running_variance};
    for (size_t i = 0; i < sizeof on_host / sizeof *on_host; i++) free(on_host[i]);
    for (size_t i = 0; i < sizeof on_gpu / sizeof *on_gpu; i++) cuda_free(on_gpu[i]);
}

static void take_memory(layer *l) {
    l->memory.mean = cuda_poisoned(l->c * sizeof(float));
    l->memory.inverse = cuda_poisoned(l->c * sizeof(float));
    l->memory.workspace = cuda_poisoned(bpt_cuda_batchnorm_workspace(&l->bn));
}

/* Looks also at the bytes behind the workspace. */
static void give_memory(layer *l) {
    unsigned char byte;
    cuda_download(l->memory.workspace, &byte, 1);
    cuda_free(l->memory.mean);
    cuda_free(l->memory.inverse);
    cuda_free(l->memory.workspace);
}

static void compare_floats(const char *what, const float *gpu, const double *reference, size_t n) {
    float *values = cuda_download_values(BPT_F32, gpu, n);
    cuda_compare(what, BPT_F32, values, reference, n);
    free(values);
}

static void assert_same(const void *gpu, const void *other, size_t bytes) {
    unsigned char *a = calloc(bytes + 1, 1), *b = calloc(bytes + 1, 1);
    assert_non_null(a);
    assert_non_null(b);
    cuda_download(gpu, a, bytes);
    cuda_download(other, b, bytes);
    assert_int_equal(memcmp(a, b, bytes), 0);
    free(a);
    free(b);
}

static size_t bytes_of(const layer *l) {
    return l->n * bpt_value_bytes(l->bn.type);
}

/* ---- references ---- */

static moments find_moments(const layer *l) {
    const moments m = {doubles(l->c), doubles(l->c)};
    const double rows = (double)l->there;
    const size_t n = (size_t)l->there * l->c;
    for (size_t i = 0; i < n; i++) m.mean[i % l->c] += (double)l->x[i];
    for (size_t i = 0; i < l->c; i++) m.mean[i] /= rows;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)l->x[i] - m.mean[i % l->c];
        m.variance[i % l->c] += d * d;
    }
    for (size_t i = 0; i < l->c; i++) m.variance[i] /= rows;
    return m;
}

static void free_moments(moments m) {
    free(m.mean);
    free(m.variance);
}

static double inverse_of(double variance) {
    return 1.0 / sqrt(variance + (double)eps);
}

static double *find_y(const layer *l, moments m) {
    double *y = doubles(l->n);
    for (size_t i = 0; i < l->n; i++) {
        const size_t c = i % l->c;
        y[i] = ((double)l->x[i] - m.mean[c]) * inverse_of(m.variance[c]) * (double)l->weight[c] +
               (double)l->bias[c];
        if (l->bn.add) y[i] += (double)l->added[i];
        if (l->bn.relu && y[i] < 0.0) y[i] = 0.0;
    }
    return y;
}

/* dy where something has passed. */
static double masked(const layer *l, size_t i) {
    return l->bn.relu && !(l->values_y[i] > 0.0f) ? 0.0 : (double)l->dy[i];
}

/* ---- forward ---- */

/* What the step says: 3 of 4 samples are of this batch. */
static const double share = 0.75;

static bpt_cuda_step *upload_step(const layer *l) {
    const bpt_cuda_step step = {
        .n_samples = 3.0f, .denominator = 4.0f, .end_sample = (int32_t)(l->there / l->bn.pixels)};
    return cuda_upload(&step, sizeof step);
}

static void run_forward(const layer *l, const void *x, const void *added, void *y,
                        float *mean_gradient, float *variance_gradient) {
    bpt_cuda_step *gpu_step = upload_step(l);
    cuda_ok(bpt_cuda_batchnorm_forward(cuda_stream(), &l->bn, gpu_step, &l->memory, x,
                                       l->bn.add ? added : NULL, l->gpu_weight, l->gpu_bias,
                                       l->gpu_running_mean, l->gpu_running_variance, y,
                                       mean_gradient, variance_gradient));
    cuda_ok(bpt_cuda_wait(cuda_stream()));
    cuda_free(gpu_step);
}

static void compare_statistics(const layer *l, moments m, const float *mean_gradient,
                               const float *variance_gradient) {
    const double rows = (double)l->there;
    double *values = doubles(l->c);
    compare_floats("mean", l->memory.mean, m.mean, l->c);
    for (size_t i = 0; i < l->c; i++) values[i] = inverse_of(m.variance[i]);
    compare_floats("inverse", l->memory.inverse, values, l->c);
    for (size_t i = 0; i < l->c; i++) values[i] = share * ((double)l->running_mean[i] - m.mean[i]);
    compare_floats("mean's gradient", mean_gradient, values, l->c);
    for (size_t i = 0; i < l->c; i++)
        values[i] =
            rows > 1.0 /* of one nothing is known */
                ? share * ((double)l->running_variance[i] - rows / (rows - 1.0) * m.variance[i])
                : 0.0;
    compare_floats("variance's gradient", variance_gradient, values, l->c);
    free(values);
}

/* The same again, where x and what is added are. */
static void check_in_place(const layer *l) {
    float *statistics[2] = {cuda_poisoned(l->c * sizeof(float)),
                            cuda_poisoned(l->c * sizeof(float))};
    void *x = cuda_upload_values(l->bn.type, l->x, l->n);
    void *added = cuda_upload_values(l->bn.type, l->added, l->n);
    run_forward(l, x, added, x, statistics[0], statistics[1]);
    assert_same(x, l->gpu_y, bytes_of(l));
    if (l->bn.add) {
        run_forward(l, l->gpu_x, added, added, statistics[0], statistics[1]);
        assert_same(added, l->gpu_y, bytes_of(l));
    }
    cuda_free(x);
    cuda_free(added);
    cuda_free(statistics[0]);
    cuda_free(statistics[1]);
}

/* Leaves y for the backward pass. */
static void check_forward(layer *l, moments m) {
    float *mean_gradient = cuda_poisoned(l->c * sizeof(float));
    float *variance_gradient = cuda_poisoned(l->c * sizeof(float));
    double *y = find_y(l, m);
    l->gpu_y = cuda_poisoned(bytes_of(l));
    run_forward(l, l->gpu_x, l->gpu_added, l->gpu_y, mean_gradient, variance_gradient);
    l->values_y = cuda_download_values(l->bn.type, l->gpu_y, l->n);
    cuda_compare("y", l->bn.type, l->values_y, y, l->n);
    compare_statistics(l, m, mean_gradient, variance_gradient);
    check_in_place(l);
    cuda_free(mean_gradient);
    cuda_free(variance_gradient);
    free(y);
}

static void check_evaluation(const layer *l) {
    const moments m = {doubles(l->c), doubles(l->c)};
    void *gpu_y = cuda_poisoned(bytes_of(l));
    for (size_t i = 0; i < l->c; i++) {
        m.mean[i] = (double)l->running_mean[i];
        m.variance[i] = (double)l->running_variance[i];
    }
    double *y = find_y(l, m);
    cuda_ok(bpt_cuda_batchnorm_evaluate(cuda_stream(), &l->bn, l->gpu_x,
                                        l->bn.add ? l->gpu_added : NULL, l->gpu_weight, l->gpu_bias,
                                        l->gpu_running_mean, l->gpu_running_variance, gpu_y));
    float *values = cuda_download_values(l->bn.type, gpu_y, l->n);
    cuda_compare("y in evaluation", l->bn.type, values, y, l->n);
    free(values);
    free(y);
    free_moments(m);
    cuda_free(gpu_y);
}

/* ---- backward ---- */

/* Where a backward pass leaves things. */
typedef struct {
    void *dx, *d_added;
    float *weight_gradient, *bias_gradient;
} results;

static void run_backward(const layer *l, const void *dy, const results *r) {
    bpt_cuda_step *gpu_step = upload_step(l);
    cuda_ok(bpt_cuda_batchnorm_backward(
        cuda_stream(), &l->bn, gpu_step, &l->memory, l->gpu_x, l->bn.relu ? l->gpu_y : NULL, dy,
        l->gpu_weight, l->gpu_bias, r->dx, r->d_added, r->weight_gradient, r->bias_gradient));
    cuda_ok(bpt_cuda_wait(cuda_stream()));
    cuda_free(gpu_step);
}

static results take_results(const layer *l) {
    return (results){cuda_poisoned(bytes_of(l)), l->bn.add ? cuda_poisoned(bytes_of(l)) : NULL,
                     cuda_poisoned(l->c * sizeof(float)), cuda_poisoned(l->c * sizeof(float))};
}

static void free_results(results *r) {
    cuda_free(r->dx);
    cuda_free(r->d_added);
    cuda_free(r->weight_gradient);
    cuda_free(r->bias_gradient);
}

/* Of few rows hardly anything is left of dx; it is compared on top of what it is the rest of. */
static void compare_dx(const layer *l, moments m, const double *sums, const double *sums_x,
                       const void *gpu_dx) {
    const double rows = (double)l->there;
    float *values = cuda_download_values(l->bn.type, gpu_dx, l->n);
    double *dx = doubles(l->n);
    for (size_t i = (size_t)l->there * l->c; i < l->n; i++) assert_true(values[i] == 0.0f);
    for (size_t i = 0; i < (size_t)l->there * l->c; i++) {
        const size_t c = i % l->c;
        const double inverse = inverse_of(m.variance[c]), g = masked(l, i);
        const double scale = (double)l->weight[c] * inverse;
        const double base = l->there < 8 ? scale * g : 0.0;
        const double normal = ((double)l->x[i] - m.mean[c]) * inverse;
        dx[i] = scale * (g - sums[c] / rows - normal * sums_x[c] / rows) + base;
        values[i] = (float)((double)values[i] + base);
    }
    cuda_compare("dx", l->bn.type, values, dx, l->n);
    free(dx);
    free(values);
}

static void compare_gradients(const layer *l, moments m, const results *r) {
    double *sums = doubles(l->c), *sums_x = doubles(l->c), *d_added = doubles(l->n);
    for (size_t i = 0; i < l->n; i++) {
        const size_t c = i % l->c;
        d_added[i] = masked(l, i);
        sums[c] += d_added[i];
        sums_x[c] += d_added[i] * ((double)l->x[i] - m.mean[c]) * inverse_of(m.variance[c]);
    }
    compare_floats("bias' gradient", r->bias_gradient, sums, l->c);
    compare_floats("weight's gradient", r->weight_gradient, sums_x, l->c);
    if (r->d_added) {
        float *values = cuda_download_values(l->bn.type, r->d_added, l->n);
        cuda_compare("d_added", l->bn.type, values, d_added, l->n);
        free(values);
    }
    if (r->dx) compare_dx(l, m, sums, sums_x, r->dx);
    free(sums);
    free(sums_x);
    free(d_added);
}

/* Without what is not wanted, and where dy is; the sums are the same bits each time. */
static void check_variants(const layer *l, moments m, const results *whole) {
    results r = take_results(l);
    void *const dx = r.dx, *const d_added = r.d_added;
    void *dy = cuda_upload_values(l->bn.type, l->dy, l->n);
    r.dx = NULL;
    run_backward(l, l->gpu_dy, &r);
    if (d_added) assert_same(d_added, whole->d_added, bytes_of(l));
    r = (results){dx, NULL, r.weight_gradient, r.bias_gradient};
    run_backward(l, l->gpu_dy, &r);
    compare_gradients(l, m, &r);
    r = (results){dy, d_added, r.weight_gradient, r.bias_gradient};
    run_backward(l, dy, &r);
    assert_same(dy, whole->dx, bytes_of(l));
    cuda_free(dy);
    if (d_added) {
        dy = cuda_upload_values(l->bn.type, l->dy, l->n);
        r = (results){dx, dy, r.weight_gradient, r.bias_gradient};
        run_backward(l, dy, &r);
        assert_same(dx, whole->dx, bytes_of(l));
        assert_same(dy, whole->d_added, bytes_of(l));
        cuda_free(dy);
    }
    assert_same(r.weight_gradient, whole->weight_gradient, l->c * sizeof(float));
    assert_same(r.bias_gradient, whole->bias_gradient, l->c * sizeof(float));
    r.dx = dx;
    r.d_added = d_added;
    free_results(&r);
}

static void check_backward(const layer *l, moments m) {
    results r = take_results(l);
    run_backward(l, l->gpu_dy, &r);
    compare_gradients(l, m, &r);
    check_variants(l, m, &r);
    free_results(&r);
}

static void check_layer(bpt_value_type type, shape size) {
    if (cuda_leaves_out((size_t)(size.rows * size.c))) return;
    layer l = make_layer(type, size, -1.0f);
    const moments m = find_moments(&l);
    for (int i = 0; i < 4; i++) {
        l.bn.relu = i & 1;
        l.bn.add = i & 2;
        printf("%s, %lld rows of %lld, %lld there%s%s\n", type == BPT_BF16 ? "bf16" : "f32",
               (long long)size.rows, (long long)size.c, (long long)l.there,
               l.bn.relu ? ", relu" : "", l.bn.add ? ", add" : "");
        take_memory(&l);
        check_forward(&l, m);
        check_evaluation(&l);
        check_backward(&l, m);
        give_memory(&l);
        cuda_free(l.gpu_y);
        free(l.values_y);
    }
    free_moments(m);
    free_layer(&l);
}

static void test_floats(void **state) {
    (void)state;
    for (int i = 0; i < N_SHAPES; i++) check_layer(BPT_F32, shapes[i]);
}

static void test_bf16(void **state) {
    (void)state;
    for (int i = 0; i < N_SHAPES; i++) check_layer(BPT_BF16, shapes[i]);
}

/* A variance does not drown in the square of the mean. */
static void test_far_mean(void **state) {
    (void)state;
    layer l = make_layer(BPT_F32, (shape){5000, 24, 0, 0}, 100.0f);
    const moments m = find_moments(&l);
    take_memory(&l);
    check_forward(&l, m);
    give_memory(&l);
    cuda_free(l.gpu_y);
    free(l.values_y);
    free_moments(m);
    free_layer(&l);
}

/* Variances that merges have taken below 0, and one that is no number. */
static void test_bad_variance(void **state) {
    enum { C = 8 };
    (void)state;
    layer l = make_layer(BPT_F32, (shape){1, C, 0, 0}, 0.0f);
    const float variance[C] = {-1.0f, NAN, INFINITY, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
    float *gpu_variance = cuda_upload(variance, sizeof variance);
    float *gpu_y = cuda_poisoned(C * sizeof(float));
    cuda_ok(bpt_cuda_batchnorm_evaluate(cuda_stream(), &l.bn, l.gpu_x, NULL, l.gpu_weight,
                                        l.gpu_bias, l.gpu_running_mean, gpu_variance, gpu_y));
    float *y = cuda_download_values(BPT_F32, gpu_y, C);
    const double first =
        (double)(l.x[0] - l.running_mean[0]) * inverse_of(0.0) * (double)l.weight[0] +
        (double)l.bias[0];
    assert_true(fabs((double)y[0] - first) <= 1e-4 * fabs(first));
    assert_true(isnan(y[1]) && isnan(y[2]));
    for (int i = 3; i < C; i++) assert_true(isfinite(y[i]));
    free(y);
    cuda_free(gpu_y);
    cuda_free(gpu_variance);
    free_layer(&l);
}

/* Nothing is no reason to fail: a batch of none, and one of which nothing is there. */
static void check_empty(shape size) {
    layer l = make_layer(BPT_F32, size, 0.0f);
    float *gradients[2] = {cuda_poisoned(8 * sizeof(float)), cuda_poisoned(8 * sizeof(float))};
    take_memory(&l);
    run_forward(&l, l.gpu_x, NULL, l.gpu_x, gradients[0], gradients[1]);
    run_backward(&l, l.gpu_dy, &(results){l.gpu_dy, NULL, gradients[0], gradients[1]});
    compare_floats("weight's gradient", gradients[0], (const double[8]){0}, 8);
    float *dx = cuda_download_values(BPT_F32, l.gpu_dy, l.n);
    for (size_t i = 0; i < l.n; i++) assert_true(dx[i] == 0.0f);
    free(dx);
    give_memory(&l);
    cuda_free(gradients[0]);
    cuda_free(gradients[1]);
    free_layer(&l);
}

static void test_empty(void **state) {
    (void)state;
    check_empty((shape){0, 8, 0, 0});
    check_empty((shape){40, 8, 40, 4});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),   cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_far_mean), cmocka_unit_test(test_bad_variance),
        cmocka_unit_test(test_empty),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
