/* Convolutions of cuDNN, all three steps, against plain loops in double precision.
 *
 * ctest: gpu TIMEOUT=400 */
#include "inner/cuda/cuda_library.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/ref/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

typedef struct conv_case {
    const char *name;
    int64_t n, c, h, w, k, groups, kernel, stride, pad, dilation;
    bool bias, relu;
} conv_case;

static const conv_case cases[] = {
    {"3x3", 5, 16, 9, 10, 24, 1, 3, 1, 1, 1, false, false},
    {"3x3 with bias", 5, 16, 9, 10, 24, 1, 3, 1, 1, 1, true, false},
    {"3x3 with bias and relu", 1, 16, 9, 10, 24, 1, 3, 1, 1, 1, true, true},
    {"3x3 with relu", 5, 8, 9, 10, 8, 1, 3, 1, 1, 1, false, true},
    {"3x3 by steps of 2", 5, 16, 9, 10, 24, 1, 3, 2, 1, 1, false, false},
    {"1x1", 1, 32, 7, 7, 64, 1, 1, 1, 0, 1, false, false},
    {"1x1 by steps of 2", 5, 32, 8, 8, 64, 1, 1, 2, 0, 1, false, false},
    {"7x7", 5, 3, 32, 32, 64, 1, 7, 2, 3, 1, false, false},
    {"11x11", 5, 3, 51, 51, 16, 1, 11, 4, 2, 1, true, true},
    {"5x5", 5, 8, 12, 12, 16, 1, 5, 1, 2, 1, false, false},
    {"dilated", 5, 16, 14, 14, 16, 1, 3, 1, 2, 2, false, false},
    {"2 groups", 5, 16, 9, 9, 32, 2, 3, 1, 1, 1, true, false},
    {"depthwise", 5, 16, 9, 9, 16, 16, 3, 1, 1, 1, false, false},
    {"depthwise by steps of 2", 1, 16, 9, 9, 16, 16, 3, 2, 1, 1, false, false},
    {"3 to 10 channels", 5, 3, 9, 9, 10, 1, 3, 1, 1, 1, true, false},
    {"1 to 6 channels", 5, 1, 12, 12, 6, 1, 5, 1, 0, 1, true, true},
    {"6 to 16 channels", 1, 6, 12, 12, 16, 1, 5, 1, 0, 1, false, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct precision {
    bpt_value_type type;
    bool tf32;
    double bound; /* of |out - reference| / |reference| */
} precision;

static const precision fp32 = {BPT_F32, false, 1e-5};
static const precision tf32 = {BPT_F32, true, 1e-3};
static const precision bf16 = {BPT_BF16, false, 1e-2};

/* What one case is run with: values in the order of the reference, the GPU's copies in the GPU's.
 */
typedef struct bench {
    ref_window window;
    bpt_cuda_conv_problem problem;
    size_t n_x, n_y, n_w;
    float *x, *y, *w, *bias; /* y: a gradient */
    void *gpu_x, *gpu_y, *gpu_w, *gpu_bias;
} bench;

/* ---- order of values ---- */

/* [outer, c, inner] to [outer, inner, c]. */
static float *channels_last(const float *from, int64_t outer, int64_t c, int64_t inner) {
    float *to = calloc((size_t)(outer * c * inner), sizeof *to);
    assert_non_null(to);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < c; i++)
            for (int64_t j = 0; j < inner; j++)
                to[(o * inner + j) * c + i] = from[(o * c + i) * inner + j];
    return to;
}

static float *channels_first(const float *from, int64_t outer, int64_t c, int64_t inner) {
    return channels_last(from, outer, inner, c);
}

static void *upload(bpt_value_type type, const float *x, int64_t outer, int64_t c, int64_t inner) {
    float *turned = channels_last(x, outer, c, inner);
    void *at = cuda_upload_values(type, turned, (size_t)(outer * c * inner));
    free(turned);
    return at;
}

/* ---- a case ---- */

static bench make_bench(const conv_case *a, bpt_value_type type) {
    bench b = {.window = {.n = a->n,
                          .c = a->c,
                          .h = a->h,
                          .w = a->w,
                          .k = a->k,
                          .r = a->kernel,
                          .s = a->kernel,
                          .stride = {a->stride, a->stride},
                          .pad = {a->pad, a->pad},
                          .dilation = {a->dilation, a->dilation},
                          .groups = a->groups}};
    const int64_t p = ref_window_p(&b.window), q = ref_window_q(&b.window);
    const int64_t group = a->c / a->groups, taps = a->kernel * a->kernel;
    b.problem = (bpt_cuda_conv_problem){.type = type,
                                        .n = a->n,
                                        .c = a->c,
                                        .h = a->h,
                                        .w = a->w,
                                        .k = a->k,
                                        .p = p,
                                        .q = q,
                                        .groups = a->groups,
                                        .kernel = {a->kernel, a->kernel},
                                        .stride = {a->stride, a->stride},
                                        .pad = {a->pad, a->pad},
                                        .dilation = {a->dilation, a->dilation},
                                        .bias = a->bias,
                                        .relu = a->relu};
    b.n_x = (size_t)(a->n * a->c * a->h * a->w);
    b.n_y = (size_t)(a->n * a->k * p * q);
    b.n_w = (size_t)(a->k * group * taps);
    b.x = cuda_random(type, b.n_x, 1);
    b.y = cuda_random(type, b.n_y, 2);
    b.w = cuda_random(type, b.n_w, 3);
    b.bias = cuda_random(BPT_F32, (size_t)a->k, 4);
    b.gpu_x = upload(type, b.x, a->n, a->c, a->h * a->w);
    b.gpu_y = upload(type, b.y, a->n, a->k, p * q);
    b.gpu_w = upload(type, b.w, a->k, group, taps);
    b.gpu_bias = cuda_upload(b.bias, (size_t)a->k * sizeof *b.bias);
    return b;
}

static void free_bench(bench *b) {
    void *const gpu[] = {b->gpu_x, b->gpu_y, b->gpu_w, b->gpu_bias};
    float *const host[] = {b->x, b->y, b->w, b->bias};
    for (size_t i = 0; i < sizeof gpu / sizeof *gpu; i++) {
        cuda_free(gpu[i]);
        free(host[i]);
    }
}

static double largest; /* error of a precision, as its bound */

static void compare(const char *name, const char *step, double bound, const float *values,
                    const double *reference, size_t n) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)values[i] - reference[i];
        difference += d * d;
        norm += reference[i] * reference[i];
    }
    if (difference > largest * largest * norm) largest = sqrt(difference / norm);
    if (!(sqrt(difference) <= bound * sqrt(norm)))
        fail_msg("%s, %s: off by %g of %g", name, step, sqrt(difference), sqrt(norm));
}

