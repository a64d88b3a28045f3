#include "tests/ref/ref.h"

#include <string.h>

static int64_t one_if_unset(int64_t x) {
    return x ? x : 1;
}

static int64_t dilation(const ref_window *a, int i) {
    return one_if_unset(a->dilation[i]);
}

int64_t ref_window_p(const ref_window *a) {
    if (a->p) return a->p;
    return (a->h + 2 * a->pad[0] - (a->r - 1) * dilation(a, 0) - 1) / a->stride[0] + 1;
}

int64_t ref_window_q(const ref_window *a) {
    if (a->q) return a->q;
    return (a->w + 2 * a->pad[1] - (a->s - 1) * dilation(a, 1) - 1) / a->stride[1] + 1;
}

/* ---- convolution ---- */

typedef struct {
    const double *x, *y, *weight; /* what is read */
    double *out;
} operands;

/* A row of products of one weight: pixel x + i * step and y + i, i < n. */
typedef struct {
    int64_t x, step, y, weight, n;
} row;

typedef void (*row_fn)(const operands *o, row r);

/* Of a kernel's column s: the outputs of a row, [begin, end), whose input is no padding. */
typedef struct {
    int64_t begin, end, shift; /* the input of output q is q * stride + shift */
} columns;

static columns columns_of(const ref_window *a, int64_t s) {
    const int64_t stride = a->stride[1];
    columns c = {0, ref_window_q(a), s * dilation(a, 1) - a->pad[1]};
    while (c.begin < c.end && c.begin * stride + c.shift < 0) c.begin++;
    while (c.begin < c.end && (c.end - 1) * stride + c.shift >= a->w) c.end--;
    return c;
}

#define INLINE static inline __attribute__((always_inline))

/* Calls body for all rows of products of the weight at (r, s) between channel c, counted over all
 * samples, and filter k, likewise. */
INLINE void for_rows(const ref_window *a, int64_t P, int64_t Q, row_fn body, const operands *o,
                     int64_t c, int64_t k, int64_t r, columns of_s, int64_t weight) {
    for (int64_t p = 0; p < P; p++) {
        const int64_t h = p * a->stride[0] + r * dilation(a, 0) - a->pad[0];
        if (h < 0 || h >= a->h) continue;
        body(o, (row){.x = (c * a->h + h) * a->w + of_s.begin * a->stride[1] + of_s.shift,
                      .step = a->stride[1],
                      .y = (k * P + p) * Q + of_s.begin,
                      .weight = weight,
                      .n = of_s.end - of_s.begin});
    }
}

/* Calls body for all products that a convolution sums. By rows, and inlined: the tests that compare
 * with it spend most of their time here. */
INLINE void for_each_row(const ref_window *a, row_fn body, const operands *o) {
    const int64_t P = ref_window_p(a), Q = ref_window_q(a);
    const int64_t groups = one_if_unset(a->groups), C = a->c / groups, K = a->k / groups;
    for (int64_t s = 0; s < a->s; s++) {
        const columns of_s = columns_of(a, s);
        for (int64_t n = 0; n < a->n; n++)
            for (int64_t k = 0; k < a->k; k++)
                for (int64_t c = 0; c < C; c++)
                    for (int64_t r = 0; r < a->r; r++)
                        for_rows(a, P, Q, body, o, n * a->c + k / K * C + c, n * a->k + k, r, of_s,
                                 ((k * C + c) * a->r + r) * a->s + s);
    }
}

INLINE void add_to_y(const operands *o, row r) {
    const double *restrict x = o->x + r.x, weight = o->weight[r.weight];
    double *restrict y = o->out + r.y;
    if (r.step == 1)
        for (int64_t i = 0; i < r.n; i++) y[i] += x[i] * weight;
    else
        for (int64_t i = 0; i < r.n; i++) y[i] += x[i * r.step] * weight;
}

INLINE void add_to_x(const operands *o, row r) {
    const double *restrict y = o->y + r.y, weight = o->weight[r.weight];
    double *restrict x = o->out + r.x;
    if (r.step == 1)
        for (int64_t i = 0; i < r.n; i++) x[i] += y[i] * weight;
    else
        for (int64_t i = 0; i < r.n; i++) x[i * r.step] += y[i] * weight;
}

INLINE void add_to_weight(const operands *o, row r) {
    double sum = 0.0;
    for (int64_t i = 0; i < r.n; i++) sum += o->y[r.y + i] * o->x[r.x + i * r.step];
    o->out[r.weight] += sum;
}

static void fill_zero(double *x, int64_t n) {
    memset(x, 0, (size_t)n * sizeof *x);
}

void ref_conv_forward(const ref_window *a, const double *x, const double *weight,
                      const double *bias, double *y) {
    const int64_t PQ = ref_window_p(a) * ref_window_q(a);
    for (int64_t i = 0; i < a->n * a->k * PQ; i++) y[i] = bias ? bias[i / PQ % a->k] : 0.0;
    const operands o = {.x = x, .weight = weight, .out = y};
    for_each_row(a, add_to_y, &o);
}

