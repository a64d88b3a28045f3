/* Colours: each change alone against its formula in double precision, all of them one after another
 * against the same with a rounding after each, and factors as they are seen in the images. */
#include "tests/storage/augment_subject.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PLANE = 7 * 11, MOST = 4 * PLANE, N_DRAWS = 4000, N_CHANGES = 3 };

static const double textbook[3] = {0.299, 0.587, 0.114};
static const double weights[3] = {19595 / 65536.0, 38470 / 65536.0, 7471 / 65536.0};

/* The three changes in the six orders that a draw chooses from. */
static const int orders[6][N_CHANGES] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* @param in shape [C,PLANE] @return grey of pixel i, or the mean of all channels there */
static double grey(const double *in, int C, int i, const double *part) {
    double sum = 0;
    for (int c = 0; c < C; c++) sum += in[c * PLANE + i] * (C == 3 ? part[c] : 1.0 / C);
    return sum;
}

/* Change number @p what by @p factor, in place.
 * @param rounds whether greys are rounded, as what comes out of it is
 * @param image shape [C,PLANE] */
static void change(int what, double factor, bool rounds, const double *part, double *image, int C) {
    double mean = 0, greys[PLANE];
    for (int i = 0; i < PLANE; i++) mean += (greys[i] = grey(image, C, i, part)) / PLANE;
    for (int i = 0; i < C * PLANE; i++) {
        double towards = what == 0 ? 0 : what == 1 ? mean : greys[i % PLANE];
        if (what == 2 && C != 3) continue;
        if (rounds) towards = floor(towards + 0.5 + 1e-9);
        image[i] = factor * image[i] + (1 - factor) * towards;
        if (rounds) image[i] = floor(image[i] + 0.5);
        image[i] = fmin(fmax(image[i], 0), 255);
    }
}

static const uint8_t *apply(const bpt_augment *a, uint64_t id, int C, const uint8_t *in,
                            uint8_t *scratch) {
    return subject_apply(a, id, (uint32_t)C, 7, 11, in, scratch);
}

/* @param most of each change, in 1 / 65536 @param[out] factors shape [N_CHANGES]
 * @return number of the order */
static uint32_t draw(uint64_t id, const uint32_t *most, double *factors) {
    bpt_random random = subject_stream(id);
    const uint32_t order = bpt_random_below(&random, 6);
    for (int i = 0; i < N_CHANGES; i++)
        factors[i] = 1 + ((double)bpt_random_below(&random, 2 * most[i] + 1) - most[i]) / 65536;
    return order;
}

/* Within one grey level of the formula: a half for the grey that it is drawn to, where the factor
 * is 0 or 2, and a half for the result. */
static void expect_alone(const char *list, int what, uint32_t most, int C) {
    const bpt_augment a = subject_list(list);
    uint8_t in[MOST], scratch[2 * MOST];
    for (uint64_t id = 0; id < 500; id++) {
        double image[MOST], factors[N_CHANGES];
        subject_noise(id, in, MOST);
        for (int i = 0; i < MOST; i++) image[i] = in[i];
        draw(id, (uint32_t[3]){what == 0 ? most : 0, what == 1 ? most : 0, what == 2 ? most : 0},
             factors);
        change(what, factors[what], false, textbook, image, C);
        const uint8_t *out = apply(&a, id, C, in, scratch);
        for (int i = 0; i < C * PLANE; i++)
            if (fabs(out[i] - image[i]) > 1.01)
                fail_msg("%s: %d becomes %d, not %.3f", list, in[i], out[i], image[i]);
    }
}

static void changes_one(void **state) {
    (void)state;
    for (int C = 1; C <= 4; C++) {
        expect_alone("jitter=0.4:0:0", 0, 26214, C);
        expect_alone("jitter=0:0.7:0", 1, 45875, C);
        expect_alone("jitter=0:0:0.5", 2, 32768, C);
        expect_alone("jitter=1:0:0", 0, 65536, C);
        expect_alone("jitter=0:1:0", 1, 65536, C);
        expect_alone("jitter=0:0:1", 2, 65536, C);
    }
}

