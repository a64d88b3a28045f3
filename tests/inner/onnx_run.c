#include "tests/inner/onnx_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_DIMS = 4 };

typedef struct {
    const char *name;
    int n_dims;
    int64_t dims[MAX_DIMS]; /* behind n_dims 1 */
    double *x;              /* shape dims; NULL: not there yet */
} value;

typedef struct {
    const onnx_model *model;
    value *values; /* the input, the tensors, then what nodes put out; shape [n] */
    size_t n;
} machine;

/* ---- values ---- */

static int64_t count(const value *v) {
    return v->dims[0] * v->dims[1] * v->dims[2] * v->dims[3];
}

/* @param dims shape [n_dims] */
static value *add_value(machine *m, const char *name, const int64_t *dims, int n_dims) {
    for (size_t i = 0; i < m->n; i++) assert_string_not_equal(m->values[i].name, name);
    value *v = &m->values[m->n++];
    *v = (value){.name = name, .n_dims = n_dims};
    assert_in_range(n_dims, 1, MAX_DIMS);
    for (int i = 0; i < MAX_DIMS; i++) v->dims[i] = i < n_dims ? dims[i] : 1;
    for (int i = 0; i < MAX_DIMS; i++) assert_true(v->dims[i] > 0);
    v->x = calloc((size_t)count(v), sizeof *v->x);
    assert_non_null(v->x);
    return v;
}

static value *put_out(machine *m, const onnx_node *n, const int64_t *dims, int n_dims) {
    return add_value(m, n->output, dims, n_dims);
}

static const value *find(const machine *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->values[i].name, name) == 0) return &m->values[i];
    fail_msg("nothing is called %s yet", name);
    return NULL;
}

static const value *in(const machine *m, const onnx_node *n, int i) {
    assert_true(i < n->n_inputs);
    return find(m, n->inputs[i]);
}

/* @return the input of so many dimensions */
static const value *in_of(const machine *m, const onnx_node *n, int i, int n_dims) {
    const value *v = in(m, n, i);
    if (v->n_dims != n_dims) fail_msg("%s takes %d dimensions, not %d", n->name, n_dims, v->n_dims);
    return v;
}

static double at(const value *v, int64_t a, int64_t b, int64_t c, int64_t d) {
    return v->x[((a * v->dims[1] + b) * v->dims[2] + c) * v->dims[3] + d];
}

/* ---- attributes ---- */

/* No others than these are there. @param names ends with NULL */
static void allow(const onnx_node *n, const char *const *names) {
    for (int i = 0; i < n->n_attributes; i++) {
        int j = 0;
        while (names[j] && strcmp(names[j], n->attributes[i].name) != 0) j++;
        if (!names[j]) fail_msg("%s (%s) has %s", n->name, n->op, n->attributes[i].name);
    }
}

#define ALLOW(n, ...) allow((n), (const char *const[]){__VA_ARGS__, NULL})

static int64_t whole(const onnx_node *n, const char *name, int64_t otherwise) {
    const onnx_attribute *a = onnx_find(n, name);
    if (a) assert_int_equal(a->type, 2);
    return a ? a->i : otherwise;
}

static double real(const onnx_node *n, const char *name, double otherwise) {
    const onnx_attribute *a = onnx_find(n, name);
    if (a) assert_int_equal(a->type, 1);
    return a ? (double)a->f : otherwise;
}

static void list(const onnx_node *n, const char *name, int64_t otherwise, int size, int64_t *out) {
    const onnx_attribute *a = onnx_find(n, name);
    if (a) assert_true(a->type == 7 && a->n_ints == size);
    for (int i = 0; i < size; i++) out[i] = a ? a->ints[i] : otherwise;
}

/* ---- windows ---- */

typedef struct {
    int64_t kernel[2], stride[2], pads[4], dilation[2], out[2];
} window;

/* Of [N, C, H, W]. Rounded down: ceil_mode is 0. */
static window window_of(const onnx_node *n, const value *x) {
    window w;
    list(n, "kernel_shape", -1, 2, w.kernel);
    list(n, "strides", 1, 2, w.stride);
    list(n, "pads", 0, 4, w.pads);
    list(n, "dilations", 1, 2, w.dilation);
    for (int i = 0; i < 2; i++) {
        const int64_t room = x->dims[2 + i] + w.pads[i] + w.pads[2 + i];
        w.out[i] = (room - ((w.kernel[i] - 1) * w.dilation[i] + 1)) / w.stride[i] + 1;
    }
    return w;
}

