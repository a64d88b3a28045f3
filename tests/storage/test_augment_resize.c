/* Enlarged parts of an image: pixels against bilinear interpolation in double precision, and which
 * parts they are against what torchvision's rule gives. Which part an image shows can be read off
 * it: one channel has its columns' numbers, one its rows', and corners keep theirs.
 * ctest: TIMEOUT=120 */
#include "tests/storage/augment_subject.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { C = 3, LARGEST = 256 * 256, N_DRAWS = 4000 };

typedef struct part {
    int y, x, h, w;
} part;

typedef struct image {
    int H, W;
    uint8_t in[C * LARGEST], scratch[2 * C * LARGEST];
} image;

static image subject; /* too large for the stack */

/* @param H, W up to 256 */
static image *make_image(int H, int W) {
    image *s = &subject;
    s->H = H;
    s->W = W;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            s->in[y * W + x] = (uint8_t)x;
            s->in[(H + y) * W + x] = (uint8_t)y;
        }
    subject_noise(9, s->in + 2 * H * W, (size_t)(H * W));
    return s;
}

static part draw(const bpt_augment *a, image *s, uint64_t id, const uint8_t **out) {
    const int H = s->H, W = s->W;
    const uint8_t *p = *out = subject_apply(a, id, C, (uint32_t)H, (uint32_t)W, s->in, s->scratch);
    const uint8_t *rows = p + H * W;
    return (part){
        .y = rows[0], .x = p[0], .h = rows[(H - 1) * W] - rows[0] + 1, .w = p[W - 1] - p[0] + 1};
}

/* ---- pixels ---- */

static double clamp(double v, double high) {
    return v < 0 ? 0 : v > high ? high : v;
}

/* Channel c of the part, enlarged, at (y, x). */
static double reference(const image *s, part p, int c, int y, int x) {
    const double v = clamp((y + 0.5) * p.h / s->H - 0.5, p.h - 1);
    const double u = clamp((x + 0.5) * p.w / s->W - 0.5, p.w - 1);
    const int y0 = (int)v, x0 = (int)u;
    const int y1 = y0 + 1 < p.h ? y0 + 1 : y0, x1 = x0 + 1 < p.w ? x0 + 1 : x0;
    const uint8_t *in = s->in + (c * s->H + p.y) * s->W + p.x;
    const double upper = in[y0 * s->W + x0] * (1 - (u - x0)) + in[y0 * s->W + x1] * (u - x0);
    const double lower = in[y1 * s->W + x0] * (1 - (u - x0)) + in[y1 * s->W + x1] * (u - x0);
    return upper * (1 - (v - y0)) + lower * (v - y0);
}

/* Half a grey level for rounding, and an eighth for weights in 1 / 2048. */
static void expect_enlarged(const image *s, part p, const uint8_t *out) {
    assert_true(p.y >= 0 && p.h >= 1 && p.y + p.h <= s->H);
    assert_true(p.x >= 0 && p.w >= 1 && p.x + p.w <= s->W);
    for (int c = 0; c < C; c++)
        for (int y = 0; y < s->H; y++)
            for (int x = 0; x < s->W; x++, out++)
                if (fabs(*out - reference(s, p, c, y, x)) > 0.63)
                    fail_msg("%dx%d: part %dx%d at %d,%d: channel %d at %d,%d: %d, not %.3f", s->H,
                             s->W, p.h, p.w, p.y, p.x, c, y, x, *out, reference(s, p, c, y, x));
}

static void interpolates(void **state) {
    (void)state;
    const int sides[][2] = {{32, 32}, {9, 13}, {1, 1},  {1, 9},    {9, 1},   {2, 2},
                            {65, 3},  {3, 64}, {3, 65}, {70, 200}, {129, 5}, {1, 256}};
    const char *const lists[] = {"resized-crop", "resized-crop=0.01:0.3:0.1", "resized-crop=1",
                                 "resized-crop=0.5:0.5:1"};
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
        for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
            image *s = make_image(sides[k][0], sides[k][1]);
            const bpt_augment a = subject_list(lists[l]);
            assert_int_equal(bpt_augment_check(&a, (uint32_t)s->H, (uint32_t)s->W), BPT_OK);
            for (uint64_t id = 0; id < (s->H * s->W > 2000 ? 20 : 100); id++) {
                const uint8_t *out;
                const part p = draw(&a, s, id, &out);
                expect_enlarged(s, p, out);
            }
        }
}

/* A part that is the whole image costs no copy. */
static void keeps_the_whole(void **state) {
    (void)state;
    const bpt_augment a = subject_list("resized-crop=1:1:1"), b = subject_list("resized-crop");
    image *s = make_image(16, 16);
    for (uint64_t id = 0; id < 50; id++) {
        const uint8_t *out;
        draw(&a, s, id, &out);
        assert_ptr_equal(out, s->in);
    }
    s = make_image(1, 1);
    for (uint64_t id = 0; id < 50; id++) {
        const uint8_t *out;
        draw(&b, s, id, &out);
        assert_ptr_equal(out, s->in);
    }
}

/* ---- which parts ---- */

