/* Rows first, then columns, in whole numbers. The weights of an area filter are in units of 1 / out
 * of a pixel, their sum is in; those of linear interpolation in units of 1 / (2 out), their sum is
 * 2 out. With V and H the sums of a pixel's weights along a column and along a row, a pixel's sum
 * is at most 255 V H, and the pixel is that divided by V H, rounded: exact as long as V H <= 2^24,
 * and with it all numbers have 32 bits. For larger ones k bits of the sums of rows are rounded
 * away, so that V H / 2^k <= 2^24: the error is H weights times half a unit, 2^(k-1) / V of a grey
 * level; H is at most 2^15 and V H above 2^(23+k), so that is at most 2^-9. */
#include "storage/images/resize.h"

#include "base/clones.h"
#include "base/memory.h"
#include "storage/images/packed.h"
#include "storage/images/scale.h"

#include <stdbool.h>
#include <string.h>

enum { SUM_BITS = 24 };

/* What a pixel of the result takes along one side: n pixels from first on. */
typedef struct taps {
    uint32_t first, n;
    uint32_t w_first, w_middle, w_last; /* w_last counts if n > 1 */
} taps;

/* What all pixels of a row take: as many each, so that no branch has to be guessed. */
typedef struct columns {
    uint32_t n;           /* of each pixel of the result */
    uint32_t from, width; /* the pixels of the input that are taken at all */
    uint32_t *first;      /* shape [W]: from there, counted from `from` on */
    uint32_t *weights;    /* shape [W,n]; 0 where a pixel needs fewer */
    size_t first_capacity, weights_capacity;
} columns;

struct bpt_image_resizer {
    columns columns;
    uint32_t *sums, *row; /* a row of the input, a row of the result, shape [length, lanes] */
    uint8_t *pixels;      /* what becomes of row */
    size_t sums_capacity, row_capacity, pixels_capacity;
};

bpt_status bpt_image_resizer_open(bpt_image_resizer **out) {
    return BPT_NEW("resizer", 1, out);
}

void bpt_image_resizer_close(bpt_image_resizer *r) {
    if (!r) return;
    bpt_free(r->columns.first);
    bpt_free(r->columns.weights);
    bpt_free(r->sums);
    bpt_free(r->row);
    bpt_free(r->pixels);
    bpt_free(r);
}

static taps area_taps(uint32_t i, uint32_t in, uint32_t out) {
    const uint32_t from = i * in, to = from + in; /* sides are at most 2^14 */
    const uint32_t first = from / out, last = (to - 1) / out;
    const uint32_t end = (first + 1) * out;
    return (taps){.first = first,
                  .n = last - first + 1,
                  .w_first = (to < end ? to : end) - from,
                  .w_middle = out,
                  .w_last = to - last * out};
}

static taps linear_taps(uint32_t i, uint32_t in, uint32_t out) {
    const uint32_t centre = (2 * i + 1) * in, whole = 2 * out; /* of pixel 0: out */
    if (centre <= out) return (taps){.first = 0, .n = 1, .w_first = whole};
    const uint32_t first = (centre - out) / whole, beyond = (centre - out) % whole;
    if (beyond == 0 || first + 1 >= in) return (taps){.first = first, .n = 1, .w_first = whole};
    return (taps){.first = first, .n = 2, .w_first = whole - beyond, .w_last = beyond};
}

static taps taps_of(uint32_t i, uint32_t in, uint32_t out) {
    return out > in ? linear_taps(i, in, out) : area_taps(i, in, out);
}

static uint32_t weight(const taps *t, uint32_t k) {
    return k == 0 ? t->w_first : k + 1 < t->n ? t->w_middle : t->w_last;
}

static uint32_t sum_of_weights(uint32_t in, uint32_t out) {
    return out > in ? 2 * out : in;
}

void bpt__scale_span(uint32_t in, uint32_t out, uint32_t crop, uint32_t n, uint32_t *first,
                     uint32_t *n_taken) {
    const taps start = taps_of(crop, in, out), last = taps_of(crop + n - 1, in, out);
    *first = start.first;
    *n_taken = last.first + last.n - start.first;
}

