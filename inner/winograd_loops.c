#include "inner/winograd_loops.h"

#include "base/clones.h"

#include <string.h>

enum {
    PATCH = BPT_WINOGRAD_PATCH,
    WINDOW = BPT_WINOGRAD_WINDOW,
    VALUES = BPT_WINOGRAD_VALUES,
    FILTER = 3,
    MAX_LANES = BPT_WINOGRAD_MAX_LANES,
};

/* The loops below are made for a constant number of lanes each, in every clone. */
#define INLINE              static inline __attribute__((always_inline))
#define FOR_LANES(l, lanes) _Pragma("omp simd") for (int l = 0; l < (lanes); l++)

size_t bpt_winograd_floats(const bpt_winograd_image *m) {
    return (size_t)(VALUES * m->n * m->rows * m->columns * m->blocks * m->lanes);
}

/* ---- one dimension: value i of x lies at i * xs, of y at i * ys, each a vector of lanes ---- */

/* y = B' x */
INLINE void transform_window(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                             int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l];
        const float x4 = x[4 * xs + l], x5 = x[5 * xs + l];
        const float a = x4 - 4.0f * x2, b = x3 - 4.0f * x1, c = x4 - x2, d = 2.0f * (x3 - x1);
        y[l] = 4.0f * x0 - 5.0f * x2 + x4;
        y[ys + l] = a + b;
        y[2 * ys + l] = a - b;
        y[3 * ys + l] = c + d;
        y[4 * ys + l] = c - d;
        y[5 * ys + l] = 4.0f * x1 - 5.0f * x3 + x5;
    }
}

/* y = A' x */
INLINE void transform_products(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                               int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l], x4 = x[4 * xs + l];
        const float a = x1 + x2, b = x1 - x2, c = x3 + x4, d = x3 - x4;
        y[l] = x[l] + a + c;
        y[ys + l] = b + 2.0f * d;
        y[2 * ys + l] = a + 4.0f * c;
        y[3 * ys + l] = b + 8.0f * d + x[5 * xs + l];
    }
}

/* y = A x */
INLINE void transform_gradients(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                                int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l];
        const float a = x0 + x2, b = x1 + x3, c = x0 + 4.0f * x2, d = 2.0f * x1 + 8.0f * x3;
        y[l] = x0;
        y[ys + l] = a + b;
        y[2 * ys + l] = a - b;
        y[3 * ys + l] = c + d;
        y[4 * ys + l] = c - d;
        y[5 * ys + l] = x3;
    }
}

/* y = G x */
INLINE void transform_filter(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                             int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x0 = x[l], x1 = x[xs + l], x2 = x[2 * xs + l];
        const float a = (x0 + x2) * (-1.0f / 6), b = x1 * (1.0f / 6);
        const float c = x0 * (1.0f / 24) + x2 * (1.0f / 6), d = x1 * (1.0f / 12);
        y[l] = 0.25f * x0;
        y[ys + l] = a - b;
        y[2 * ys + l] = a + b;
        y[3 * ys + l] = c + d;
        y[4 * ys + l] = c - d;
        y[5 * ys + l] = x2;
    }
}

/* y = G' x */
INLINE void transform_filter_gradient(int lanes, const float *restrict x, int64_t xs,
                                      float *restrict y, int64_t ys) {
    FOR_LANES(l, lanes) {
        const float x1 = x[xs + l], x2 = x[2 * xs + l], x3 = x[3 * xs + l], x4 = x[4 * xs + l];
        const float a = (x1 + x2) * (1.0f / 6), b = x3 + x4;
        y[l] = 0.25f * x[l] - a + b * (1.0f / 24);
        y[ys + l] = (x2 - x1) * (1.0f / 6) + (x3 - x4) * (1.0f / 12);
        y[2 * ys + l] = b * (1.0f / 6) - a + x[5 * xs + l];
    }
}

/* ---- both dimensions ---- */

typedef void transform(int lanes, const float *restrict x, int64_t xs, float *restrict y,
                       int64_t ys);

/* From m x m vectors, (i, j) at i * row + j * column of x, to k x k, at (i * k + j) * ys of y. */
INLINE void in_both(transform *one, int lanes, int m, int k, const float *restrict x, int64_t row,
                    int64_t column, float *restrict y, int64_t ys) {
    float half[WINDOW * WINDOW * MAX_LANES];
    for (int j = 0; j < m; j++) one(lanes, x + j * column, row, half + j * lanes, m * lanes);
    for (int i = 0; i < k; i++) one(lanes, half + i * m * lanes, lanes, y + i * k * ys, ys);
}

/* ---- patches of images ---- */

/* A square of an image that may hang over its edges. */
typedef struct {
    const bpt_winograd_image *image;
    int64_t row, column, side; /* where it begins; may be outside */
} square;