/* The input's row and column of one value of a window. @return whether it is in no padding */
static bool inside(const window *w, const value *x, const int64_t *out, const int64_t *tap,
                   int64_t *place) {
    for (int i = 0; i < 2; i++)
        place[i] = out[i] * w->stride[i] + tap[i] * w->dilation[i] - w->pads[i];
    return place[0] >= 0 && place[0] < x->dims[2] && place[1] >= 0 && place[1] < x->dims[3];
}

static double convolve(const value *x, const value *weight, const window *w, int64_t sample,
                       int64_t k, int64_t group, const int64_t *out) {
    const int64_t channels = weight->dims[1];
    double sum = 0.0;
    for (int64_t r = 0; r < w->kernel[0]; r++)
        for (int64_t s = 0; s < w->kernel[1]; s++) {
            int64_t place[2];
            if (!inside(w, x, out, (const int64_t[]){r, s}, place)) continue;
            for (int64_t c = 0; c < channels; c++)
                sum += at(x, sample, group * channels + c, place[0], place[1]) *
                       at(weight, k, c, r, s);
        }
    return sum;
}

/* Calls @p f for each value that a window puts out. */
#define FOR_WINDOWS(y, f)                                                                          \
    do {                                                                                           \
        double *to = (y)->x;                                                                       \
        for (int64_t a = 0; a < (y)->dims[0]; a++)                                                 \
            for (int64_t b = 0; b < (y)->dims[1]; b++)                                             \
                for (int64_t p = 0; p < (y)->dims[2]; p++)                                         \
                    for (int64_t q = 0; q < (y)->dims[3]; q++) {                                   \
                        const int64_t out[] = {p, q};                                              \
                        *to++ = (f);                                                               \
                    }                                                                              \
    } while (0)

static void run_conv(machine *m, const onnx_node *n) {
    ALLOW(n, "kernel_shape", "strides", "pads", "dilations", "group");
    const value *x = in_of(m, n, 0, 4), *weight = in_of(m, n, 1, 4);
    const value *bias = n->n_inputs == 3 ? in_of(m, n, 2, 1) : NULL;
    const window w = window_of(n, x);
    const int64_t groups = whole(n, "group", 1), k = weight->dims[0];
    assert_true(weight->dims[1] * groups == x->dims[1] && k % groups == 0);
    assert_true(weight->dims[2] == w.kernel[0] && weight->dims[3] == w.kernel[1]);
    if (bias) assert_int_equal(bias->dims[0], k);
    const value *y = put_out(m, n, (int64_t[]){x->dims[0], k, w.out[0], w.out[1]}, 4);
    FOR_WINDOWS(y, convolve(x, weight, &w, a, b, b / (k / groups), out) + (bias ? bias->x[b] : 0));
}

static double pool(const value *x, const window *w, bool max, bool with_padding, int64_t sample,
                   int64_t c, const int64_t *out) {
    double largest = -INFINITY, sum = 0.0;
    int64_t n = 0;
    for (int64_t r = 0; r < w->kernel[0]; r++)
        for (int64_t s = 0; s < w->kernel[1]; s++) {
            int64_t place[2];
            if (!inside(w, x, out, (const int64_t[]){r, s}, place)) continue;
            const double v = at(x, sample, c, place[0], place[1]);
            largest = fmax(largest, v);
            sum += v;
            n++;
        }
    assert_true(n > 0);
    return max ? largest : sum / (double)(with_padding ? w->kernel[0] * w->kernel[1] : n);
}