/* For W pixels of the result from @p crop on. */
static bpt_status fill_columns(columns *c, uint32_t crop, uint32_t W, uint32_t in, uint32_t out) {
    bpt__scale_span(in, out, crop, W, &c->from, &c->width);
    c->n = 1;
    for (uint32_t x = 0; x < W; x++) {
        const taps t = taps_of(crop + x, in, out);
        if (t.n > c->n) c->n = t.n;
    }
    const size_t n_weights = (size_t)W * c->n;
    BPT_TRY(BPT_GROW("columns of a resizer", W, &c->first, &c->first_capacity));
    BPT_TRY(BPT_GROW("weights of a resizer", n_weights, &c->weights, &c->weights_capacity));
    memset(c->weights, 0, n_weights * sizeof *c->weights);
    for (uint32_t x = 0; x < W; x++) {
        const taps t = taps_of(crop + x, in, out);
        const uint32_t first = t.first - c->from;
        c->first[x] = first + c->n > c->width ? c->width - c->n : first; /* none beyond the end */
        uint32_t *weights = c->weights + (size_t)x * c->n + (first - c->first[x]);
        for (uint32_t k = 0; k < t.n; k++) weights[k] = weight(&t, k);
    }
    return BPT_OK;
}

/* How a sum becomes a pixel: (sum + half) / divisor, by a product. */
typedef struct division {
    uint32_t half, factor, shift; /* ((sum + half) * factor >> 32) >> shift */
    uint32_t bits;                /* rounded away from the sums of rows; mostly 0 */
} division;

static division division_by(uint32_t V, uint32_t H) {
    const uint64_t whole = (uint64_t)V * H; /* 2 to 2^30 */
    division d = {0};
    while (whole > UINT64_C(1) << (SUM_BITS + d.bits)) d.bits++;
    while (whole > UINT64_C(2) << (d.bits + d.shift)) d.shift++;
    /* whole / 2^bits is in (2^shift, 2^(shift + 1)], the factor in [2^31, 2^32) */
    d.factor = (uint32_t)(((UINT64_C(1) << (32 + d.bits + d.shift)) + whole - 1) / whole);
    d.half = (uint32_t)(whole >> d.bits >> 1);
    return d;
}

/* ---- rows ---- */

BPT_CLONES static void set_1(uint32_t *restrict sums, const uint8_t *restrict a, uint32_t wa,
                             size_t n) {
    for (size_t i = 0; i < n; i++) sums[i] = wa * a[i];
}

BPT_CLONES static void set_2(uint32_t *restrict sums, const uint8_t *restrict a, uint32_t wa,
                             const uint8_t *restrict b, uint32_t wb, size_t n) {
    for (size_t i = 0; i < n; i++) sums[i] = wa * a[i] + wb * b[i];
}

BPT_CLONES static void add_1(uint32_t *restrict sums, const uint8_t *restrict a, uint32_t wa,
                             size_t n) {
    for (size_t i = 0; i < n; i++) sums[i] += wa * a[i];
}

BPT_CLONES static void round_away(uint32_t *sums, uint32_t bits, size_t n) {
    const uint32_t half = UINT32_C(1) << bits >> 1;
    for (size_t i = 0; i < n; i++) sums[i] = (sums[i] + half) >> bits;
}

static void sum_rows(uint32_t *sums, const uint8_t *in, size_t pitch, const taps *t, size_t n) {
    const uint8_t *row = in + t->first * pitch;
    if (t->n == 1)
        set_1(sums, row, t->w_first, n);
    else
        set_2(sums, row, t->w_first, row + pitch, weight(t, 1), n);
    for (uint32_t k = 2; k < t->n; k++) add_1(sums, row + k * pitch, weight(t, k), n);
}

/* ---- columns ---- */

typedef uint32_t one;
typedef uint32_t four __attribute__((vector_size(16)));

