/* Winograd's transforms of activations: windows, patches, results. */
#include "base/clones.h"
#include "inner/loops/winograd_native.h"
#include "inner/loops/winograd_transforms.h"

#include <assert.h>
#include <string.h>

int64_t bpt_winograd_plane(bpt_value_type type, int64_t n) {
    return bpt_odd_lines(type, n);
}

int64_t bpt_winograd_matrix(const bpt_winograd_image *m) {
    return m->n * m->rows * m->columns * m->blocks * m->lanes;
}

/* ---- squares ---- */

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
    int64_t n;             /* values of a row; 0 or less: nothing is inside */
    int64_t image, square; /* values from one row to the next */
    int64_t first;         /* value of the block of channels where it begins */
} inside;

static inside inside_of(const square *s) {
    const bpt_winograd_image *m = s->image;
    inside in = {.i0 = first_inside(s->row),
                 .i1 = end_inside(s->row, s->side, m->h),
                 .j0 = first_inside(s->column),
                 .image = m->w * m->lanes,
                 .square = s->side * m->lanes};
    in.n = (end_inside(s->column, s->side, m->w) - in.j0) * m->lanes;
    in.first = (s->row + in.i0) * in.image + (s->column + in.j0) * m->lanes;
    return in;
}

INLINE void load(bpt_value_type type, const void *restrict x, int64_t n, float *restrict out) {
    if (type == BPT_F32)
        memcpy(out, x, (size_t)n * sizeof *out);
    else
        for (int64_t i = 0; i < n; i++) out[i] = bpt_from_bf16(((const bpt_bf16 *)x)[i]);
}

/* @param patch shape [side][side][lanes]; zeros outside */
INLINE void load_square(bpt_value_type type, const square *s, const void *block, float *patch) {
    const inside in = inside_of(s);
    memset(patch, 0, (size_t)(s->side * in.square) * sizeof *patch);
    for (int64_t i = in.i0; in.n > 0 && i < in.i1; i++)
        load(type, bpt_value_at(type, block, in.first + (i - in.i0) * in.image), in.n,
             patch + i * in.square + in.j0 * s->image->lanes);
}

INLINE void store_square(bpt_value_type type, const square *s, const float *patch, void *block) {
    const inside in = inside_of(s);
    for (int64_t i = in.i0; in.n > 0 && i < in.i1; i++)
        put(type, patch + i * in.square + in.j0 * s->image->lanes, in.n,
            bpt_place_at(type, block, in.first + (i - in.i0) * in.image));
}

/* Of a square that is inside the image. */
INLINE void load_whole(bpt_value_type type, int lanes, int side, int64_t w, const void *x,
                       float *patch) {
    for (int i = 0; i < side; i++)
        load(type, bpt_value_at(type, x, i * w * lanes), side * lanes, patch + i * side * lanes);
}

/* A square into vectors of its transform, plane values apart. Floats are transformed from where
 * they lie to where they go. */
INLINE void square_in(transform *one, bpt_value_type type, int lanes, int side, int window,
                      const square *s, bool whole, const void *block, void *restrict v,
                      int64_t plane) {
    const int64_t w = s->image->w;
    const void *x = whole ? bpt_value_at(type, block, (s->row * w + s->column) * lanes) : NULL;
    float edge[MAX_WINDOW * MAX_WINDOW * MAX_LANES], out[MAX_WINDOW * MAX_WINDOW * MAX_LANES];
    if (type == BPT_F32 && whole) {
        in_both(one, lanes, side, window, x, w * lanes, lanes, v, plane);
        return;
    }
    if (whole)
        load_whole(type, lanes, side, w, x, edge);
    else
        load_square(type, s, block, edge);
    if (type == BPT_F32) {
        in_both(one, lanes, side, window, edge, side * lanes, lanes, v, plane);
        return;
    }
    in_both(one, lanes, side, window, edge, side * lanes, lanes, out, lanes);
    for (int i = 0; i < window * window; i++)
        put(type, out + i * lanes, lanes, bpt_place_at(type, v, i * plane));
}

/* @param side of the squares: a window, or a patch */
INLINE void all_squares_in(transform *one, bpt_value_type type, int lanes, int side, int window,
                           const bpt_winograd_image *m, const void *restrict x, void *restrict v) {
    const int64_t pixels = m->h * m->w;
    const int64_t plane = bpt_winograd_plane(type, bpt_winograd_matrix(m)), patch = window - 2;
    const bool windows = side == window;
    int64_t at = 0;
    for (int64_t n = 0; n < m->there; n++)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->columns; j++) {
                const square s = {m, i * patch - (windows ? m->pad[0] : 0),
                                  j * patch - (windows ? m->pad[1] : 0), side};
                const bool whole = is_inside(&s);
                for (int64_t b = 0; b < m->blocks; b++, at += lanes)
                    square_in(one, type, lanes, side, window, &s, whole,
                              bpt_value_at(type, x, (n * m->blocks + b) * pixels * lanes),
                              bpt_place_at(type, v, at), plane);
            }
}

