/* Batches on their way to a network's input against loops: all are exact. They come by a feed, once
 * as what is known before and once not.
 *
 * ctest: gpu TIMEOUT=120 */
#include "base/images.h"
#include "base/random.h"
#include "inner/cuda/cuda_input.h"
#include "tests/inner/cuda_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define FOR_TYPES(type)                                                                            \
    for (bpt_value_type type = BPT_F32; type <= BPT_BF16; type = (bpt_value_type)(type + 1))

enum { MAX_CHANNELS = 16 };

typedef struct {
    int64_t n, c, h, w, padded;
} input_case;

/* @return value of a batch as floats [N, C, H, W] */
typedef float (*value_of)(const void *batch, const input_case *p, int64_t n, int64_t c, int64_t y,
                          int64_t x);

static size_t n_values(const input_case *p) {
    return (size_t)(p->n * p->h * p->w * p->padded);
}

static float *expect(const void *batch, const input_case *p, bpt_value_type type, value_of value) {
    float *expected = calloc(n_values(p) + 1, sizeof *expected);
    assert_non_null(expected);
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t c = 0; c < p->c; c++)
            for (int64_t y = 0; y < p->h; y++)
                for (int64_t x = 0; x < p->w; x++)
                    expected[((n * p->h + y) * p->w + x) * p->padded + c] =
                        cuda_rounded(type, value(batch, p, n, c, y, x));
    return expected;
}

static void check(const input_case *p, bpt_value_type type, const void *values,
                  const float *expected) {
    float *found = cuda_download_values(type, values, n_values(p));
    for (size_t i = 0; i < n_values(p); i++)
        if (found[i] != expected[i])
            fail_msg("%s [%d, %d, %d, %d] to %d channels: value %zu is %.9g, not %.9g",
                     type == BPT_BF16 ? "bf16" : "f32", (int)p->n, (int)p->c, (int)p->h, (int)p->w,
                     (int)p->padded, i, (double)found[i], (double)expected[i]);
    free(found);
}

/* @param images NULL: the batch is of floats */
static void take(const input_case *p, bpt_value_type type, const void *given,
                 const bpt_images *images, bpt_cuda_feed *feed, const bpt_cuda_input *in,
                 const float *expected) {
    const bpt_cuda_batch batch = bpt_cuda_input_batch(in, given);
    bpt_cuda_step step = {
        .n_images = images ? (int32_t)images->n : 0,
        .has_moves = images && images->moves,
    };
    void *out = cuda_poisoned(n_values(p) * bpt_value_bytes(type));
    cuda_ok(bpt_cuda_feed_take(feed, &batch, cuda_stream(), &step.batch));
    void *at = cuda_upload(&step, sizeof step);
    cuda_ok(bpt_cuda_input_take(cuda_stream(), in, at, p->padded, type, out));
    check(p, type, out, expected);
    cuda_free(at);
    cuda_free(out);
}

static void check_case(const input_case *p, const void *given, const bpt_images *images,
                       value_of value) {
    const bpt_cuda_input in =
        bpt_cuda_input_of(images != NULL, p->n, (bpt_shape){p->c, p->h, p->w});
    bpt_cuda_feed *feed;
    if (cuda_leaves_out(n_values(p))) return;
    cuda_ok(bpt_cuda_feed_create(in.bytes ? in.bytes : 1, &feed));
    FOR_TYPES(type) {
        float *expected = expect(given, p, type, value);
        const bpt_cuda_batch ahead = bpt_cuda_input_batch(&in, given);
        bpt_cuda_feed_bring(feed, &ahead);
        take(p, type, given, images, feed, &in, expected);
        take(p, type, given, images, feed, &in, expected);
        free(expected);
    }
    bpt_cuda_feed_free(feed);
}

/* ---- floats ---- */

static float float_at(const void *batch, const input_case *p, int64_t n, int64_t c, int64_t y,
                      int64_t x) {
    return ((const float *)batch)[((n * p->c + c) * p->h + y) * p->w + x];
}

