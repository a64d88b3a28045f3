#include "inner/layers/tap_loops.h"

#include "base/clones.h"
#include "base/integers.h"
#include "inner/loops/turn_square.h"
#include "inner/loops/vector_loops.h"

#include <assert.h>
#include <string.h>

enum { LINE = 64 };

/* ---- geometry ---- */

typedef struct {
    int64_t in, out, stride, pad, dilation;
} axis_sizes;

static axis_sizes sizes_of(const bpt_conv_problem *p, int axis) {
    return (axis_sizes){axis ? p->w : p->h, axis ? p->q : p->p, p->stride[axis], p->pad[axis],
                        p->dilation[axis]};
}

bpt_tap_span bpt_tap_span_of(const bpt_conv_problem *p, int axis, int64_t tap) {
    const axis_sizes a = sizes_of(p, axis);
    const int64_t shift = tap * a.dilation - a.pad; /* input of output 0 */
    const int64_t first = shift < 0 ? bpt_quotient_up(-shift, a.stride) : 0;
    const int64_t last = a.in - 1 - shift; /* of the input, from there */
    int64_t end = last < 0 ? 0 : last / a.stride + 1;
    if (end > a.out) end = a.out;
    return (bpt_tap_span){first, end > first ? end - first : 0};
}

static int64_t input_of(const axis_sizes *a, int64_t output, int64_t tap) {
    return output * a->stride + tap * a->dilation - a->pad;
}

/* Rows a stride apart are neighbours. */
int64_t bpt_tap_row(const bpt_conv_problem *p, int64_t row) {
    const int64_t stride = p->stride[0], rest = p->h % stride, group = row % stride;
    const int64_t longer = group < rest ? group : rest; /* groups before that have one more */
    return group * (p->h / stride) + longer + row / stride;
}

static int64_t whole_lines(const bpt_conv_problem *p, int64_t n) {
    return bpt_rounded_up(n, LINE / (int64_t)bpt_value_bytes(p->type));
}

int64_t bpt_tap_channel(const bpt_conv_problem *p, int64_t s) {
    return bpt_odd_lines(p->type, p->h * bpt_tap_span_of(p, 1, s).n * p->n);
}

int64_t bpt_tap_source(const bpt_conv_problem *p, int64_t s) {
    int64_t n = 0;
    for (int64_t i = 0; i < s; i++) n += p->c * bpt_tap_channel(p, i);
    return n;
}

int64_t bpt_tap_gradient(const bpt_conv_problem *p, int64_t filters, int64_t s) {
    int64_t n = 0;
    for (int64_t i = 0; i < s; i++)
        n += whole_lines(p, p->p * bpt_tap_span_of(p, 1, i).n * p->n * filters);
    return n;
}

/* ---- gathering ---- */

enum { SIDE = BPT_SQUARE };

#define TURN_SQUARE(type, x, sample, out, channel)                                                 \
    do {                                                                                           \
        bpt_square_##type rows[SIDE], turned[SIDE];                                                \
        for (int k = 0; k < SIDE; k++) memcpy(&rows[k], (x) + k * (sample), sizeof rows[k]);       \
        BPT_TURN_SQUARE(rows, turned);                                                             \
        for (int k = 0; k < SIDE; k++)                                                             \
            memcpy((out) + k * (channel), &turned[k], sizeof turned[k]);                           \
    } while (0)

typedef struct {
    int64_t n, lanes; /* samples, and channels of a block */
    int64_t sample;   /* values from one to the next in x */
    int64_t channel;  /* and in out */
} turn;

#define TURN(type, x, out, t)                                                                      \
    do {                                                                                           \
        const bpt_mem_##type *restrict from = (x);                                                 \
        bpt_mem_##type *restrict to = (out);                                                       \
        int64_t i = 0;                                                                             \
        for (; i + SIDE <= (t).n; i += SIDE)                                                       \
            for (int64_t l = 0; l < (t).lanes; l += SIDE)                                          \
                TURN_SQUARE(type, from + i * (t).sample + l, (t).sample, to + l * (t).channel + i, \
                            (t).channel);                                                          \
        for (; i < (t).n; i++)                                                                     \
            for (int64_t l = 0; l < (t).lanes; l++)                                                \
                to[l * (t).channel + i] = from[i * (t).sample + l];                                \
    } while (0)

/* Of one pixel: a block's lanes of all samples become rows of samples. */
BPT_CLONES static void turn_pixel(bpt_value_type type, turn t, const void *restrict x,
                                  void *restrict out) {
    BPT_FOR_TYPE(type, TURN, x, out, t);
}

/* A row of a block of channels, for one column of taps.
 * @param x the row in the first sample; @param out the row in the block's first channel */