static void run_pool(machine *m, const onnx_node *n) {
    const bool max = strcmp(n->op, "MaxPool") == 0;
    ALLOW(n, "kernel_shape", "strides", "pads", max ? "dilations" : "count_include_pad");
    const value *x = in_of(m, n, 0, 4);
    const window w = window_of(n, x);
    const bool with_padding = whole(n, "count_include_pad", 0) != 0;
    for (int i = 0; i < 4; i++) assert_true(w.pads[i] < w.kernel[i % 2]); /* runtimes refuse more */
    const value *y = put_out(m, n, (int64_t[]){x->dims[0], x->dims[1], w.out[0], w.out[1]}, 4);
    FOR_WINDOWS(y, pool(x, &w, max, with_padding, a, b, out));
}

static void run_global_pool(machine *m, const onnx_node *n) {
    ALLOW(n, NULL);
    const value *x = in_of(m, n, 0, 4);
    const int64_t pixels = x->dims[2] * x->dims[3];
    value *y = put_out(m, n, (int64_t[]){x->dims[0], x->dims[1], 1, 1}, 4);
    for (int64_t i = 0; i < count(y); i++) {
        for (int64_t j = 0; j < pixels; j++) y->x[i] += x->x[i * pixels + j];
        y->x[i] /= (double)pixels;
    }
}

/* ---- others ---- */

/* Of equal shapes, or of one with a number for each channel. */
static void run_binary(machine *m, const onnx_node *n) {
    const bool multiply = strcmp(n->op, "Mul") == 0;
    ALLOW(n, NULL);
    assert_int_equal(n->n_inputs, 2);
    const value *x = in(m, n, 0), *z = in_of(m, n, 1, x->n_dims);
    const bool same = memcmp(x->dims, z->dims, sizeof x->dims) == 0;
    if (!same) assert_true(z->dims[0] * z->dims[2] * z->dims[3] == 1 && z->dims[1] == x->dims[1]);
    const int64_t pixels = x->dims[2] * x->dims[3];
    value *y = put_out(m, n, x->dims, x->n_dims);
    for (int64_t i = 0; i < count(x); i++) {
        const double other = z->x[same ? i : i / pixels % x->dims[1]];
        y->x[i] = multiply ? x->x[i] * other : x->x[i] + other;
    }
}

static void run_sum(machine *m, const onnx_node *n) {
    ALLOW(n, NULL);
    const value *first = in(m, n, 0);
    value *y = put_out(m, n, first->dims, first->n_dims);
    for (int j = 0; j < n->n_inputs; j++) {
        const value *x = in_of(m, n, j, y->n_dims);
        assert_memory_equal(x->dims, y->dims, sizeof x->dims);
        for (int64_t i = 0; i < count(x); i++) y->x[i] += x->x[i];
    }
}

static void run_relu(machine *m, const onnx_node *n) {
    ALLOW(n, NULL);
    const value *x = in(m, n, 0);
    value *y = put_out(m, n, x->dims, x->n_dims);
    for (int64_t i = 0; i < count(x); i++) y->x[i] = fmax(x->x[i], 0.0);
}

static void run_batchnorm(machine *m, const onnx_node *n) {
    ALLOW(n, "epsilon");
    assert_int_equal(n->n_inputs, 5);
    const value *x = in(m, n, 0), *scale = in_of(m, n, 1, 1), *bias = in_of(m, n, 2, 1);
    const value *mean = in_of(m, n, 3, 1), *variance = in_of(m, n, 4, 1);
    const double epsilon = real(n, "epsilon", 1e-5);
    const int64_t pixels = x->dims[2] * x->dims[3];
    for (int i = 1; i < 5; i++) assert_int_equal(in(m, n, i)->dims[0], x->dims[1]);
    value *y = put_out(m, n, x->dims, x->n_dims);
    for (int64_t i = 0; i < count(x); i++) {
        const int64_t c = i / pixels % x->dims[1];
        y->x[i] =
            (x->x[i] - mean->x[c]) / sqrt(variance->x[c] + epsilon) * scale->x[c] + bias->x[c];
    }
}

static void run_flatten(machine *m, const onnx_node *n) {
    ALLOW(n, "axis");
    assert_int_equal(whole(n, "axis", 1), 1);
    const value *x = in(m, n, 0);
    const int64_t size = count(x);
    const value *y = put_out(m, n, (int64_t[]){x->dims[0], size / x->dims[0]}, 2);
    memcpy(y->x, x->x, (size_t)size * sizeof *x->x);
}