/* Runs a step twice, into poison each time. @return its values, in the reference's order */
static float *run_step(bpt_cuda_library *library, const bench *b, bpt_cuda_conv_step step,
                       const void *first, const void *second, const float *bias,
                       bpt_value_type type, int64_t outer, int64_t c, int64_t inner) {
    const size_t n = (size_t)(outer * c * inner);
    bpt_cuda_conv *conv = NULL;
    float *values[2];
    cuda_ok(bpt_cuda_conv_create(library, &b->problem, step, &conv));
    for (int i = 0; i < 2; i++) {
        void *workspace = cuda_poisoned(bpt_cuda_library_workspace(library) + 1);
        void *out = cuda_poisoned(n * bpt_value_bytes(type));
        bpt_cuda_library_use(library, workspace);
        cuda_ok(bpt_cuda_conv_run(cuda_stream(), conv, first, second, bias, out));
        values[i] = cuda_download_values(type, out, n);
        cuda_free(out);
        cuda_free(workspace);
    }
    bpt_cuda_conv_free(conv);
    assert_memory_equal(values[0], values[1], n * sizeof(float));
    float *turned = channels_first(values[0], outer, c, inner);
    free(values[0]);
    free(values[1]);
    return turned;
}

static void check_forward(bpt_cuda_library *library, const conv_case *a, const bench *b,
                          double bound) {
    const bpt_cuda_conv_problem *p = &b->problem;
    double *x = ref_doubles(b->x, b->n_x), *w = ref_doubles(b->w, b->n_w);
    double *bias = ref_doubles(b->bias, (size_t)p->k), *y = ref_zeros(b->n_y);
    ref_conv_forward(&b->window, x, w, p->bias ? bias : NULL, y);
    if (p->relu) ref_relu_forward(b->n_y, y, y);
    float *values = run_step(library, b, BPT_CUDA_CONV_FORWARD, b->gpu_x, b->gpu_w,
                             p->bias ? b->gpu_bias : NULL, p->type, p->n, p->k, p->p * p->q);
    compare(a->name, "forward", bound, values, y, b->n_y);
    free(values);
    free(y);
    free(bias);
    free(w);
    free(x);
}

