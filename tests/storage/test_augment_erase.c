/* Erased rectangles against the paper's algorithm in double precision: with the same draws the same
 * rectangle, and with others the same distributions. The rest of an image stays. */
#include "tests/storage/augment_subject.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { C = 3, LARGEST = 64 * 64, N_DRAWS = 4000 };

typedef struct rectangle {
    int y, x, h, w; /* h is 0 where nothing is erased */
} rectangle;

typedef struct terms {
    double probability, from, to, ratio;
} terms;

static uint8_t in[C * LARGEST], scratch[2 * C * LARGEST];

/* @return uniform in [from, to], in steps of 1 / 10000 as the values of a list are */
static double draw(bpt_random *r, double from, double to) {
    const long low = lround(from * 10000), high = (long)(to * 10000 + 1e-6);
    return (double)(low + bpt_random_below(r, (uint32_t)(high - low + 1))) / 10000;
}

/* Algorithm 1 of the paper, with whole pixels.
 * @param r after it: where noise is drawn from */
static rectangle erase_as_paper(bpt_random *r, terms t, int H, int W) {
    if (draw(r, 0, 0.9999) >= t.probability) return (rectangle){0};
    for (int i = 0; i < 100; i++) {
        const double area = draw(r, t.from, t.to) * H * W;
        const double ratio = draw(r, t.ratio, 1 / t.ratio);
        const int h = (int)fmax(1, floor(sqrt(area * ratio) + 0.5 + 1e-12));
        const int w = (int)fmax(1, floor(sqrt(area / ratio) + 0.5 + 1e-12));
        const int y = (int)bpt_random_below(r, (uint32_t)H);
        const int x = (int)bpt_random_below(r, (uint32_t)W);
        if (y + h <= H && x + w <= W) return (rectangle){y, x, h, w};
    }
    return (rectangle){0};
}

static void expect_erased(const uint8_t *out, rectangle e, bpt_random *r, int H, int W) {
    uint32_t word = 0, n = 0;
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                const int i = (c * H + y) * W + x;
                const bool gone = y >= e.y && y < e.y + e.h && x >= e.x && x < e.x + e.w;
                if (gone && n++ % 4 == 0) word = bpt_random_u32(r);
                if (out[i] != (gone ? (uint8_t)word : in[i]))
                    fail_msg("%dx%d, erased %dx%d at %d,%d: pixel %d,%d", H, W, e.h, e.w, e.y, e.x,
                             y, x);
                if (gone) word >>= 8;
            }
}