void ref_conv_backward_data(const ref_window *a, const double *dy, const double *weight,
                            double *dx) {
    fill_zero(dx, a->n * a->c * a->h * a->w);
    const operands o = {.y = dy, .weight = weight, .out = dx};
    for_each_row(a, add_to_x, &o);
}

void ref_conv_backward_weight(const ref_window *a, const double *x, const double *dy,
                              double *dweight) {
    fill_zero(dweight, a->k * a->c / one_if_unset(a->groups) * a->r * a->s);
    const operands o = {.x = x, .y = dy, .out = dweight};
    for_each_row(a, add_to_weight, &o);
}

void ref_conv_backward_bias(const ref_window *a, const double *dy, double *dbias) {
    const int64_t PQ = ref_window_p(a) * ref_window_q(a);
    fill_zero(dbias, a->k);
    for (int64_t i = 0; i < a->n * a->k * PQ; i++) dbias[i / PQ % a->k] += dy[i];
}

/* ---- pooling ---- */

/* Index into x of the winner of the window at (p, q) of a plane that starts at index plane. */
static int64_t find_winner(const ref_window *a, const double *x, int64_t plane, int64_t p,
                           int64_t q) {
    int64_t best = -1;
    for (int64_t r = 0; r < a->r; r++)
        for (int64_t s = 0; s < a->s; s++) {
            const int64_t h = p * a->stride[0] + r - a->pad[0];
            const int64_t w = q * a->stride[1] + s - a->pad[1];
            if (h < 0 || h >= a->h || w < 0 || w >= a->w) continue;
            const int64_t i = plane + h * a->w + w;
            if (best < 0 || x[i] > x[best]) best = i;
        }
    return best;
}

void ref_maxpool_forward(const ref_window *a, const double *x, double *y, int64_t *winner) {
    const int64_t P = ref_window_p(a), Q = ref_window_q(a);
    for (int64_t nc = 0; nc < a->n * a->c; nc++)
        for (int64_t p = 0; p < P; p++)
            for (int64_t q = 0; q < Q; q++) {
                const int64_t best = find_winner(a, x, nc * a->h * a->w, p, q);
                const int64_t out = (nc * P + p) * Q + q;
                y[out] = x[best];
                if (winner) winner[out] = best;
            }
}

void ref_maxpool_backward(const ref_window *a, const int64_t *winner, const double *dy,
                          double *dx) {
    fill_zero(dx, a->n * a->c * a->h * a->w);
    for (int64_t i = 0; i < a->n * a->c * ref_window_p(a) * ref_window_q(a); i++)
        dx[winner[i]] += dy[i];
}

/* Adds to the pixels of the window at (p, q), or reads them: *sum += x, or x += share. */
typedef struct {
    double *sum;
    const double *x;
    double *dx, share;
    int64_t inside; /* pixels of the window that are no padding */
} window_pass;

static void pass_window(const ref_window *a, int64_t plane, int64_t p, int64_t q,
                        window_pass *pass) {
    pass->inside = 0;
    for (int64_t r = 0; r < a->r; r++)
        for (int64_t s = 0; s < a->s; s++) {
            const int64_t h = p * a->stride[0] + r - a->pad[0];
            const int64_t w = q * a->stride[1] + s - a->pad[1];
            if (h < 0 || h >= a->h || w < 0 || w >= a->w) continue;
            pass->inside++;
            if (pass->x) *pass->sum += pass->x[plane + h * a->w + w];
            if (pass->dx) pass->dx[plane + h * a->w + w] += pass->share;
        }
}

static double pixels_of(const ref_window *a, int include_pad, const window_pass *pass) {
    return include_pad ? (double)(a->r * a->s) : (double)pass->inside;
}

void ref_avgpool_forward(const ref_window *a, int include_pad, const double *x, double *y) {
    const int64_t P = ref_window_p(a), Q = ref_window_q(a);
    for (int64_t i = 0; i < a->n * a->c * P * Q; i++) {
        y[i] = 0.0;
        window_pass pass = {.sum = &y[i], .x = x};
        pass_window(a, i / (P * Q) * a->h * a->w, i / Q % P, i % Q, &pass);
        y[i] /= pixels_of(a, include_pad, &pass);
    }
}

void ref_avgpool_backward(const ref_window *a, int include_pad, const double *dy, double *dx) {
    const int64_t P = ref_window_p(a), Q = ref_window_q(a);
    fill_zero(dx, a->n * a->c * a->h * a->w);
    for (int64_t i = 0; i < a->n * a->c * P * Q; i++) {
        const int64_t plane = i / (P * Q) * a->h * a->w;
        window_pass pass = {0};
        pass_window(a, plane, i / Q % P, i % Q, &pass);
        pass = (window_pass){.dx = dx, .share = dy[i] / pixels_of(a, include_pad, &pass)};
        pass_window(a, plane, i / Q % P, i % Q, &pass);
    }
}
