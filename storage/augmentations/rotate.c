/* rotate=DEGREES: the image turned around its centre by an angle that is uniform in DEGREES either
 * way; black where nothing is. Bilinear between the centres of pixels, beside the border with
 * black; weights are in 1 / 2048. */
#include "storage/augmentations/augmentation.h"

enum { FRACTION = 30, WEIGHT_BITS = 11, ONE = 1 << WEIGHT_BITS };
enum { QUARTER = 90 * BPT_AUGMENT_UNIT };

/* ---- sine and cosine, in 1 / 2^30 ---- */

static const int64_t whole = (int64_t)1 << FRACTION;

/* @return a b, rounded; of numbers up to 1 */
static int64_t multiply(int64_t a, int64_t b) {
    return (a * b + whole / 2) / whole;
}

/* Series to the ninth and tenth power: what is left out is below 2^-28 at 45 degrees.
 * @param angle 0 to 45 degrees, in 1 / BPT_AUGMENT_UNIT */
static void sine_of_half(int64_t angle, int64_t *sine, int64_t *cosine) {
    const int64_t step = 2012227627244; /* pi / 180 / BPT_AUGMENT_UNIT, in 1 / 2^60 */
    const int64_t x = angle * step / whole, x2 = multiply(x, x);
    *sine = whole - x2 / 72;
    *sine = whole - multiply(x2, *sine) / 42;
    *sine = whole - multiply(x2, *sine) / 20;
    *sine = whole - multiply(x2, *sine) / 6;
    *sine = multiply(x, *sine);
    *cosine = whole - x2 / 90;
    *cosine = whole - multiply(x2, *cosine) / 56;
    *cosine = whole - multiply(x2, *cosine) / 30;
    *cosine = whole - multiply(x2, *cosine) / 12;
    *cosine = whole - multiply(x2, *cosine) / 2;
}

/* @param angle 0 to 180 degrees */
static void sine_of(int64_t angle, int64_t *sine, int64_t *cosine) {
    const int64_t beyond = angle > QUARTER ? angle - QUARTER : angle;
    int64_t s, c;
    if (beyond > QUARTER / 2)
        sine_of_half(QUARTER - beyond, &c, &s);
    else
        sine_of_half(beyond, &s, &c);
    *sine = angle > QUARTER ? c : s;
    *cosine = angle > QUARTER ? -s : c;
}

/* ---- pixels ---- */

/* Where a pixel comes from along a side: between pixel index - 1 and pixel index. */
typedef struct place {
    uint32_t index;  /* 0 to the side's length */
    uint32_t weight; /* of pixel index, in 1 / ONE */
} place;

/* @param at   in pixels, in 1 / 2^31; 0 is the centre of the first
 * @param side number of pixels
 * @return whether any part of it is in the image */
static inline bool find_place(int64_t at, uint32_t side, place *p) {
    const int shift = FRACTION + 1 - WEIGHT_BITS;
    const int64_t half = (int64_t)1 << (shift - 1); /* of a weight's step */
    const int64_t from = at + 2 * whole + half;     /* a pixel before the first */
    if (from < 0) return false;
    const uint64_t steps = (uint64_t)from >> shift;
    p->index = (uint32_t)(steps / ONE);
    p->weight = (uint32_t)(steps % ONE);
    return steps / ONE <= side;
}

static inline uint32_t mix(uint32_t first, uint32_t second, uint32_t weight) {
    return first * (ONE - weight) + second * weight;
}

static inline uint8_t rounded(uint32_t level) {
    return (uint8_t)((level + (1u << (2 * WEIGHT_BITS - 1))) >> 2 * WEIGHT_BITS);
}

/* @return a pixel of a plane [H,W], black outside of it; counted from 1 */
static uint32_t pixel(const uint8_t *plane, uint32_t H, uint32_t W, uint32_t y, uint32_t x) {
    return y == 0 || y > H || x == 0 || x > W ? 0 : plane[(size_t)(y - 1) * W + x - 1];
}

static uint8_t beside_border(const uint8_t *plane, uint32_t H, uint32_t W, place y, place x) {
    const uint32_t upper = mix(pixel(plane, H, W, y.index, x.index),
                               pixel(plane, H, W, y.index, x.index + 1), x.weight);
    const uint32_t lower = mix(pixel(plane, H, W, y.index + 1, x.index),
                               pixel(plane, H, W, y.index + 1, x.index + 1), x.weight);
    return rounded(mix(upper, lower, y.weight));
}

static inline uint8_t inside(const uint8_t *plane, uint32_t W, place y, place x) {
    const uint8_t *upper = plane + (size_t)(y.index - 1) * W + x.index - 1, *lower = upper + W;
    return rounded(
        mix(mix(upper[0], upper[1], x.weight), mix(lower[0], lower[1], x.weight), y.weight));
}

typedef struct turn {
    int64_t sine, cosine;
    uint32_t C, H, W;
    const uint8_t *in;
} turn;

/* Pixel (y, x) of all channels. Twice the way from the centre is a whole number, so that places
 * come in 1 / 2^31. */
static inline void turn_pixel(const turn *t, uint32_t y, uint32_t x, uint8_t *out) {
    const int64_t up = 2 * (int64_t)y - (t->H - 1), right = 2 * (int64_t)x - (t->W - 1);
    const size_t plane = (size_t)t->H * t->W;
    place py, px;
    if (!find_place(t->sine * right + t->cosine * up + (t->H - 1) * whole, t->H, &py) ||
        !find_place(t->cosine * right - t->sine * up + (t->W - 1) * whole, t->W, &px))
        for (uint32_t c = 0; c < t->C; c++) out[c * plane] = 0;
    else if (py.index > 0 && py.index < t->H && px.index > 0 && px.index < t->W)
        for (uint32_t c = 0; c < t->C; c++)
            out[c * plane] = inside(t->in + c * plane, t->W, py, px);
    else
        for (uint32_t c = 0; c < t->C; c++)
            out[c * plane] = beside_border(t->in + c * plane, t->H, t->W, py, px);
}

static bool apply(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    const int64_t angle = (int64_t)bpt_random_below(random, 2 * values[0] + 1) - values[0];
    turn t = {.C = C, .H = H, .W = W, .in = in};
    if (angle == 0) return false;
    sine_of(angle < 0 ? -angle : angle, &t.sine, &t.cosine);
    if (angle < 0) t.sine = -t.sine;
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) turn_pixel(&t, y, x, out + (size_t)y * W + x);
    return true;
}

const bpt_augmentation bpt_augmentation_rotate = {.name = "rotate",
                                                  .example = "rotate=15",
                                                  .n_parameters = 1,
                                                  .parameters = {{.name = "DEGREES",
                                                                  .required = true,
                                                                  .min = BPT_AUGMENT_UNIT / 10,
                                                                  .max = 180 * BPT_AUGMENT_UNIT}},
                                                  .apply = apply};