static void erases_as_the_paper(void **state) {
    (void)state;
    const struct {
        const char *list;
        terms terms;
    } cases[] = {{"erase", {0.5, 0.02, 0.4, 0.3}},
                 {"erase=1", {1, 0.02, 0.4, 0.3}},
                 {"erase=1:0.0001:1:0.1", {1, 0.0001, 1, 0.1}},
                 {"erase=0.9:0.3:0.3:1", {0.9, 0.3, 0.3, 1}}};
    const int sides[][2] = {{32, 32}, {1, 1}, {1, 30}, {30, 1}, {2, 3}, {17, 40}, {64, 64}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (size_t l = 0; l < sizeof sides / sizeof *sides; l++) {
            const int H = sides[l][0], W = sides[l][1];
            const bpt_augment a = subject_list(cases[k].list);
            int n_erased = 0;
            subject_noise(l, in, sizeof in);
            for (uint64_t id = 0; id < 200; id++) {
                bpt_random random = subject_stream(id);
                const rectangle e = erase_as_paper(&random, cases[k].terms, H, W);
                const uint8_t *out =
                    subject_apply(&a, id, C, (uint32_t)H, (uint32_t)W, in, scratch);
                n_erased += e.h > 0;
                expect_erased(out, e, &random, H, W);
                if (e.h == 0) assert_ptr_equal(out, in);
            }
            if (H > 1 && W > 1) assert_true(n_erased > 50); /* on a line few squares fit */
        }
}

/* What is seen to be erased of a black image. */
static rectangle find(const uint8_t *out, int H, int W) {
    rectangle e = {.y = H, .x = W};
    int last_y = -1, last_x = -1;
    for (int i = 0; i < C * H * W; i++) {
        const int y = i / W % H, x = i % W;
        if (out[i] == 0) continue;
        if (y < e.y) e.y = y;
        if (x < e.x) e.x = x;
        if (y > last_y) last_y = y;
        if (x > last_x) last_x = x;
    }
    if (last_y < 0) return (rectangle){0};
    e.h = last_y - e.y + 1;
    e.w = last_x - e.x + 1;
    return e;
}

typedef struct sample {
    double area[N_DRAWS], shape[N_DRAWS], y[N_DRAWS], x[N_DRAWS];
} sample;

static void note(sample *s, int i, rectangle e) {
    s->area[i] = e.h * e.w;
    s->shape[i] = log((double)e.h / e.w);
    s->y[i] = e.y + 0.5 * e.h;
    s->x[i] = e.x + 0.5 * e.w;
}

static void draws_as_the_paper(void **state) {
    (void)state;
    static sample found, expected;
    const bpt_augment a = subject_list("erase=1:0.02:0.4:0.3");
    const int H = 32, W = 48;
    bpt_random random = bpt_random_stream(6, BPT_PURPOSE_TEST, 0);
    memset(in, 0, sizeof in);
    for (int i = 0; i < N_DRAWS; i++) {
        note(&found, i,
             find(subject_apply(&a, (uint64_t)i, C, (uint32_t)H, (uint32_t)W, in, scratch), H, W));
        note(&expected, i, erase_as_paper(&random, (terms){1, 0.02, 0.4, 0.3}, H, W));
    }
    const double far = sqrt(2) * subject_far(N_DRAWS);
    assert_true(subject_distance_between(found.area, expected.area, N_DRAWS) < far);
    assert_true(subject_distance_between(found.shape, expected.shape, N_DRAWS) < far);
    assert_true(subject_distance_between(found.y, expected.y, N_DRAWS) < far);
    assert_true(subject_distance_between(found.x, expected.x, N_DRAWS) < far);
}

static void erases_as_often_as_it_says(void **state) {
    (void)state;
    const struct {
        const char *list;
        int least, most; /* 4.7 standard deviations */
    } cases[] = {
        {"erase=0.5", 1851, 2149}, {"erase=0.1:0.1:0.1", 310, 490}, {"erase=1", 4000, 4000}};
    for (int k = 0; k < 3; k++) {
        const bpt_augment a = subject_list(cases[k].list);
        int n = 0;
        for (uint64_t id = 0; id < N_DRAWS; id++)
            n += subject_apply(&a, id, C, 16, 16, in, scratch) != in;
        assert_in_range(n, cases[k].least, cases[k].most);
    }
}

/* All levels alike: chi square within four of its standard deviations. */
static void fills_in_noise(void **state) {
    (void)state;
    const bpt_augment a = subject_list("erase=1:0.3");
    const int H = 64, W = 64;
    int n[256] = {0}, total = 0;
    double chi2 = 0;
    memset(in, 0, sizeof in);
    for (uint64_t id = 0; id < 200; id++) {
        const uint8_t *out = subject_apply(&a, id, C, (uint32_t)H, (uint32_t)W, in, scratch);
        const rectangle e = find(out, H, W);
        for (int c = 0; c < C; c++)
            for (int y = e.y; y < e.y + e.h; y++)
                for (int x = e.x; x < e.x + e.w; x++, total++) n[out[(c * H + y) * W + x]]++;
    }
    for (int i = 0; i < 256; i++) chi2 += (n[i] - total / 256.0) * (n[i] - total / 256.0);
    chi2 /= total / 256.0;
    assert_true(total > 500000);
    assert_true(chi2 > 255 - 4 * 22.6 && chi2 < 255 + 4 * 22.6);
}

/* A square of this area is wider than the image: it is left alone. */
static void gives_up(void **state) {
    (void)state;
    const bpt_augment a = subject_list("erase=1:1:1:1");
    for (uint64_t id = 0; id < 20; id++)
        assert_ptr_equal(subject_apply(&a, id, C, 5, 7, in, scratch), in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(erases_as_the_paper),
        cmocka_unit_test(draws_as_the_paper),
        cmocka_unit_test(erases_as_often_as_it_says),
        cmocka_unit_test(fills_in_noise),
        cmocka_unit_test(gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