static void check_backward_data(bpt_cuda_library *library, const conv_case *a, const bench *b,
                                double bound) {
    const bpt_cuda_conv_problem *p = &b->problem;
    double *dy = ref_doubles(b->y, b->n_y), *w = ref_doubles(b->w, b->n_w);
    double *dx = ref_zeros(b->n_x);
    ref_conv_backward_data(&b->window, dy, w, dx);
    float *values = run_step(library, b, BPT_CUDA_CONV_BACKWARD_DATA, b->gpu_y, b->gpu_w, NULL,
                             p->type, p->n, p->c, p->h * p->w);
    compare(a->name, "backward data", bound, values, dx, b->n_x);
    free(values);
    free(dx);
    free(w);
    free(dy);
}

static void check_backward_weights(bpt_cuda_library *library, const conv_case *a, const bench *b,
                                   double bound) {
    const bpt_cuda_conv_problem *p = &b->problem;
    double *x = ref_doubles(b->x, b->n_x), *dy = ref_doubles(b->y, b->n_y);
    double *dw = ref_zeros(b->n_w);
    ref_conv_backward_weight(&b->window, x, dy, dw);
    float *values = run_step(library, b, BPT_CUDA_CONV_BACKWARD_WEIGHTS, b->gpu_x, b->gpu_y, NULL,
                             BPT_F32, p->k, p->c / p->groups, p->kernel[0] * p->kernel[1]);
    compare(a->name, "backward weights", bound, values, dw, b->n_w);
    free(values);
    free(dw);
    free(dy);
    free(x);
}

static void check_cases(const precision *in) {
    bpt_cuda_library *library = NULL;
    largest = 0.0;
    cuda_ok(bpt_cuda_library_open(in->tf32, &library));
    for (int i = 0; i < N_CASES; i++) {
        bench b = make_bench(&cases[i], in->type);
        check_forward(library, &cases[i], &b, in->bound);
        check_backward_data(library, &cases[i], &b, in->bound);
        check_backward_weights(library, &cases[i], &b, in->bound);
        free_bench(&b);
    }
    bpt_cuda_library_free(library);
    print_message("the largest error is %.2g, the bound %g\n", largest, in->bound);
}

static void test_fp32(void **state) {
    (void)state;
    check_cases(&fp32);
}

static void test_tf32(void **state) {
    (void)state;
    check_cases(&tf32);
}

static void test_bf16(void **state) {
    (void)state;
    check_cases(&bf16);
}

/* The second of two layers that are alike takes what was measured for the first. */
static void test_same_problem(void **state) {
    (void)state;
    bpt_cuda_library *library = NULL;
    bpt_cuda_conv *conv[2] = {NULL, NULL};
    bench b = make_bench(&cases[0], BPT_F32);
    cuda_ok(bpt_cuda_library_open(false, &library));
    for (int i = 0; i < 2; i++) {
        /* Of no matter to a step back. */
        b.problem.bias = b.problem.relu = i == 1;
        cuda_ok(bpt_cuda_conv_create(library, &b.problem, BPT_CUDA_CONV_BACKWARD_DATA, &conv[i]));
    }
    assert_true(bpt_cuda_conv_ns(conv[0]) > 0);
    assert_int_equal(bpt_cuda_conv_ns(conv[0]), bpt_cuda_conv_ns(conv[1]));
    for (int i = 0; i < 2; i++) bpt_cuda_conv_free(conv[i]);
    bpt_cuda_library_free(library);
    free_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32),
        cmocka_unit_test(test_tf32),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_same_problem),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
