#include "tests/inner/gpu_on_cores/products.h"

#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

typedef bpt_cuda_conv_problem conv_problem;

static float *new_floats(int64_t n) {
    float *floats = calloc((size_t)n + 1, sizeof *floats);
    if (floats) return floats;
    fprintf(stderr, "a GPU on cores: no memory for a product\n");
    abort();
}

float *gpu_on_cores_read(bpt_value_type type, const void *from, int64_t n) {
    float *to = new_floats(n);
    for (int64_t i = 0; i < n; i++)
        to[i] = type == BPT_BF16 ? bpt_from_bf16(((const bpt_bf16 *)from)[i])
                                 : ((const float *)from)[i];
    return to;
}

void gpu_on_cores_write(bpt_value_type type, const float *from, int64_t n, void *to) {
    for (int64_t i = 0; i < n; i++) {
        if (type == BPT_BF16)
            ((bpt_bf16 *)to)[i] = bpt_to_bf16(from[i]);
        else
            ((float *)to)[i] = from[i];
    }
}

void gpu_on_cores_multiply(char ta, char tb, int64_t m, int64_t n, int64_t k, const float *a,
                           int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                           int64_t ldc) {
    const int n_threads = omp_get_max_threads();
    omp_set_num_threads(1); /* what is small is slower with more */
    const dnnl_status_t status = dnnl_sgemm(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
    omp_set_num_threads(n_threads);
    if (status == dnnl_success) return;
    fprintf(stderr, "a GPU on cores: oneDNN refuses a product\n");
    abort();
}

/* ---- a sample's windows ---- */

static int64_t taps(const conv_problem *p) {
    return p->kernel[0] * p->kernel[1];
}

/* @return where output row or column o reads with a tap; -1: in the padding */
static int64_t place(const conv_problem *p, int dimension, int64_t o, int64_t tap) {
    const int64_t at = o * p->stride[dimension] + tap * p->dilation[dimension] - p->pad[dimension];
    return at < 0 || at >= (dimension == 0 ? p->h : p->w) ? -1 : at;
}

typedef struct {
    const conv_problem *problem;
    int64_t group;
    float *pixels;  /* of a sample, shape [h, w, c] */
    float *windows; /* shape [p, q, taps, c / groups] */
} unfolding;

/* Calls fn with each pixel's part of a window that there is. */
static void each_tap(const unfolding *u, void (*fn)(float *pixel, float *window, int64_t n)) {
    const conv_problem *p = u->problem;
    const int64_t c = p->c / p->groups;
    for (int64_t i = 0; i < p->p * p->q * taps(p); i++) {
        const int64_t out = i / taps(p), tap = i % taps(p);
        const int64_t y = place(p, 0, out / p->q, tap / p->kernel[1]);
        const int64_t x = place(p, 1, out % p->q, tap % p->kernel[1]);
        if (y >= 0 && x >= 0)
            fn(u->pixels + (y * p->w + x) * p->c + u->group * c, u->windows + i * c, c);
    }
}

static void unfold(float *pixel, float *window, int64_t n) {
    for (int64_t i = 0; i < n; i++) window[i] = pixel[i];
}

static void fold(float *pixel, float *window, int64_t n) {
    for (int64_t i = 0; i < n; i++) pixel[i] += window[i];
}

/* ---- steps of one group of one sample ---- */

typedef struct {
    float *x, *w, *y; /* of the sample and group; rows of x and y are c and k apart */
    float *windows;
} group_values;

static void forward(const conv_problem *p, const unfolding *u, const group_values *v) {
    const int64_t row = taps(p) * p->c / p->groups;
    each_tap(u, unfold);
    gpu_on_cores_multiply('N', 'T', p->p * p->q, p->k / p->groups, row, v->windows, row, v->w, row,
                          0.0f, v->y, p->k);
}

static void backward_data(const conv_problem *p, const unfolding *u, const group_values *v) {
    const int64_t row = taps(p) * p->c / p->groups;
    gpu_on_cores_multiply('N', 'N', p->p * p->q, row, p->k / p->groups, v->y, p->k, v->w, row, 0.0f,
                          v->windows, row);
    each_tap(u, fold);
}

static void backward_weights(const conv_problem *p, const unfolding *u, const group_values *v) {
    const int64_t row = taps(p) * p->c / p->groups;
    each_tap(u, unfold);
    gpu_on_cores_multiply('T', 'N', p->k / p->groups, row, p->p * p->q, v->y, p->k, v->windows, row,
                          1.0f, v->w, row);
}

/* ---- whole ---- */

typedef struct {
    float *x, *w, *y;
} tensors;

static void each_group(const conv_problem *p, const tensors *t,
                       void (*fn)(const conv_problem *, const unfolding *, const group_values *)) {
    const int64_t out = p->p * p->q, row = taps(p) * p->c / p->groups, k = p->k / p->groups;
    for (int64_t i = 0; i < p->n * p->groups; i++) {
        const int64_t sample = i / p->groups, group = i % p->groups;
        float *windows = new_floats(out * row);
        const unfolding u = {p, group, t->x + sample * p->h * p->w * p->c, windows};
        const group_values v = {u.pixels, t->w + group * k * row,
                                t->y + sample * out * p->k + group * k, windows};
        fn(p, &u, &v);
        free(windows);
    }
}

static void add_bias(const conv_problem *p, const float *bias, float *y) {
    for (int64_t i = 0; i < p->n * p->p * p->q * p->k; i++) {
        if (bias) y[i] += bias[i % p->k];
        if (p->relu && y[i] < 0.0f) y[i] = 0.0f;
    }
}

void gpu_on_cores_conv(const bpt_cuda_conv_problem *p, bpt_cuda_conv_step step, const void *a,
                       const void *b, const float *bias, void *out) {
    const int64_t n_x = p->n * p->h * p->w * p->c, n_w = p->k * taps(p) * p->c / p->groups;
    const int64_t n_y = p->n * p->p * p->q * p->k;
    tensors t = {0};
    switch (step) {
    case BPT_CUDA_CONV_FORWARD:
        t = (tensors){gpu_on_cores_read(p->type, a, n_x), gpu_on_cores_read(p->type, b, n_w),
                      new_floats(n_y)};
        each_group(p, &t, forward);
        add_bias(p, bias, t.y);
        gpu_on_cores_write(p->type, t.y, n_y, out);
        break;
    case BPT_CUDA_CONV_BACKWARD_DATA:
        t = (tensors){new_floats(n_x), gpu_on_cores_read(p->type, b, n_w),
                      gpu_on_cores_read(p->type, a, n_y)};
        each_group(p, &t, backward_data);
        gpu_on_cores_write(p->type, t.x, n_x, out);
        break;
    case BPT_CUDA_CONV_BACKWARD_WEIGHTS:
        t = (tensors){gpu_on_cores_read(p->type, a, n_x), new_floats(n_w),
                      gpu_on_cores_read(p->type, b, n_y)};
        each_group(p, &t, backward_weights);
        gpu_on_cores_write(BPT_F32, t.w, n_w, out);
        break;
    }
    free(t.x);
    free(t.w);
    free(t.y);
}

void gpu_on_cores_product(const bpt_cuda_product_problem *problem, bpt_cuda_conv_step step,
                          const void *a, const void *b, const float *bias, void *out) {
    /* Its samples are the pixels of one image. */
    const conv_problem conv = {
        .type = problem->type,
        .n = 1,
        .c = problem->c,
        .h = problem->n,
        .w = 1,
        .k = problem->k,
        .p = problem->n,
        .q = 1,
        .groups = 1,
        .kernel = {1, 1},
        .stride = {1, 1},
        .dilation = {1, 1},
    };
    gpu_on_cores_conv(&conv, step, a, b, bias, out);
}
