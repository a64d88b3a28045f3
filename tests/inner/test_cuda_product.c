/* Fully connected layers' products of cuBLASLt, all three steps, against plain loops in double
 * precision.
 *
 * ctest: gpu TIMEOUT=120 */
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

static const ref_fc cases[] = {{5, 16, 10},  {1, 120, 84},   {64, 512, 1000}, {5, 3, 7},
                               {33, 84, 10}, {128, 256, 64}, {1, 1, 1}};
enum { N_CASES = sizeof cases / sizeof *cases };

/* What is run: values, and the GPU's copies. */
typedef struct bench {
    bpt_cuda_library *library;
    ref_fc sizes;
    bpt_value_type type;
    double bound; /* of |out - reference| / |reference| */
    size_t n_x, n_y, n_w;
    float *x, *y, *w, *bias; /* y: a gradient */
    void *gpu_x, *gpu_y, *gpu_w, *gpu_bias;
} bench;

static bench make_bench(bpt_cuda_library *library, const ref_fc *a, bpt_value_type type,
                        double bound) {
    bench b = {.library = library, .sizes = *a, .type = type, .bound = bound};
    b.n_x = (size_t)(a->n * a->c);
    b.n_y = (size_t)(a->n * a->k);
    b.n_w = (size_t)(a->k * a->c);
    b.x = cuda_random(type, b.n_x, 1);
    b.y = cuda_random(type, b.n_y, 2);
    b.w = cuda_random(type, b.n_w, 3);
    b.bias = cuda_random(BPT_F32, (size_t)a->k, 4);
    b.gpu_x = cuda_upload_values(type, b.x, b.n_x);
    b.gpu_y = cuda_upload_values(type, b.y, b.n_y);
    b.gpu_w = cuda_upload_values(type, b.w, b.n_w);
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

static double largest; /* error of a precision: |out - reference| / |reference| */

static void compare(const bench *b, const char *step, const float *values, const double *reference,
                    size_t n) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)values[i] - reference[i];
        difference += d * d;
        norm += reference[i] * reference[i];
    }
    if (difference > largest * largest * norm) largest = sqrt(difference / norm);
    if (!(sqrt(difference) <= b->bound * sqrt(norm)))
        fail_msg("%s of %d samples, %d to %d values: off by %g of %g", step, (int)b->sizes.n,
                 (int)b->sizes.c, (int)b->sizes.k, sqrt(difference), sqrt(norm));
}

/* Runs a step twice, into poison each time. @return its values */
static float *run_step(const bench *b, bpt_cuda_conv_step step, bool bias, const void *first,
                       const void *second, bpt_value_type type, size_t n) {
    const bpt_cuda_product_problem problem = {b->type, b->sizes.n, b->sizes.c, b->sizes.k, bias};
    bpt_cuda_product *product = NULL;
    float *values[2];
    cuda_ok(bpt_cuda_product_create(b->library, &problem, step, &product));
    assert_true(bpt_cuda_product_ns(product) > 0);
    for (int i = 0; i < 2; i++) {
        void *workspace = cuda_poisoned(bpt_cuda_library_workspace(b->library) + 1);
        void *out = cuda_poisoned(n * bpt_value_bytes(type));
        bpt_cuda_library_use(b->library, workspace);
        cuda_ok(bpt_cuda_product_run(cuda_stream(), product, first, second,
                                     bias ? b->gpu_bias : NULL, out));
        values[i] = cuda_download_values(type, out, n);
        cuda_free(out);
        cuda_free(workspace);
    }
    bpt_cuda_product_free(product);
    assert_memory_equal(values[0], values[1], n * sizeof(float));
    free(values[1]);
    return values[0];
}

static void check_forward(const bench *b, bool with_bias) {
    double *x = ref_doubles(b->x, b->n_x), *w = ref_doubles(b->w, b->n_w);
    double *bias = ref_doubles(b->bias, (size_t)b->sizes.k), *y = ref_zeros(b->n_y);
    ref_fc_forward(&b->sizes, x, w, with_bias ? bias : NULL, y);
    float *values =
        run_step(b, BPT_CUDA_CONV_FORWARD, with_bias, b->gpu_x, b->gpu_w, b->type, b->n_y);
    compare(b, "forward", values, y, b->n_y);
    free(values);
    free(y);
    free(bias);
    free(w);
    free(x);
}

static void check_backward_data(const bench *b) {
    double *dy = ref_doubles(b->y, b->n_y), *w = ref_doubles(b->w, b->n_w);
    double *dx = ref_zeros(b->n_x);
    ref_fc_backward_data(&b->sizes, dy, w, dx);
    float *values =
        run_step(b, BPT_CUDA_CONV_BACKWARD_DATA, false, b->gpu_y, b->gpu_w, b->type, b->n_x);
    compare(b, "backward data", values, dx, b->n_x);
    free(values);
    free(dx);
    free(w);
    free(dy);
}

static void check_backward_weights(const bench *b) {
    double *x = ref_doubles(b->x, b->n_x), *dy = ref_doubles(b->y, b->n_y);
    double *dw = ref_zeros(b->n_w);
    ref_fc_backward_weight(&b->sizes, x, dy, dw);
    float *values =
        run_step(b, BPT_CUDA_CONV_BACKWARD_WEIGHTS, false, b->gpu_x, b->gpu_y, BPT_F32, b->n_w);
    compare(b, "backward weights", values, dw, b->n_w);
    free(values);
    free(dw);
    free(dy);
    free(x);
}

static void check_cases(bpt_value_type type, bool tf32, double bound) {
    bpt_cuda_library *library = NULL;
    largest = 0.0;
    cuda_ok(bpt_cuda_library_open(tf32, &library));
    for (int i = 0; i < N_CASES; i++) {
        bench b = make_bench(library, &cases[i], type, bound);
        check_forward(&b, false);
        check_forward(&b, true);
        check_backward_data(&b);
        check_backward_weights(&b);
        free_bench(&b);
    }
    bpt_cuda_library_free(library);
    print_message("the largest error is %.2g, the bound %g\n", largest, bound);
}

static void test_fp32(void **state) {
    (void)state;
    check_cases(BPT_F32, false, 1e-5);
}

static void test_tf32(void **state) {
    (void)state;
    check_cases(BPT_F32, true, 1e-3);
}

static void test_bf16(void **state) {
    (void)state;
    check_cases(BPT_BF16, false, 1e-2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32),
        cmocka_unit_test(test_tf32),
        cmocka_unit_test(test_bf16),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
