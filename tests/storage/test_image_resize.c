/* Resizing against sums in double precision, its bits, and which frame fits. */
#include "base/checksum.h"
#include "base/memory.h"
#include "storage/images/image.h"
#include "storage/images/resize.h"
#include "storage/images/scale.h"
#include "tests/storage/made_images.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The weight of pixel k of @p in for pixel i of @p out, as the header tells it. */
static double weight(uint32_t i, uint32_t k, uint32_t in, uint32_t out) {
    const double ratio = (double)in / out;
    if (out <= in) {
        const double from = fmax(i * ratio, k), to = fmin((i + 1) * ratio, k + 1.0);
        return to > from ? (to - from) / ratio : 0;
    }
    double at = (i + 0.5) * ratio - 0.5;
    at = fmin(fmax(at, 0), in - 1.0);
    const double distance = fabs(at - k);
    return distance < 1 ? 1 - distance : 0;
}

/* One pixel of the result; in has shape [H,W]. */
static double reference(const uint8_t *in, uint32_t W, const bpt_image_frame *f, uint32_t y,
                        uint32_t x) {
    static double columns[BPT_IMAGE_MAX_SIDE];
    for (uint32_t k = 0; k < f->w; k++) columns[k] = weight(x + f->crop_x, k, f->w, f->scaled_w);
    double sum = 0;
    for (uint32_t i = 0; i < f->h; i++) {
        const double w = weight(y + f->crop_y, i, f->h, f->scaled_h);
        if (w == 0) continue;
        for (uint32_t k = 0; k < f->w; k++)
            sum += w * columns[k] * in[(size_t)(f->y + i) * W + f->x + k];
    }
    return sum;
}

/* What the header allows for, above the half that rounding takes. */
static const double slack = 0.04;

/* @return pixels that are not the nearest to the exact value */
static size_t compare(bpt_image_resizer *r, uint32_t H, uint32_t W, const bpt_image_frame *f) {
    enum { C = 3 };
    const size_t n_in = (size_t)C * H * W, plane = (size_t)f->H * f->W;
    uint8_t *in = malloc(n_in), *out = malloc(C * plane);
    size_t n_off = 0;
    assert_true(in && out);
    made_noise(in, n_in, H * 1000 + W);
    assert_int_equal(bpt_image_resize(r, f, in, C, H, W, out), BPT_OK);
    for (uint32_t c = 0; c < C; c++)
        for (uint32_t y = 0; y < f->H; y++)
            for (uint32_t x = 0; x < f->W; x++) {
                const double expected = reference(in + (size_t)c * H * W, W, f, y, x);
                const uint8_t got = out[c * plane + (size_t)y * f->W + x];
                n_off += fabs(got - expected) > 0.5 + 1e-9;
                if (fabs(got - expected) > 0.5 + slack) {
                    print_error("%u x %u to %u x %u, at %u, %u: %u, expected %f\n", H, W,
                                f->scaled_h, f->scaled_w, y, x, got, expected);
                    fail();
                }
            }
    free(in);
    free(out);
    return n_off;
}

static void sizes_agree_with_the_reference(void **state) {
    (void)state;
    static const uint32_t sides[] = {1, 2, 3, 7, 16, 37};
    enum { N = sizeof sides / sizeof sides[0] };
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    for (int i = 0; i < N * N; i++)
        for (int k = 0; k < N * N; k++) {
            const bpt_image_fit fit = {.H = sides[k / N], .W = sides[k % N]};
            const uint32_t H = sides[i / N], W = sides[i % N];
            const bpt_image_frame f = bpt_image_fit_frame(&fit, H, W);
            compare(r, H, W, &f);
        }
    bpt_image_resizer_close(r);
}

static void parts_agree_with_the_reference(void **state) {
    (void)state;
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    const bpt_image_frame frames[] = {
        {3, 5, 20, 11, 10, 9, 2, 1, 5, 7},     /* smaller both ways */
        {3, 5, 20, 11, 33, 44, 13, 21, 20, 6}, /* larger */
        {0, 0, 40, 30, 20, 60, 19, 59, 1, 1},  /* the last pixel of a mixed one */
        {1, 2, 39, 28, 39, 28, 4, 6, 30, 3},   /* no change of size: a cut in two steps */
        {39, 29, 1, 1, 5, 5, 0, 0, 5, 5},      /* one pixel spread out */
    };
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) compare(r, 40, 30, &frames[i]);
    bpt_image_resizer_close(r);
}

