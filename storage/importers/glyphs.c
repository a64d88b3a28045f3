/* Digits that are drawn, not fetched: 28x28 grey images in 10 classes, so that training can be
 * tried with no download. A digit is a few strokes (lines and arcs of ellipses on a unit square).
 * Each image bends them by a smooth random field, turns, shears, scales and shifts them, draws them
 * with a random pen, and adds stray strokes, an occluding bar, uneven light and noise.
 *
 * An image is a function of seed, split name and index alone (and of libm's last bits: another libc
 * may change a grey level by one). Every ten images in a row hold each class once, in random order.
 * A softmax regression learns to tell 70 % of them, a LeNet 98 % from 20,000 images. */
#include "base/checksum.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/importers/importer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SIDE = 28,
    N_CLASSES = 10,
    N_WAVES = 3,    /* of the bending field */
    ARC_STEP = 15,  /* degrees to a segment */
    LINE_STEPS = 5, /* segments to a line, so that it can bend */
    MAX_STROKES = 4,
    N_VARIANTS = 3,
};

/* Streams of ids from here on order the classes; those below draw images. */
#define ORDER_IDS ((uint64_t)1 << 63)

static const float pi = 3.14159265f;

/* A line from (a, b) to (c, d); or, where to > from, the arc of the ellipse with center (a, b) and
 * radii (c, d) between two angles in degrees, clockwise from the right. */
typedef struct stroke {
    float a, b, c, d;
    float from, to;
} stroke;

/* Ways to write each digit; one without strokes repeats the first. */
static const stroke digits[N_CLASSES][N_VARIANTS][MAX_STROKES] = {
    {{{.50f, .50f, .30f, .42f, 0, 360}}, {{.50f, .50f, .22f, .42f, 0, 360}}},
    {{{.52f, .08f, .52f, .92f, 0, 0}},
     {{.52f, .08f, .52f, .92f, 0, 0}, {.52f, .08f, .32f, .28f, 0, 0}},
     {{.52f, .08f, .52f, .92f, 0, 0},
      {.52f, .08f, .34f, .26f, 0, 0},
      {.34f, .92f, .70f, .92f, 0, 0}}},
    {{{.50f, .32f, .27f, .24f, 190, 405},
      {.69f, .49f, .22f, .92f, 0, 0},
      {.22f, .92f, .80f, .92f, 0, 0}}},
    {{{.47f, .29f, .27f, .21f, 200, 450}, {.47f, .71f, .30f, .21f, 270, 520}},
     {{.24f, .09f, .76f, .09f, 0, 0},
      {.76f, .09f, .47f, .44f, 0, 0},
      {.47f, .68f, .30f, .24f, 270, 520}}},
    {{{.62f, .08f, .20f, .62f, 0, 0},
      {.20f, .62f, .82f, .62f, 0, 0},
      {.62f, .08f, .62f, .92f, 0, 0}},
     {{.30f, .10f, .22f, .56f, 0, 0},
      {.22f, .56f, .80f, .56f, 0, 0},
      {.68f, .10f, .64f, .92f, 0, 0}}},
    {{{.75f, .08f, .30f, .08f, 0, 0},
      {.30f, .08f, .27f, .46f, 0, 0},
      {.47f, .65f, .29f, .27f, 225, 510}}},
    {{{.50f, .68f, .27f, .24f, 0, 360}, {.78f, .62f, .55f, .56f, 180, 250}}},
    {{{.20f, .10f, .80f, .10f, 0, 0}, {.80f, .10f, .42f, .92f, 0, 0}},
     {{.20f, .10f, .80f, .10f, 0, 0},
      {.80f, .10f, .42f, .92f, 0, 0},
      {.40f, .50f, .74f, .50f, 0, 0}}},
    {{{.50f, .29f, .22f, .20f, 0, 360}, {.50f, .71f, .27f, .22f, 0, 360}}},
    {{{.50f, .32f, .27f, .24f, 0, 360}, {.22f, .38f, .55f, .56f, 0, 70}},
     {{.50f, .32f, .27f, .24f, 0, 360}, {.77f, .32f, .72f, .92f, 0, 0}}},
};

typedef struct point {
    float x, y;
} point;

/* Where the points of the unit square go. */
typedef struct bend {
    point wave[N_WAVES];   /* direction and frequency of each wave, radians per unit */
    float phase[N_WAVES];  /* radians */
    point height[N_WAVES]; /* shift at its crest, units */
    float m[4];            /* then x' = m0 x + m1 y, y' = m2 x + m3 y around the middle, pixels */
    point middle;          /* of the digit, pixels */
} bend;