static bool is_inside(const square *s) {
    return s->row >= 0 && s->column >= 0 && s->row + s->side <= s->image->h &&
           s->column + s->side <= s->image->w;
}

static int64_t first_inside(int64_t from) {
    return from < 0 ? -from : 0;
}

static int64_t end_inside(int64_t from, int64_t side, int64_t size) {
    const int64_t end = size - from;
    return end < 0 ? 0 : end < side ? end : side;
}

/* What of a square is inside: rows [i0, i1) of it, from column j0 on. */
typedef struct {
    int64_t i0, i1, j0;
    size_t bytes;          /* of a row; 0: nothing is inside */
    int64_t image, square; /* floats from one row to the next */
    int64_t first;         /* float of the block of channels where it begins */
} inside;

static inside inside_of(const square *s) {
    const bpt_winograd_image *m = s->image;
    const int64_t j1 = end_inside(s->column, s->side, m->w);
    inside in = {.i0 = first_inside(s->row),
                 .i1 = end_inside(s->row, s->side, m->h),
                 .j0 = first_inside(s->column),
                 .image = m->w * m->lanes,
                 .square = s->side * m->lanes};
    if (j1 > in.j0) in.bytes = (size_t)((j1 - in.j0) * m->lanes) * sizeof(float);
    in.first = (s->row + in.i0) * in.image + (s->column + in.j0) * m->lanes;
    return in;
}

/* @param patch shape [side][side][lanes]; zeros outside */
static void load_square(const square *s, const float *block, float *patch) {
    const inside in = inside_of(s);
    memset(patch, 0, (size_t)(s->side * in.square) * sizeof *patch);
    for (int64_t i = in.i0; in.bytes && i < in.i1; i++)
        memcpy(patch + i * in.square + in.j0 * s->image->lanes,
               block + in.first + (i - in.i0) * in.image, in.bytes);
}

static void store_square(const square *s, const float *patch, float *block) {
    const inside in = inside_of(s);
    for (int64_t i = in.i0; in.bytes && i < in.i1; i++)
        memcpy(block + in.first + (i - in.i0) * in.image,
               patch + i * in.square + in.j0 * s->image->lanes, in.bytes);
}

/* Transforms squares of all blocks of channels into [36][patches][channels]. */
INLINE void squares_in(transform *one, int lanes, int side, const square *s, const float *sample,
                       float *restrict v, int64_t plane) {
    const bpt_winograd_image *m = s->image;
    const bool whole = is_inside(s);
    for (int64_t b = 0; b < m->blocks; b++) {
        const float *block = sample + b * m->h * m->w * lanes;
        float edge[WINDOW * WINDOW * MAX_LANES];
        if (!whole) load_square(s, block, edge);
        const float *x = whole ? block + (s->row * m->w + s->column) * lanes : edge;
        in_both(one, lanes, side, WINDOW, x, (whole ? m->w : side) * lanes, lanes, v + b * lanes,
                plane);
    }
}

INLINE void all_squares_in(transform *one, int lanes, int side, const bpt_winograd_image *m,
                           const float *restrict x, float *restrict v) {
    const int64_t channels = m->blocks * lanes, sample = channels * m->h * m->w;
    const int64_t plane = m->n * m->rows * m->columns * channels;
    const bool windows = side == WINDOW;
    for (int64_t n = 0; n < m->n; n++)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->columns; j++, v += channels) {
                const square s = {m, i * PATCH - (windows ? m->pad[0] : 0),
                                  j * PATCH - (windows ? m->pad[1] : 0), side};
                squares_in(one, lanes, side, &s, x + n * sample, v, plane);
            }
}

BPT_CLONES void bpt_winograd_windows(const bpt_winograd_image *m, const float *restrict x,
                                     float *restrict v) {
    if (m->lanes == 16)
        all_squares_in(transform_window, 16, WINDOW, m, x, v);
    else
        all_squares_in(transform_window, 8, WINDOW, m, x, v);
}

BPT_CLONES void bpt_winograd_gradients(const bpt_winograd_image *m, const float *restrict dy,
                                       float *restrict z) {
    if (m->lanes == 16)
        all_squares_in(transform_gradients, 16, PATCH, m, dy, z);
    else
        all_squares_in(transform_gradients, 8, PATCH, m, dy, z);
}

/* Adds the bias and rectifies; what is not a number stays so.
 * @param patch shape [PATCH][PATCH][lanes] */
INLINE void finish(int lanes, const float *restrict bias, bool relu, float *restrict patch) {
    for (int i = 0; i < PATCH * PATCH; i++) FOR_LANES(l, lanes) {
            const float y = patch[i * lanes + l] + bias[l];
            patch[i * lanes + l] = relu && y < 0.0f ? 0.0f : y;
        }
}