static void gather_row(const bpt_conv_problem *p, bpt_tap_tile tile, int64_t s,
                       const void *restrict x, void *restrict out) {
    const axis_sizes columns = sizes_of(p, 1);
    const bpt_tap_span span = bpt_tap_span_of(p, 1, s);
    const turn t = {tile.n, tile.lanes, p->c * p->h * p->w, bpt_tap_channel(p, s)};
    for (int64_t j = 0; j < span.n; j++) {
        const int64_t column = input_of(&columns, span.first + j, s);
        const void *pixel = bpt_value_at(p->type, x, column * tile.lanes);
        void *turned = bpt_place_at(p->type, out, j * p->n + tile.first);
        turn_pixel(p->type, t, pixel, turned);
    }
}

void bpt_tap_gather_source(const bpt_conv_problem *p, bpt_tap_tile tile, const void *restrict x,
                           void *restrict source) {
    assert(tile.lanes % SIDE == 0);
    for (int64_t s = 0; s < p->s; s++) {
        const int64_t columns = bpt_tap_span_of(p, 1, s).n, channel = bpt_tap_channel(p, s);
        void *of_column = bpt_place_at(p->type, source, bpt_tap_source(p, s));
        for (int64_t c = 0; c < p->c; c += tile.lanes)
            for (int64_t i = 0; i < p->h; i++)
                gather_row(p, tile, s, bpt_value_at(p->type, x, (c * p->h + i * tile.lanes) * p->w),
                           bpt_place_at(p->type, of_column,
                                        c * channel + bpt_tap_row(p, i) * columns * p->n));
    }
}

/* A row of a block of filters, for one column of taps. */
static void copy_row(const bpt_conv_problem *p, bpt_tap_tile tile, bpt_tap_span columns,
                     int64_t filters, const char *restrict dy, char *restrict out) {
    const size_t bytes = bpt_value_bytes(p->type), run = (size_t)tile.lanes * bytes;
    const size_t sample = (size_t)(p->k * p->p * p->q) * bytes;
    for (int64_t j = 0; j < columns.n; j++) {
        const char *from = dy + (size_t)(columns.first + j) * run;
        char *to = out + (size_t)((j * p->n + tile.first) * filters) * bytes;
        for (int64_t i = 0; i < tile.n; i++)
            memcpy(to + (size_t)(i * filters) * bytes, from + (size_t)i * sample, run);
    }
}

void bpt_tap_gather_gradient(const bpt_conv_problem *p, bpt_tap_tile tile, bpt_tap_filters filters,
                             const void *restrict dy, void *restrict gradient) {
    for (int64_t s = 0; s < p->s; s++) {
        const bpt_tap_span columns = bpt_tap_span_of(p, 1, s);
        void *of_column = bpt_place_at(p->type, gradient, bpt_tap_gradient(p, filters.n, s));
        for (int64_t k = 0; k < filters.n; k += tile.lanes)
            for (int64_t i = 0; i < p->p; i++)
                copy_row(
                    p, tile, columns, filters.n,
                    bpt_value_at(p->type, dy, ((filters.first + k) * p->p + i * tile.lanes) * p->q),
                    bpt_place_at(p->type, of_column, i * columns.n * p->n * filters.n + k));
    }
}

/* ---- bias ---- */

void bpt_tap_sum_bias(const bpt_conv_problem *p, bpt_tap_tile tile, bpt_tap_filters filters,
                      const void *restrict dy, float *restrict bias) {
    const int64_t pixels = p->p * p->q;
    for (int64_t k = 0; k < filters.n; k += tile.lanes) {
        const void *block = bpt_value_at(p->type, dy, (filters.first + k) * pixels);
        double sums[BPT_MAX_SUM_LANES] = {0};
        bpt_sum_lanes(p->type, block, tile.n, p->k * pixels, pixels, tile.lanes, sums);
        for (int64_t l = 0; l < tile.lanes; l++) bias[k + l] = (float)sums[l];
    }
}

/* ---- gradients ---- */

void bpt_tap_store(const bpt_conv_problem *p, int64_t lanes, bpt_tap_filters filters, int64_t tap,
                   const float *restrict product, float *restrict dw) {
    const int64_t block = lanes * lanes, taps = p->r * p->s;
    const size_t run = (size_t)lanes * sizeof *dw;
    for (int64_t k = 0; k < filters.n; k += lanes)
        for (int64_t c = 0; c < p->c; c += lanes) {
            const int64_t blocks = (filters.first + k) / lanes * (p->c / lanes) + c / lanes;
            float *to = dw + (blocks * taps + tap) * block;
            if (!product) memset(to, 0, (size_t)block * sizeof *dw);
            for (int64_t l = 0; product && l < lanes; l++)
                memcpy(to + l * lanes, product + (c + l) * filters.n + k, run);
        }
}