/* The loop for n weights a pixel; n is a constant in most of its copies. */
#define SUM_COLUMNS(type)                                                                          \
    static inline __attribute__((always_inline)) void loop_##type(                                 \
        const type *restrict sums, const uint32_t *restrict first,                                 \
        const uint32_t *restrict weights, uint32_t n, uint32_t W, type *restrict row) {            \
        for (uint32_t x = 0; x < W; x++, weights += n) {                                           \
            const type *in = sums + first[x];                                                      \
            type sum = in[0] * weights[0];                                                         \
            for (uint32_t k = 1; k < n; k++) sum += in[k] * weights[k];                            \
            row[x] = sum;                                                                          \
        }                                                                                          \
    }                                                                                              \
    BPT_CLONES static void sum_columns_##type(const type *sums, const uint32_t *first,             \
                                              const uint32_t *weights, uint32_t n, uint32_t W,     \
                                              type *row) {                                         \
        switch (n) {                                                                               \
        case 1:                                                                                    \
            loop_##type(sums, first, weights, 1, W, row);                                          \
            break;                                                                                 \
        case 2:                                                                                    \
            loop_##type(sums, first, weights, 2, W, row);                                          \
            break;                                                                                 \
        case 3:                                                                                    \
            loop_##type(sums, first, weights, 3, W, row);                                          \
            break;                                                                                 \
        case 4:                                                                                    \
            loop_##type(sums, first, weights, 4, W, row);                                          \
            break;                                                                                 \
        default:                                                                                   \
            loop_##type(sums, first, weights, n, W, row);                                          \
        }                                                                                          \
    }
SUM_COLUMNS(one)
SUM_COLUMNS(four)

BPT_CLONES static void divide(const uint32_t *restrict row, division d, size_t n,
                              uint8_t *restrict out) {
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)((uint32_t)((uint64_t)(row[i] + d.half) * d.factor >> 32) >> d.shift);
}

/* ---- images ---- */

bpt_status bpt__scale_packed(bpt_image_resizer *r, const bpt_image_frame *f, const uint8_t *in,
                             uint32_t lanes, uint32_t W, uint8_t *out) {
    columns *c = &r->columns;
    BPT_TRY(fill_columns(c, f->crop_x, f->W, f->w, f->scaled_w));
    const size_t n_sums = (size_t)c->width * lanes, n_row = (size_t)f->W * lanes;
    BPT_TRY(BPT_GROW("sums of a resizer", n_sums, &r->sums, &r->sums_capacity));
    BPT_TRY(BPT_GROW("row of a resizer", n_row, &r->row, &r->row_capacity));
    BPT_TRY(BPT_GROW("pixels of a resizer", n_row, &r->pixels, &r->pixels_capacity));
    const division d =
        division_by(sum_of_weights(f->h, f->scaled_h), sum_of_weights(f->w, f->scaled_w));
    const size_t pitch = (size_t)W * lanes, plane = (size_t)f->H * f->W;
    in += f->y * pitch + (f->x + (size_t)c->from) * lanes;
    for (uint32_t y = 0; y < f->H; y++) {
        const taps t = taps_of(f->crop_y + y, f->h, f->scaled_h);
        uint8_t *row = out + (size_t)y * f->W;
        sum_rows(r->sums, in, pitch, &t, n_sums);
        if (d.bits) round_away(r->sums, d.bits, n_sums);
        if (lanes == 1)
            sum_columns_one(r->sums, c->first, c->weights, c->n, f->W, r->row);
        else /* bpt_alloc() aligns */
            sum_columns_four((const four *)(void *)r->sums, c->first, c->weights, c->n, f->W,
                             (four *)(void *)r->row);
        divide(r->row, d, n_row, lanes == 1 ? row : r->pixels);
        if (lanes == 4) bpt__split(r->pixels, f->W, row, row + plane, row + 2 * plane);
    }
    return BPT_OK;
}

static void cut(const bpt_image_frame *f, const uint8_t *in, uint32_t W, uint8_t *out) {
    in += (size_t)(f->y + f->crop_y) * W + f->x + f->crop_x;
    for (uint32_t y = 0; y < f->H; y++) memcpy(out + (size_t)y * f->W, in + (size_t)y * W, f->W);
}

bpt_status bpt_image_resize(bpt_image_resizer *r, const bpt_image_frame *f, const uint8_t *in,
                            uint32_t C, uint32_t H, uint32_t W, uint8_t *out) {
    BPT_TRY(bpt_image_frame_check(f, H, W));
    const bool same_size = f->h == f->scaled_h && f->w == f->scaled_w;
    for (uint32_t c = 0; c < C; c++) {
        const uint8_t *plane = in + (size_t)c * H * W;
        uint8_t *result = out + (size_t)c * f->H * f->W;
        if (same_size)
            cut(f, plane, W, result);
        else
            BPT_TRY(bpt__scale_packed(r, f, plane, 1, W, result));
    }
    return BPT_OK;
}