BPT_CLONES static void windows(const bpt_winograd_image *m, const void *restrict x,
                               void *restrict v) {
    if (m->type == BPT_BF16)
        all_squares_in(transform_small_window, BPT_BF16, 16, 4, 4, m, x, v);
    else if (m->lanes == 16)
        all_squares_in(transform_window, BPT_F32, 16, 6, 6, m, x, v);
    else
        all_squares_in(transform_window, BPT_F32, 8, 6, 6, m, x, v);
}

BPT_CLONES static void gradients(const bpt_winograd_image *m, const void *restrict dy,
                                 void *restrict z) {
    if (m->type == BPT_BF16)
        all_squares_in(transform_small_gradients, BPT_BF16, 16, 2, 4, m, dy, z);
    else if (m->lanes == 16)
        all_squares_in(transform_gradients, BPT_F32, 16, 4, 6, m, dy, z);
    else
        all_squares_in(transform_gradients, BPT_F32, 8, 4, 6, m, dy, z);
}

/* Adds the bias and rectifies; what is not a number stays so.
 * @param patch shape [n][lanes] */
INLINE void finish(int lanes, int n, const float *restrict bias, bool relu, float *restrict patch) {
    for (int i = 0; i < n; i++) FOR_LANES(l, lanes) {
            const float y = patch[i * lanes + l] + bias[l];
            patch[i * lanes + l] = relu && y < 0.0f ? 0.0f : y;
        }
}

/* @param block of channels of a sample */
INLINE void square_out(transform *one, bpt_value_type type, int lanes, int window, const square *s,
                       const float *restrict v, int64_t plane, const float *restrict bias,
                       bool relu, void *block) {
    const int side = window - 2;
    float patch[MAX_PATCH * MAX_PATCH * MAX_LANES];
    in_both(one, lanes, window, side, v, window * plane, plane, patch, lanes);
    finish(lanes, side * side, bias, relu, patch);
    store_square(type, s, patch, block);
}

INLINE void all_squares_out(transform *one, bpt_value_type type, int lanes, int window,
                            const bpt_winograd_image *m, const float *restrict v, const float *bias,
                            int64_t n_bias, bool relu, void *restrict y) {
    const int64_t pixels = m->h * m->w, side = window - 2;
    const int64_t plane = bpt_winograd_plane(BPT_F32, bpt_winograd_matrix(m));
    float last[MAX_LANES] = {0}; /* of a block with spare channels; written once, since what is read
                                  * as a vector right after it waits */
    for (int64_t l = 0; bias && l < n_bias % lanes; l++)
        last[l] = bias[n_bias - n_bias % lanes + l];
    for (int64_t n = 0; n < m->there; n++)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->columns; j++)
                for (int64_t b = 0; b < m->blocks; b++, v += lanes) {
                    const square s = {m, i * side, j * side, side};
                    const bool full = bias && (b + 1) * lanes <= n_bias;
                    square_out(one, type, lanes, window, &s, v, plane,
                               full ? bias + b * lanes : last, relu,
                               bpt_place_at(type, y, (n * m->blocks + b) * pixels * lanes));
                }
}

BPT_CLONES static void results(const bpt_winograd_image *m, const float *restrict v,
                               const float *bias, int64_t n_bias, bool relu, void *restrict y) {
    if (m->type == BPT_BF16)
        all_squares_out(transform_small_products, BPT_BF16, 16, 4, m, v, bias, n_bias, relu, y);
    else if (m->lanes == 16)
        all_squares_out(transform_products, BPT_F32, 16, 6, m, v, bias, n_bias, relu, y);
    else
        all_squares_out(transform_products, BPT_F32, 8, 6, m, v, bias, n_bias, relu, y);
}

const bpt__winograd_transforms bpt__winograd_plain = {windows, gradients, results};

static const bpt__winograd_transforms *transforms_of(const bpt_winograd_image *m) {
    const bpt__winograd_transforms *native = m->type == BPT_BF16 ? bpt__winograd_native() : NULL;
    return native ? native : &bpt__winograd_plain;
}

void bpt_winograd_windows(const bpt_winograd_image *m, const void *restrict x, void *restrict v) {
    transforms_of(m)->windows(m, x, v);
}

void bpt_winograd_gradients(const bpt_winograd_image *m, const void *restrict dy,
                            void *restrict z) {
    transforms_of(m)->gradients(m, dy, z);
}

void bpt_winograd_results(const bpt_winograd_image *m, const float *restrict v, const float *bias,
                          int64_t n_bias, bool relu, void *restrict y) {
    assert(!bias || ((m->blocks - 1) * m->lanes < n_bias && n_bias <= m->blocks * m->lanes));
    transforms_of(m)->results(m, v, bias, n_bias, relu, y);
}