typedef struct canvas {
    float ink[SIDE * SIDE]; /* 0 to 1, shape [SIDE, SIDE] */
} canvas;

typedef struct glyphs {
    uint64_t seed; /* of seed and split */
    uint64_t next;
} glyphs;

static float between(bpt_random *r, float low, float high) {
    return low + (high - low) * bpt_random_uniform(r);
}

static bend random_bend(bpt_random *r) {
    bend b;
    for (int i = 0; i < N_WAVES; i++) {
        b.wave[i] = (point){between(r, -1.2f, 1.2f) * 2 * pi, between(r, -1.2f, 1.2f) * 2 * pi};
        b.phase[i] = between(r, 0, 2 * pi);
        b.height[i] = (point){between(r, -.04f, .04f), between(r, -.04f, .04f)};
    }
    const float turn = between(r, -.3f, .3f), shear = between(r, -.3f, .3f);
    const float width = between(r, 13, 21), height = between(r, 16, 22);
    const float c = cosf(turn), s = sinf(turn);
    b.m[0] = c * width;
    b.m[1] = (c * shear - s) * height;
    b.m[2] = s * width;
    b.m[3] = (s * shear + c) * height;
    b.middle = (point){SIDE / 2.f + between(r, -3.5f, 3.5f), SIDE / 2.f + between(r, -2.5f, 2.5f)};
    return b;
}

static point bent(const bend *b, float x, float y) {
    float dx = x - .5f, dy = y - .5f;
    for (int i = 0; i < N_WAVES; i++) {
        const float s = sinf(b->wave[i].x * x + b->wave[i].y * y + b->phase[i]);
        dx += b->height[i].x * s;
        dy += b->height[i].y * s;
    }
    return (point){b->middle.x + b->m[0] * dx + b->m[1] * dy,
                   b->middle.y + b->m[2] * dx + b->m[3] * dy};
}

static int pixel_floor(float v) {
    return v < 0 ? 0 : v > SIDE ? SIDE : (int)v;
}

/* Draws with a round pen whose edge is one pixel soft. */
static void draw_segment(canvas *c, point p, point q, float pen, float ink) {
    const float radius = pen / 2, reach = radius + 1;
    const int x0 = pixel_floor(fminf(p.x, q.x) - reach), x1 = pixel_floor(fmaxf(p.x, q.x) + reach);
    const int y0 = pixel_floor(fminf(p.y, q.y) - reach), y1 = pixel_floor(fmaxf(p.y, q.y) + reach);
    const float dx = q.x - p.x, dy = q.y - p.y;
    const float length2 = fmaxf(dx * dx + dy * dy, 1e-6f);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            const float px = (float)x + .5f - p.x, py = (float)y + .5f - p.y;
            const float t = fminf(fmaxf((px * dx + py * dy) / length2, 0), 1);
            const float ex = px - t * dx, ey = py - t * dy;
            const float cover = radius + .5f - sqrtf(ex * ex + ey * ey);
            float *at = &c->ink[y * SIDE + x];
            *at = fmaxf(*at, fminf(fmaxf(cover, 0), 1) * ink);
        }
}

static void draw_stroke(canvas *c, const stroke *s, const bend *b, float pen, float ink) {
    const bool arc = s->to > s->from;
    const int n = arc ? (int)ceilf((s->to - s->from) / ARC_STEP) : LINE_STEPS;
    point before = {0};
    for (int i = 0; i <= n; i++) {
        const float t = (float)i / (float)n;
        const float angle = (s->from + t * (s->to - s->from)) * pi / 180;
        const float x = arc ? s->a + s->c * cosf(angle) : s->a + t * (s->c - s->a);
        const float y = arc ? s->b + s->d * sinf(angle) : s->b + t * (s->d - s->b);
        const point now = bent(b, x, y);
        if (i > 0) draw_segment(c, before, now, pen, ink);
        before = now;
    }
}

static void draw_digit(canvas *c, uint32_t digit, bpt_random *r) {
    const bend b = random_bend(r);
    const float pen = between(r, 1.2f, 3.4f), ink = between(r, .55f, 1);
    const stroke *strokes = digits[digit][bpt_random_below(r, N_VARIANTS)];
    if (strokes[0].c == 0) strokes = digits[digit][0];
    for (int i = 0; i < MAX_STROKES && strokes[i].c != 0; i++)
        draw_stroke(c, &strokes[i], &b, pen, ink);
}