/* @param block of channels of a sample */
INLINE void square_out(int lanes, const square *s, const float *restrict v, int64_t plane,
                       const float *restrict bias, bool relu, float *block) {
    float patch[PATCH * PATCH * MAX_LANES];
    in_both(transform_products, lanes, WINDOW, PATCH, v, WINDOW * plane, plane, patch, lanes);
    finish(lanes, bias, relu, patch);
    store_square(s, patch, block);
}

INLINE void all_squares_out(int lanes, const bpt_winograd_image *m, const float *restrict v,
                            const float *bias, int64_t n_bias, bool relu, float *restrict y) {
    const int64_t channels = m->blocks * lanes, pixels = m->h * m->w;
    const int64_t plane = m->n * m->rows * m->columns * channels;
    for (int64_t n = 0; n < m->n; n++, y += channels * pixels)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->columns; j++)
                for (int64_t b = 0; b < m->blocks; b++, v += lanes) {
                    const square s = {m, i * PATCH, j * PATCH, PATCH};
                    float of_block[MAX_LANES] = {0};
                    for (int64_t l = 0; bias && l < lanes && b * lanes + l < n_bias; l++)
                        of_block[l] = bias[b * lanes + l];
                    square_out(lanes, &s, v, plane, of_block, relu, y + b * pixels * lanes);
                }
}

BPT_CLONES void bpt_winograd_results(const bpt_winograd_image *m, const float *restrict v,
                                     const float *bias, int64_t n_bias, bool relu,
                                     float *restrict y) {
    if (m->lanes == 16)
        all_squares_out(16, m, v, bias, n_bias, relu, y);
    else
        all_squares_out(8, m, v, bias, n_bias, relu, y);
}

/* ---- filters ---- */

/* Filters of one channel of the first dimension of u and eight of the second, as
 * [3][3][FILTER_LANES]. */
typedef struct {
    int64_t first, second;               /* channels */
    int64_t first_stride, second_stride; /* in floats of w */
    int64_t rows, columns;               /* with spare channels */
    bool turned;
} filter_order;

enum { FILTER_LANES = 8, FILTER_VALUES = FILTER * FILTER };

static filter_order order_of(const bpt_winograd_filters *f, bool turned) {
    if (turned)
        return (filter_order){
            f->outputs,    f->inputs, f->output_stride, f->input_stride, f->all_outputs,
            f->all_inputs, true};
    return (filter_order){
        f->inputs,      f->outputs, f->input_stride, f->output_stride, f->all_inputs,
        f->all_outputs, false};
}

INLINE void collect(const filter_order *o, const float *restrict w, int64_t a, int64_t b,
                    float *restrict out) {
    for (int l = 0; l < FILTER_LANES; l++) {
        const bool spare = a >= o->first || b + l >= o->second;
        const float *from = spare ? NULL : w + a * o->first_stride + (b + l) * o->second_stride;
        for (int i = 0; i < FILTER_VALUES; i++)
            out[i * FILTER_LANES + l] = spare ? 0.0f : from[o->turned ? FILTER_VALUES - 1 - i : i];
    }
}

BPT_CLONES void bpt_winograd_transform_filters(const bpt_winograd_filters *f, bool turned,
                                               const float *restrict w, float *restrict u) {
    enum { L = FILTER_LANES };
    const filter_order o = order_of(f, turned);
    const int64_t plane = o.rows * o.columns;
    for (int64_t a = 0; a < o.rows; a++)
        for (int64_t b = 0; b < o.columns; b += L, u += L) {
            float x[FILTER_VALUES * L];
            collect(&o, w, a, b, x);
            in_both(transform_filter, L, FILTER, WINDOW, x, FILTER * L, L, u, plane);
        }
}

INLINE void scatter(const filter_order *o, const float *restrict x, int64_t a, int64_t b,
                    float *restrict dw) {
    for (int64_t l = 0; l < FILTER_LANES && b + l < o->second; l++) {
        float *to = dw + a * o->first_stride + (b + l) * o->second_stride;
        for (int i = 0; i < FILTER_VALUES; i++) to[i] = x[i * FILTER_LANES + l];
    }
}

BPT_CLONES void bpt_winograd_filter_gradients(const bpt_winograd_filters *f,
                                              const float *restrict du, float *restrict dw) {
    enum { L = FILTER_LANES };
    const filter_order o = order_of(f, false);
    const int64_t plane = o.rows * o.columns;
    for (int64_t a = 0; a < o.first; a++)
        for (int64_t b = 0; b < o.columns; b += L, du += L) {
            float x[FILTER_VALUES * L];
            in_both(transform_filter_gradient, L, WINDOW, FILTER, du, WINDOW * plane, plane, x, L);
            scatter(&o, x, a, b, dw);
        }
}
