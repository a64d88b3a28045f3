/* resized-crop=FROM:TO:RATIO: a part of the image, enlarged to the image's own size, as
 * torchvision's RandomResizedCrop. The part has FROM to TO of the area, uniform, and height / width
 * between RATIO and 1 / RATIO, uniform in the logarithm. A part that does not fit is drawn anew;
 * after ten of them it is the largest of such a shape, in the middle.
 *
 * Bilinear between the centres of pixels, those on the border continued outwards; weights are in
 * 1 / 2048. */
#include "base/clones.h"
#include "storage/augmentations/augmentation.h"
#include "storage/augmentations/draws.h"

enum { FROM, TO, RATIO, UNIT = BPT_AUGMENT_UNIT, N_TRIES = 10 };
enum { WEIGHT_BITS = 11, ONE = 1 << WEIGHT_BITS, BLOCK = 64 };

/* ---- which part ---- */

/* @return height / width. Of x uniform in 1 to 1 / RATIO one in x is kept, which makes the rest
 * uniform in its logarithm; half of them are turned over. */
static uint32_t draw_ratio(bpt_random *random, uint32_t least) {
    uint32_t x;
    do {
        x = bpt__draw_between(random, UNIT, UNIT * UNIT / least);
    } while (bpt_random_below(random, x) >= UNIT);
    return bpt_random_below(random, 2) ? x : UNIT * UNIT / x;
}

static bpt__window middle(uint32_t least, uint32_t H, uint32_t W) {
    bpt__window p = {.h = H, .w = W};
    if ((uint64_t)W * least > (uint64_t)H * UNIT)
        p.w = (uint32_t)(((uint64_t)H * UNIT + least / 2) / least);
    if ((uint64_t)H * least > (uint64_t)W * UNIT)
        p.h = (uint32_t)(((uint64_t)W * UNIT + least / 2) / least);
    p.y = (H - p.h) / 2;
    p.x = (W - p.w) / 2;
    return p;
}

static bpt__window draw_part(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W) {
    for (int i = 0; i < N_TRIES; i++) {
        const uint32_t area = bpt__draw_between(random, values[FROM], values[TO]);
        bpt__window p;
        bpt__sides((uint64_t)H * W, area, draw_ratio(random, values[RATIO]), &p.h, &p.w);
        if (p.h == 0 || p.h > H || p.w == 0 || p.w > W) continue;
        p.y = bpt_random_below(random, H - p.h + 1);
        p.x = bpt_random_below(random, W - p.w + 1);
        return p;
    }
    return middle(values[RATIO], H, W);
}

/* ---- enlarging ---- */

/* Goes along one side: where in the part the centre of each pixel of the image lies. Of n pixels
 * that become m it is ((2 i + 1) n - m) / 2 m, kept as a whole number and a rest. */
typedef struct position {
    uint32_t index;
    uint32_t last;    /* index of the part's last pixel */
    int64_t rest;     /* in 1 / 2 m; below 0 before the first centre */
    uint64_t weights; /* rest * weights >> 32 is in 1 / ONE */
    uint32_t n, m;
} position;

static position position_begin(uint32_t n, uint32_t m) {
    return (position){.last = n - 1,
                      .rest = (int64_t)n - m,
                      .weights = ((uint64_t)ONE << 32) / (2 * (uint64_t)m),
                      .n = n,
                      .m = m};
}

static void position_step(position *p) {
    p->rest += 2 * (int64_t)p->n;
    if (p->rest < 2 * (int64_t)p->m) return;
    p->rest -= 2 * (int64_t)p->m;
    p->index++;
}

/* @return weight of the pixel behind the index, 0 to ONE; 0 where there is none */
static uint32_t position_weight(const position *p) {
    if (p->rest <= 0 || p->index == p->last) return 0;
    return (uint32_t)(((uint64_t)p->rest * p->weights + ((uint64_t)1 << 31)) >> 32);
}

/* Some columns of the image: each has two pixels of a row of the part. */
typedef struct columns {
    uint32_t n;
    uint32_t left[BLOCK], right[BLOCK];
    uint32_t weight[BLOCK]; /* of the right one */
} columns;

static void find_columns(position *x, uint32_t n, columns *cols) {
    cols->n = n;
    for (uint32_t i = 0; i < n; i++, position_step(x)) {
        cols->weight[i] = position_weight(x);
        cols->left[i] = x->index;
        cols->right[i] = x->index + (cols->weight[i] > 0);
    }
}

/* @param[out] line shape [BLOCK], in 1 / ONE */
static void stretch_row(const columns *cols, const uint8_t *row, uint32_t *line) {
    for (uint32_t i = 0; i < cols->n; i++)
        line[i] =
            row[cols->left[i]] * (ONE - cols->weight[i]) + row[cols->right[i]] * cols->weight[i];
}

BPT_CLONES static void mix_lines(const uint32_t *restrict upper, const uint32_t *restrict lower,
                                 uint32_t weight, uint32_t n, uint8_t *restrict out) {
    const uint32_t half = 1u << (2 * WEIGHT_BITS - 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] =
            (uint8_t)((upper[i] * (ONE - weight) + lower[i] * weight + half) >> 2 * WEIGHT_BITS);
}

/* Some columns of one channel. Each row of the part is stretched once, since the image has as many
 * rows or more.
 * @param part its first pixel, W to a row
 * @param out  the first of the columns, W to a row */
static void enlarge(const columns *cols, const uint8_t *part, uint32_t h, uint32_t H, uint32_t W,
                    uint8_t *out) {
    uint32_t lines[2][BLOCK];
    uint32_t n_rows = 0; /* stretched; row i is in lines[i % 2] */
    position y = position_begin(h, H);
    for (uint32_t i = 0; i < H; i++, position_step(&y), out += W) {
        const uint32_t weight = position_weight(&y);
        const uint32_t upper = y.index, lower = y.index + (weight > 0);
        for (; n_rows <= lower; n_rows++)
            stretch_row(cols, part + (size_t)n_rows * W, lines[n_rows % 2]);
        mix_lines(lines[upper % 2], lines[lower % 2], weight, cols->n, out);
    }
}

static bool apply(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    const bpt__window part = draw_part(values, random, H, W);
    const size_t plane = (size_t)H * W;
    if (part.h == H && part.w == W) return false;
    position x = position_begin(part.w, W);
    in += (size_t)part.y * W + part.x;
    for (uint32_t from = 0; from < W; from += BLOCK) {
        columns cols;
        find_columns(&x, W - from < BLOCK ? W - from : BLOCK, &cols);
        for (uint32_t c = 0; c < C; c++)
            enlarge(&cols, in + c * plane, part.h, H, W, out + c * plane + from);
    }
    return true;
}

static void part(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W,
                 bpt_image_frame *frame) {
    const bpt__window p = draw_part(values, random, H, W);
    frame->y = p.y;
    frame->x = p.x;
    frame->h = p.h;
    frame->w = p.w;
}

const bpt_augmentation bpt_augmentation_resized_crop = {
    .name = "resized-crop",
    .example = "resized-crop=0.08:1:0.75",
    .n_parameters = 3,
    .parameters = {{.name = "FROM", .min = UNIT / 100, .max = UNIT, .otherwise = UNIT / 100 * 8},
                   {.name = "TO", .min = UNIT / 100, .max = UNIT, .otherwise = UNIT, .rises = true},
                   {.name = "RATIO", .min = UNIT / 10, .max = UNIT, .otherwise = UNIT / 4 * 3}},
    .apply = apply,
    .part = part};