/* What is rounded on the way to the last rounding shows in few pixels. */
static void most_pixels_are_the_nearest(void **state) {
    (void)state;
    static const uint32_t sizes[][4] = {
        {64, 85, 56, 56}, {64, 85, 40, 60}, {64, 85, 16, 21}, {64, 85, 9, 9}, {64, 85, 90, 120}};
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint32_t *s = sizes[i];
        const bpt_image_frame f =
            bpt_image_fit_frame(&(bpt_image_fit){.H = s[2], .W = s[3]}, s[0], s[1]);
        const size_t n_off = compare(r, s[0], s[1], &f), n = (size_t)3 * f.H * f.W;
        if (n_off * 100 > n) print_error("%u x %u: %zu of %zu\n", f.H, f.W, n_off, n);
        assert_true(n_off * 100 <= n);
    }
    bpt_image_resizer_close(r);
}

static void expect_flat(const uint8_t *pixels, size_t n, int value) {
    for (size_t i = 0; i < n; i++) assert_int_equal(pixels[i], value);
}

/* Also white ones, whose sums are the largest: 16 bits have to hold them. */
static void flat_images_stay_flat(void **state) {
    (void)state;
    enum { MOST = 60, LANES = 4, C = 3 };
    static const uint32_t sides[] = {1, 2, 3, 5, 8, 13, 24, 41, MOST};
    enum { N = sizeof sides / sizeof sides[0] };
    static uint8_t in[MOST * MOST * LANES], out[MOST * MOST * C];
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    for (int value = 0; value <= 255; value++)
        for (int i = 0; i < N * N; i++) {
            const uint32_t from = sides[i / N], to = sides[i % N];
            const size_t n = (size_t)to * to;
            const bpt_image_frame f =
                bpt_image_fit_frame(&(bpt_image_fit){.H = to, .W = to}, from, from);
            memset(in, value, (size_t)from * from * LANES);
            memset(out, ~value, n);
            assert_int_equal(bpt_image_resize(r, &f, in, 1, from, from, out), BPT_OK);
            expect_flat(out, n, value);
            memset(out, ~value, C * n);
            assert_int_equal(bpt__scale_packed(r, &f, in, LANES, from, out), BPT_OK);
            expect_flat(out, C * n, value);
        }
    bpt_image_resizer_close(r);
}

/* The longest sides, and the most weights a pixel. */
static void large_images_agree_with_the_reference(void **state) {
    (void)state;
    enum { L = BPT_IMAGE_MAX_SIDE };
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    const bpt_image_frame smaller =
        bpt_image_fit_frame(&(bpt_image_fit){.H = 1, .W = 1}, 4200, 4200);
    compare(r, 4200, 4200, &smaller);
    const bpt_image_frame flat = bpt_image_fit_frame(&(bpt_image_fit){.H = 1, .W = 40}, 6, L);
    compare(r, 6, L, &flat);
    const bpt_image_frame tall = bpt_image_fit_frame(&(bpt_image_fit){.H = 40, .W = 1}, L, 6);
    compare(r, L, 6, &tall);
    const bpt_image_frame larger[] = {{0, 0, 3, 3, 4096, 4096, 1500, 2000, 9, 9},
                                      {0, 0, 3, 3, L, L, 5400, 10900, 9, 40},
                                      {0, 0, 3, 3, L, L, L - 5, 0, 5, 2},
                                      {0, 0, 2, 3, 1500, L, 700, 8000, 20, 20}};
    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++) compare(r, 3, 3, &larger[i]);
    bpt_image_resizer_close(r);
}