static void run_unsqueeze(machine *m, const onnx_node *n) {
    ALLOW(n, NULL);
    const value *x = in_of(m, n, 0, 2), *axes = in_of(m, n, 1, 1);
    assert_true(axes->dims[0] == 2 && axes->x[0] == 2 && axes->x[1] == 3);
    const value *y = put_out(m, n, (int64_t[]){x->dims[0], x->dims[1], 1, 1}, 4);
    memcpy(y->x, x->x, (size_t)count(x) * sizeof *x->x);
}

static void run_gemm(machine *m, const onnx_node *n) {
    ALLOW(n, "transB");
    assert_int_equal(whole(n, "transB", 0), 1);
    const value *x = in_of(m, n, 0, 2), *weight = in_of(m, n, 1, 2);
    const value *bias = n->n_inputs == 3 ? in_of(m, n, 2, 1) : NULL;
    const int64_t size = x->dims[1], outputs = weight->dims[0];
    assert_int_equal(weight->dims[1], size);
    if (bias) assert_int_equal(bias->dims[0], outputs);
    const value *y = put_out(m, n, (int64_t[]){x->dims[0], outputs}, 2);
    for (int64_t i = 0; i < count(y); i++) {
        const double *row = x->x + i / outputs * size, *by = weight->x + i % outputs * size;
        double sum = bias ? bias->x[i % outputs] : 0.0;
        for (int64_t j = 0; j < size; j++) sum += row[j] * by[j];
        y->x[i] = sum;
    }
}

static void run_lrn(machine *m, const onnx_node *n) {
    ALLOW(n, "size", "alpha", "beta", "bias");
    const value *x = in_of(m, n, 0, 4);
    const int64_t size = whole(n, "size", 0), pixels = x->dims[2] * x->dims[3], n_c = x->dims[1];
    const double alpha = real(n, "alpha", 1e-4), beta = real(n, "beta", 0.75);
    assert_true(size > 0 && alpha > 0 && beta > 0); /* ONNX Runtime takes no other ones */
    const value *y = put_out(m, n, x->dims, 4);
    for (int64_t i = 0; i < count(x); i++) {
        const int64_t c = i / pixels % n_c;
        double squares = 0.0;
        for (int64_t d = c - (size - 1) / 2; d <= c + size / 2; d++) {
            if (d < 0 || d >= n_c) continue;
            const double v = x->x[i + (d - c) * pixels];
            squares += v * v;
        }
        y->x[i] = x->x[i] / pow(real(n, "bias", 1.0) + alpha / (double)size * squares, beta);
    }
}

/* Of channels, behind. */
static void run_pad(machine *m, const onnx_node *n) {
    ALLOW(n, NULL);
    assert_int_equal(n->n_inputs, 2); /* with zeros */
    const value *x = in_of(m, n, 0, 4), *pads = in_of(m, n, 1, 1);
    assert_int_equal(pads->dims[0], 8);
    for (int i = 0; i < 8; i++) assert_true(i == 5 ? pads->x[i] >= 0 : pads->x[i] == 0);
    const int64_t channels = x->dims[1] + (int64_t)pads->x[5], of_sample = count(x) / x->dims[0];
    const value *y = put_out(m, n, (int64_t[]){x->dims[0], channels, x->dims[2], x->dims[3]}, 4);
    for (int64_t a = 0; a < x->dims[0]; a++)
        memcpy(y->x + a * (count(y) / y->dims[0]), x->x + a * of_sample,
               (size_t)of_sample * sizeof *x->x);
}

static void run_concat(machine *m, const onnx_node *n) {
    ALLOW(n, "axis");
    assert_int_equal(whole(n, "axis", -100), 1);
    const value *first = in(m, n, 0);
    int64_t dims[MAX_DIMS] = {first->dims[0], 0, first->dims[2], first->dims[3]}, before = 0;
    for (int j = 0; j < n->n_inputs; j++) dims[1] += in(m, n, j)->dims[1];
    const value *y = put_out(m, n, dims, first->n_dims);
    for (int j = 0; j < n->n_inputs; j++) {
        const value *x = in_of(m, n, j, y->n_dims);
        const int64_t size = count(x) / x->dims[0];
        assert_true(x->dims[0] == y->dims[0] && x->dims[2] == y->dims[2] &&
                    x->dims[3] == y->dims[3]);
        for (int64_t a = 0; a < x->dims[0]; a++)
            memcpy(y->x + a * (count(y) / y->dims[0]) + before, x->x + a * size,
                   (size_t)size * sizeof *x->x);
        before += size;
    }
}