static void changes_all_in_any_order(void **state) {
    (void)state;
    const bpt_augment a = subject_list("jitter=0.4:0.6:1");
    uint8_t in[MOST], scratch[2 * MOST];
    int n[6] = {0};
    for (uint64_t id = 0; id < 6000; id++) {
        const int C = 1 + (int)id % 4;
        double image[MOST], factors[N_CHANGES];
        subject_noise(id, in, MOST);
        for (int i = 0; i < MOST; i++) image[i] = in[i];
        const uint32_t order = draw(id, (uint32_t[3]){26214, 39321, 65536}, factors);
        for (int i = 0; i < N_CHANGES; i++)
            change(orders[order][i], factors[orders[order][i]], true, weights, image, C);
        n[order]++;
        const uint8_t *out = apply(&a, id, C, in, scratch);
        for (int i = 0; i < C * PLANE; i++) assert_int_equal(out[i], (int)image[i]);
    }
    for (int i = 0; i < 6; i++) assert_in_range(n[i], 864, 1136); /* 4.7 standard deviations */
}

/* Factors as images show them, uniform about 1. Colours are such that none is cut off. */
static void draws_factors_uniformly(void **state) {
    (void)state;
    static double bright[N_DRAWS], contrast[N_DRAWS], colour[N_DRAWS];
    const bpt_augment a[3] = {subject_list("jitter=0.4:0:0"), subject_list("jitter=0:0.4:0"),
                              subject_list("jitter=0:0:0.4")};
    uint8_t in[6], scratch[12];
    for (int i = 0; i < N_DRAWS; i++) {
        memset(in, 180, 6);
        bright[i] = subject_apply(&a[0], (uint64_t)i, 3, 1, 2, in, scratch)[0] / 180.0;
        for (int p = 0; p < 6; p++) in[p] = p % 2 ? 180 : 60;
        const uint8_t *out = subject_apply(&a[1], (uint64_t)i, 3, 1, 2, in, scratch);
        contrast[i] = (out[1] - out[0]) / 120.0;
        for (int p = 0; p < 6; p++) in[p] = p < 2 ? 180 : p < 4 ? 110 : 60;
        out = subject_apply(&a[2], (uint64_t)i, 3, 1, 2, in, scratch);
        colour[i] = (out[0] - out[4]) / 120.0;
    }
    assert_true(subject_distance(bright, N_DRAWS, 0.6, 1.4) < subject_far(N_DRAWS));
    assert_true(subject_distance(contrast, N_DRAWS, 0.6, 1.4) < subject_far(N_DRAWS));
    assert_true(subject_distance(colour, N_DRAWS, 0.6, 1.4) < subject_far(N_DRAWS));
}

/* Grey images have no saturation, and grey pixels keep being grey. */
static void keeps_grey(void **state) {
    (void)state;
    const bpt_augment a = subject_list("jitter=0:0:1"), b = subject_list("jitter");
    uint8_t in[MOST], scratch[2 * MOST];
    for (uint64_t id = 0; id < 200; id++) {
        subject_noise(id, in, MOST);
        assert_memory_equal(apply(&a, id, 1, in, scratch), in, PLANE);
        assert_memory_equal(apply(&a, id, 2, in, scratch), in, 2 * PLANE);
        for (int c = 1; c < 3; c++) memcpy(in + c * PLANE, in, PLANE);
        assert_memory_equal(apply(&a, id, 3, in, scratch), in, 3 * PLANE);
        const uint8_t *out = apply(&b, id, 3, in, scratch);
        assert_memory_equal(out, out + PLANE, PLANE);
        assert_memory_equal(out, out + 2 * PLANE, PLANE);
    }
}

static void takes_single_pixels(void **state) {
    (void)state;
    const bpt_augment a = subject_list("jitter=0:1:0");
    const uint8_t in[3] = {10, 200, 90}; /* grey 131 */
    uint8_t scratch[6];
    assert_int_equal(bpt_augment_check(&a, 1, 1), BPT_OK);
    for (uint64_t id = 0; id < 100; id++) {
        double factors[N_CHANGES];
        draw(id, (uint32_t[3]){0, 65536, 0}, factors);
        const uint8_t *out = subject_apply(&a, id, 3, 1, 1, in, scratch);
        for (int c = 0; c < 3; c++) {
            const double expected = factors[1] * in[c] + (1 - factors[1]) * 131;
            assert_true(fabs(out[c] - fmin(fmax(expected, 0), 255)) <= 0.5);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_one),
        cmocka_unit_test(changes_all_in_any_order),
        cmocka_unit_test(draws_factors_uniformly),
        cmocka_unit_test(keeps_grey),
        cmocka_unit_test(takes_single_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