/* The extremes of what 32 bits have to hold. */
static void longest_sides_keep_their_values(void **state) {
    (void)state;
    enum { L = BPT_IMAGE_MAX_SIDE };
    static const uint32_t shapes[][4] = {{1, L, 1, 1}, {L, 1, 1, 1},     {1, 1, 1, L},
                                         {1, 1, L, 1}, {3, L, 2, L - 1}, {1, L - 1, 2, L}};
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    uint8_t *in = malloc(3 * L), *out = malloc(3 * L);
    assert_true(in && out);
    for (int value = 0; value <= 255; value += 51)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            const uint32_t *shape = shapes[s];
            const bpt_image_fit fit = {.H = shape[2], .W = shape[3]};
            const bpt_image_frame f = bpt_image_fit_frame(&fit, shape[0], shape[1]);
            memset(in, value, 3 * L);
            memset(out, ~value, 3 * L);
            assert_int_equal(bpt_image_resize(r, &f, in, 1, shape[0], shape[1], out), BPT_OK);
            for (uint32_t i = 0; i < f.H * f.W; i++) assert_int_equal(out[i], value);
        }
    /* Of a column of noise the mean: 255 * 16384 fits, and no bit of it is lost. */
    made_noise(in, L, 7);
    uint64_t sum = 0;
    for (int i = 0; i < L; i++) sum += in[i];
    const bpt_image_frame f = bpt_image_fit_frame(&(bpt_image_fit){.H = 1, .W = 1}, L, 1);
    assert_int_equal(bpt_image_resize(r, &f, in, 1, L, 1, out), BPT_OK);
    assert_int_equal(out[0], (2 * sum + L) / (2 * L));
    free(in);
    free(out);
    bpt_image_resizer_close(r);
}

/* The same numbers on every machine: whoever changes them changes what datasets hold, and raises
 * BPT_IMAGE_RULES. */
static void bits_are_what_they_were(void **state) {
    (void)state;
    enum { H = 61, W = 83 };
    static const struct {
        bpt_image_fit fit;
        uint64_t checksum;
    } cases[] = {
        {{.H = 20, .W = 30}, UINT64_C(0x63015d0eee1a66c3)},
        {{.H = 100, .W = 150}, UINT64_C(0xf5602feb6e9df5e9)},
        {{.short_side = 32}, UINT64_C(0x9bb158225a83db16)},
        {{.short_side = 80, .H = 70, .W = 50}, UINT64_C(0xa48005087423de32)},
    };
    static uint8_t in[3 * H * W], out[3 * 150 * 150];
    made_noise(in, sizeof in, 42);
    int n_wrong = 0;
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bpt_image_frame f = bpt_image_fit_frame(&cases[i].fit, H, W);
        assert_int_equal(bpt_image_resize(r, &f, in, 3, H, W, out), BPT_OK);
        const uint64_t checksum = bpt_checksum(out, (size_t)3 * f.H * f.W);
        if (checksum != cases[i].checksum)
            print_error("case %zu: 0x%016llx\n", i, (unsigned long long)checksum);
        n_wrong += checksum != cases[i].checksum;
    }
    bpt_image_resizer_close(r);
    assert_int_equal(n_wrong, 0);
}

static void warm_resizer_does_not_allocate(void **state) {
    (void)state;
    static uint8_t in[40 * 40], out[80 * 80];
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    const bpt_image_frame large = bpt_image_fit_frame(&(bpt_image_fit){.short_side = 80}, 40, 40);
    const bpt_image_frame small = bpt_image_fit_frame(&(bpt_image_fit){.short_side = 11}, 30, 20);
    assert_int_equal(bpt_image_resize(r, &large, in, 1, 40, 40, out), BPT_OK);
    const uint64_t before = bpt_memory_allocations();
    assert_int_equal(bpt_image_resize(r, &small, in, 1, 30, 20, out), BPT_OK);
    assert_int_equal(bpt_image_resize(r, &large, in, 1, 40, 40, out), BPT_OK);
    assert_int_equal(bpt_memory_allocations(), before);
    bpt_image_resizer_close(r);
}

static void failed_allocations_leave_nothing(void **state) {
    (void)state;
    static uint8_t in[12 * 9], out[5 * 5];
    const bpt_image_frame f = bpt_image_fit_frame(&(bpt_image_fit){.H = 5, .W = 5}, 12, 9);
    for (int64_t n = 0;; n++) {
        bpt_image_resizer *r = NULL;
        bpt_memory_fail_at(n);
        bpt_status status = bpt_image_resizer_open(&r);
        if (status == BPT_OK) status = bpt_image_resize(r, &f, in, 1, 12, 9, out);
        bpt_memory_fail_at(-1);
        bpt_image_resizer_close(r);
        assert_int_equal(bpt_memory_live(), 0);
        if (status == BPT_OK) {
            assert_int_equal(n, 7); /* itself, and 6 tables */
            return;
        }
        assert_int_equal(status, BPT_ENOMEM);
    }
}