static void run_softmax(machine *m, const onnx_node *n) {
    ALLOW(n, "axis");
    const value *x = in_of(m, n, 0, 2);
    assert_int_equal(whole(n, "axis", -1), 1);
    const value *y = put_out(m, n, x->dims, 2);
    for (int64_t a = 0; a < x->dims[0]; a++) {
        const double *from = x->x + a * x->dims[1];
        double *to = y->x + a * x->dims[1], largest = -INFINITY, sum = 0.0;
        for (int64_t k = 0; k < x->dims[1]; k++) largest = fmax(largest, from[k]);
        for (int64_t k = 0; k < x->dims[1]; k++) sum += to[k] = exp(from[k] - largest);
        for (int64_t k = 0; k < x->dims[1]; k++) to[k] /= sum;
    }
}

/* ---- all of it ---- */

static const struct {
    const char *op;
    void (*run)(machine *m, const onnx_node *n);
} operators[] = {
    {"Add", run_binary},      {"AveragePool", run_pool},
    {"Concat", run_concat},   {"Conv", run_conv},
    {"Flatten", run_flatten}, {"Gemm", run_gemm},
    {"LRN", run_lrn},         {"BatchNormalization", run_batchnorm},
    {"MaxPool", run_pool},    {"GlobalAveragePool", run_global_pool},
    {"Mul", run_binary},      {"Pad", run_pad},
    {"Relu", run_relu},       {"Softmax", run_softmax},
    {"Sum", run_sum},         {"Unsqueeze", run_unsqueeze},
};

static void run_node(machine *m, const onnx_node *n) {
    size_t i = 0;
    while (i < sizeof operators / sizeof *operators && strcmp(operators[i].op, n->op) != 0) i++;
    if (i == sizeof operators / sizeof *operators) fail_msg("%s: what is %s?", n->name, n->op);
    operators[i].run(m, n);
}

static void add_tensor(machine *m, const onnx_tensor *t) {
    const value *v = add_value(m, t->name, t->dims, t->n_dims);
    assert_true(t->type == 1 || t->type == 7);
    assert_int_equal(t->raw_bytes, (size_t)count(v) * (t->type == 1 ? 4 : 8));
    for (int64_t i = 0; i < count(v); i++) {
        float f;
        int64_t whole_number;
        memcpy(t->type == 1 ? (void *)&f : (void *)&whole_number,
               t->raw + i * (t->type == 1 ? 4 : 8), t->type == 1 ? 4 : 8);
        v->x[i] = t->type == 1 ? (double)f : (double)whole_number;
    }
}

double *onnx_run(const onnx_model *model, int64_t n, const float *input) {
    machine m = {.model = model};
    int64_t dims[MAX_DIMS] = {n};
    m.values = calloc(1 + model->n_tensors + model->n_nodes, sizeof *m.values);
    assert_non_null(m.values);
    assert_true(model->input.n_dims == MAX_DIMS && model->input.dims[0] == -1);
    for (int i = 1; i < MAX_DIMS; i++) dims[i] = model->input.dims[i];
    const value *x = add_value(&m, model->input.name, dims, MAX_DIMS);
    for (int64_t i = 0; i < count(x); i++) x->x[i] = (double)input[i];
    for (size_t i = 0; i < model->n_tensors; i++) add_tensor(&m, &model->tensors[i]);
    for (size_t i = 0; i < model->n_nodes; i++) run_node(&m, &model->nodes[i]);
    const value *y = find(&m, model->output.name);
    assert_true(y->n_dims == 2 && model->output.n_dims == 2 && y->dims[0] == n &&
                y->dims[1] == model->output.dims[1]);
    double *result = y->x;
    for (size_t i = 0; i < m.n; i++)
        if (m.values[i].x != result) free(m.values[i].x);
    free(m.values);
    return result;
}