static point random_point(bpt_random *r) {
    return (point){between(r, 0, SIDE), between(r, 0, SIDE)};
}

static void draw_clutter(canvas *c, bpt_random *r) {
    const uint32_t n = bpt_random_below(r, 2);
    for (uint32_t i = 0; i < n; i++) {
        const point p = random_point(r);
        const point q = {p.x + between(r, -7, 7), p.y + between(r, -7, 7)};
        draw_segment(c, p, q, between(r, 1, 2.2f), between(r, .3f, .8f));
    }
}

/* Wipes out a bar of random place and direction, in one image of four. */
static void occlude(canvas *c, bpt_random *r) {
    if (bpt_random_below(r, 4) != 0) return;
    const point p = random_point(r);
    const float angle = between(r, 0, pi), half = between(r, .7f, 1.5f);
    const float nx = cosf(angle), ny = sinf(angle);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (fabsf(((float)x - p.x) * nx + ((float)y - p.y) * ny) < half)
                c->ink[y * SIDE + x] = 0;
}

/* Nearly normal, mean 0, deviation 1: four uniform bytes of one draw. */
static float noise(bpt_random *r) {
    const uint32_t u = bpt_random_u32(r);
    const float sum = (float)((u & 255) + (u >> 8 & 255) + (u >> 16 & 255) + (u >> 24));
    return (sum - 510) / 147.8f;
}

static void expose(const canvas *c, bpt_random *r, uint8_t *pixels) {
    const float light = between(r, 0, .2f), slope_x = between(r, -.1f, .1f),
                slope_y = between(r, -.1f, .1f), grain = between(r, .02f, .12f);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const float ground =
                light + slope_x * ((float)x / SIDE - .5f) + slope_y * ((float)y / SIDE - .5f);
            const float ink = c->ink[y * SIDE + x];
            const float v = ground + (1 - ground) * ink + grain * noise(r);
            pixels[y * SIDE + x] = (uint8_t)(fminf(fmaxf(v, 0), 1) * 255 + .5f);
        }
}

static bpt_status glyphs_open(const bpt_import_source *source, bpt_import_plan *plan,
                              void **import) {
    if (source->count == 0) return bpt_fail(BPT_EUSAGE, "no glyphs are asked for");
    glyphs *g;
    BPT_TRY(BPT_NEW("glyphs", 1, &g));
    /* Splits of one seed must not share images, or a test would test what was learned. */
    g->seed = source->seed ^ bpt_checksum(source->split, strlen(source->split));
    static const char *const names[N_CLASSES] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    *plan = (bpt_import_plan){.C = 1,
                              .H = SIDE,
                              .W = SIDE,
                              .count = source->count,
                              .n_classes = N_CLASSES,
                              .class_names = names};
    *import = g;
    return BPT_OK;
}

static bpt_status glyphs_next(void *import, bpt_import_item *item) {
    glyphs *g = import;
    item->number = g->next++;
    return BPT_OK;
}

static bpt_status glyphs_load(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                              bpt_import_image *image) {
    const glyphs *g = import;
    BPT_TRY(BPT_GROW("glyph", SIDE * SIDE, &buffer->bytes, &buffer->capacity));
    uint32_t order[N_CLASSES]; /* of the ten images that it is one of */
    bpt_random_permutation(g->seed, BPT_PURPOSE_GLYPHS, ORDER_IDS + item->number / N_CLASSES, order,
                           N_CLASSES);
    const uint32_t digit = order[item->number % N_CLASSES];
    bpt_random r = bpt_random_stream(g->seed, BPT_PURPOSE_GLYPHS, item->number);
    canvas c = {{0}};
    draw_clutter(&c, &r);
    draw_digit(&c, digit, &r);
    occlude(&c, &r);
    expose(&c, &r, buffer->bytes);
    *image = (bpt_import_image){
        .label = digit, .bytes = buffer->bytes, .size = SIDE * SIDE, .C = 1, .H = SIDE, .W = SIDE};
    return BPT_OK;
}

static void glyphs_describe(void *import, const bpt_import_item *item, char *name, size_t size) {
    (void)import;
    snprintf(name, size, "glyph %llu", (unsigned long long)item->number);
}

static void glyphs_close(void *import) {
    bpt_free(import);
}

const bpt_importer bpt__import_glyphs = {.name = "glyphs",
                                         .draws = true,
                                         .open = glyphs_open,
                                         .next = glyphs_next,
                                         .load = glyphs_load,
                                         .describe = glyphs_describe,
                                         .close = glyphs_close};