static void test_floats(void **state) {
    static const input_case cases[] = {{1, 3, 7, 7, 3},    {2, 3, 5, 10, 4},  {3, 3, 5, 7, 8},
                                       {2, 1, 1, 1, 1},    {1, 16, 3, 3, 16}, {5, 2, 15, 20, 8},
                                       {300, 1, 5, 1, 1},  {2, 10, 7, 1, 12}, {2, 11, 1, 257, 24},
                                       {0, 3, 2, 2, 4},    {3, 4, 1, 1, 4},   {70000, 1, 2, 1, 2},
                                       {2, 3, 700, 600, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const input_case *p = &cases[i];
        float *x = cuda_random(BPT_F32, (size_t)(p->n * p->c * p->h * p->w), 7);
        check_case(p, x, NULL, float_at);
        free(x);
    }
}

/* ---- images ---- */

static bool side_of(bpt_side_move m, int64_t i, int64_t *from) {
    *from = m.first + m.step * i;
    return i >= m.begin && i < m.end;
}

static float image_at(const void *batch, const input_case *p, int64_t n, int64_t c, int64_t y,
                      int64_t x) {
    const bpt_images *images = batch;
    uint8_t pixel = 0;
    if (n >= images->n) return 0.0f;
    const bool there =
        !images->moves || (side_of(images->moves[n].y, y, &y) & side_of(images->moves[n].x, x, &x));
    if (there) pixel = images->pixels[((n * p->c + c) * p->h + y) * p->w + x];
    const volatile float product = (float)pixel * images->scale[c]; /* rounded */
    return product + images->shift[c];
}

/* Mirrored or not, some beside the image, some of it black. */
static bpt_side_move draw_side(bpt_random *r, int64_t side) {
    const int64_t by = (int64_t)bpt_random_below(r, (uint32_t)(2 * side + 1)) - side;
    const bool mirrored = bpt_random_below(r, 2);
    const int64_t first = mirrored ? side - 1 - by : by;
    int64_t begin = mirrored ? -by : -by, end = side - by;
    if (begin < 0) begin = 0;
    if (end > side) end = side;
    if (begin >= end) begin = end = 0;
    return (bpt_side_move){(int32_t)first, mirrored ? -1 : 1, (int32_t)begin, (int32_t)end};
}

/* @param n_there of p->n */
static void check_images(const input_case *p, int64_t n_there, bool moved) {
    const size_t values = (size_t)(n_there * p->c * p->h * p->w);
    uint8_t *pixels = malloc(values + 1); /* no byte behind what is there is read */
    bpt_image_move *moves = calloc((size_t)n_there + 1, sizeof *moves);
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, (uint64_t)n_there);
    float scale[MAX_CHANNELS], shift[MAX_CHANNELS];
    assert_true(pixels && moves);
    for (size_t i = 0; i < values; i++) pixels[i] = (uint8_t)bpt_random_u32(&r);
    for (int64_t i = 0; i < n_there; i++)
        moves[i] = (bpt_image_move){draw_side(&r, p->h), draw_side(&r, p->w)};
    for (int c = 0; c < MAX_CHANNELS; c++) {
        scale[c] = 1.0f / (255.0f * (0.2f + bpt_random_uniform(&r)));
        shift[c] = -3.0f * bpt_random_uniform(&r);
    }
    const bpt_images images = {pixels, moved ? moves : NULL, scale, shift, (uint32_t)n_there};
    check_case(p, &images, &images, image_at);
    free(moves);
    free(pixels);
}

static void test_images(void **state) {
    static const input_case cases[] = {{1, 3, 7, 7, 3},     {2, 3, 5, 10, 4},    {3, 3, 5, 7, 8},
                                       {2, 1, 1, 1, 1},     {1, 16, 3, 3, 16},   {5, 2, 15, 20, 8},
                                       {300, 1, 5, 1, 1},   {2, 11, 1, 257, 24}, {9, 3, 32, 32, 8},
                                       {70000, 1, 2, 1, 2}, {3, 3, 900, 700, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_images(&cases[i], cases[i].n, true);
        check_images(&cases[i], cases[i].n, false);
        check_images(&cases[i], (cases[i].n + 1) / 2, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_images),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