/* The rule in double precision, with another stream. */
static part reference_part(bpt_random *r, int H, int W, double from, double to, double ratio) {
    for (int i = 0; i < 10; i++) {
        const double area = H * W * (from + (to - from) * bpt_random_uniform(r));
        const double shape = exp(log(ratio) * (2 * bpt_random_uniform(r) - 1));
        const int w = (int)lround(sqrt(area * shape)), h = (int)lround(sqrt(area / shape));
        if (w < 1 || w > W || h < 1 || h > H) continue;
        return (part){.y = (int)bpt_random_below(r, (uint32_t)(H - h + 1)),
                      .x = (int)bpt_random_below(r, (uint32_t)(W - w + 1)),
                      .h = h,
                      .w = w};
    }
    part p = {.h = H, .w = W};
    if ((double)W / H < ratio) p.h = (int)lround(W / ratio);
    if ((double)W / H > 1 / ratio) p.w = (int)lround(H / ratio);
    p.y = (H - p.h) / 2;
    p.x = (W - p.w) / 2;
    return p;
}

/* What is compared of many parts. */
typedef struct sample {
    double area[N_DRAWS], shape[N_DRAWS], y[N_DRAWS], x[N_DRAWS];
} sample;

static void note(sample *t, int i, part p) {
    t->area[i] = p.h * p.w;
    t->shape[i] = log((double)p.h / p.w);
    t->y[i] = p.y + 0.5 * p.h;
    t->x[i] = p.x + 0.5 * p.w;
}

static void expect_alike(const char *list, int H, int W, double from, double to, double ratio) {
    static sample found, expected;
    const bpt_augment a = subject_list(list);
    image *s = make_image(H, W);
    bpt_random random = bpt_random_stream(5, BPT_PURPOSE_TEST, 0);
    for (int i = 0; i < N_DRAWS; i++) {
        const uint8_t *out;
        note(&found, i, draw(&a, s, (uint64_t)i, &out));
        note(&expected, i, reference_part(&random, H, W, from, to, ratio));
    }
    const double far = sqrt(2) * subject_far(N_DRAWS);
    assert_true(subject_distance_between(found.area, expected.area, N_DRAWS) < far);
    assert_true(subject_distance_between(found.shape, expected.shape, N_DRAWS) < far);
    assert_true(subject_distance_between(found.y, expected.y, N_DRAWS) < far);
    assert_true(subject_distance_between(found.x, expected.x, N_DRAWS) < far);
}

static void draws_as_torchvision(void **state) {
    (void)state;
    expect_alike("resized-crop", 32, 32, 0.08, 1, 0.75);
    expect_alike("resized-crop=0.2:0.9:0.3", 40, 25, 0.2, 0.9, 0.3);
    expect_alike("resized-crop=0.05:0.1:0.2", 20, 31, 0.05, 0.1, 0.2);
    expect_alike("resized-crop=0.5", 12, 30, 0.5, 1, 0.75);
}

/* Where every part fits, area and logarithm of the shape are uniform, and so is the place. */
static void draws_uniformly(void **state) {
    (void)state;
    static double area[N_DRAWS], shape[N_DRAWS], y[N_DRAWS], x[N_DRAWS];
    const bpt_augment a = subject_list("resized-crop=0.1:0.5:0.5");
    image *s = make_image(200, 200);
    for (int i = 0; i < N_DRAWS; i++) {
        const uint8_t *out;
        const part p = draw(&a, s, (uint64_t)i, &out);
        area[i] = p.h * p.w / 40000.0;
        shape[i] = log((double)p.h / p.w);
        y[i] = (p.y + 0.5) / (201 - p.h);
        x[i] = (p.x + 0.5) / (201 - p.w);
    }
    assert_true(subject_distance(area, N_DRAWS, 0.1, 0.5) < subject_far(N_DRAWS));
    assert_true(subject_distance(shape, N_DRAWS, log(0.5), log(2)) < subject_far(N_DRAWS));
    assert_true(subject_distance(y, N_DRAWS, 0, 1) < subject_far(N_DRAWS));
    assert_true(subject_distance(x, N_DRAWS, 0, 1) < subject_far(N_DRAWS));
}

/* Nothing of such an area has such a shape: the largest of that shape, in the middle. */
static void falls_back_to_the_middle(void **state) {
    (void)state;
    const bpt_augment a = subject_list("resized-crop=1:1:0.75");
    image *s = make_image(64, 20);
    for (uint64_t id = 0; id < 100; id++) {
        const uint8_t *out;
        const part p = draw(&a, s, id, &out);
        assert_true(p.y == 18 && p.h == 27 && p.x == 0 && p.w == 20);
    }
    s = make_image(20, 64);
    for (uint64_t id = 0; id < 100; id++) {
        const uint8_t *out;
        const part p = draw(&a, s, id, &out);
        assert_true(p.x == 18 && p.w == 27 && p.y == 0 && p.h == 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpolates),
        cmocka_unit_test(keeps_the_whole),
        cmocka_unit_test(draws_as_torchvision),
        cmocka_unit_test(draws_uniformly),
        cmocka_unit_test(falls_back_to_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