static void expect_frame(bpt_image_fit fit, uint32_t H, uint32_t W, uint32_t scaled_h,
                         uint32_t scaled_w, uint32_t crop_y, uint32_t crop_x, uint32_t out_h,
                         uint32_t out_w) {
    assert_int_equal(bpt_image_fit_check(&fit), BPT_OK);
    const bpt_image_frame f = bpt_image_fit_frame(&fit, H, W);
    assert_int_equal(bpt_image_frame_check(&f, H, W), BPT_OK);
    const bpt_image_frame expected = {0, 0, H, W, scaled_h, scaled_w, crop_y, crop_x, out_h, out_w};
    assert_memory_equal(&f, &expected, sizeof f);
}

static void frames_fit(void **state) {
    (void)state;
    expect_frame((bpt_image_fit){0}, 30, 40, 30, 40, 0, 0, 30, 40);
    expect_frame((bpt_image_fit){.H = 7, .W = 9}, 30, 40, 7, 9, 0, 0, 7, 9);
    expect_frame((bpt_image_fit){.short_side = 15}, 30, 40, 15, 20, 0, 0, 15, 20);
    expect_frame((bpt_image_fit){.short_side = 15}, 40, 30, 20, 15, 0, 0, 20, 15);
    expect_frame((bpt_image_fit){.short_side = 256}, 333, 500, 256, 384, 0, 0, 256, 384);
    expect_frame((bpt_image_fit){.short_side = 2}, 4, 5, 2, 3, 0, 0, 2, 3); /* 2.5: half up */
    expect_frame((bpt_image_fit){.short_side = 256, .H = 224, .W = 200}, 333, 500, 256, 384, 16, 92,
                 224, 200);
    expect_frame((bpt_image_fit){.short_side = 9, .H = 8, .W = 8}, 9, 9, 9, 9, 0, 0, 8, 8);
    expect_frame((bpt_image_fit){.short_side = 16384}, 1, 16384, 16384, 16384, 0, 0, 16384, 16384);
}

static void impossible_frames_are_refused(void **state) {
    (void)state;
    const bpt_image_fit fits[] = {{.H = 5},
                                  {.W = 5},
                                  {.H = 16385, .W = 1},
                                  {.short_side = 16385},
                                  {.short_side = 8, .H = 9, .W = 8},
                                  {.short_side = 8, .H = 8, .W = 9}};
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++)
        assert_int_equal(bpt_image_fit_check(&fits[i]), BPT_EUSAGE);
    const bpt_image_frame frames[] = {
        {0, 0, 0, 5, 5, 5, 0, 0, 5, 5},          {0, 0, 11, 5, 5, 5, 0, 0, 5, 5},
        {6, 0, 5, 5, 5, 5, 0, 0, 5, 5},          {0, 16, 5, 5, 5, 5, 0, 0, 5, 5},
        {0, UINT32_MAX, 5, 5, 5, 5, 0, 0, 5, 5}, {0, 0, 5, 5, 0, 5, 0, 0, 0, 5},
        {0, 0, 5, 5, 16385, 5, 0, 0, 5, 5},      {0, 0, 5, 5, 5, 5, 1, 0, 5, 5},
        {0, 0, 5, 5, 5, 5, 0, 3, 5, 3},          {0, 0, 5, 5, 5, 5, 0, 0, 5, 0}};
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        assert_int_equal(bpt_image_frame_check(&frames[i], 10, 20), BPT_EUSAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_agree_with_the_reference),
        cmocka_unit_test(parts_agree_with_the_reference),
        cmocka_unit_test(most_pixels_are_the_nearest),
        cmocka_unit_test(flat_images_stay_flat),
        cmocka_unit_test(large_images_agree_with_the_reference),
        cmocka_unit_test(longest_sides_keep_their_values),
        cmocka_unit_test(bits_are_what_they_were),
        cmocka_unit_test(warm_resizer_does_not_allocate),
        cmocka_unit_test(failed_allocations_leave_nothing),
        cmocka_unit_test(frames_fit),
        cmocka_unit_test(impossible_frames_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
