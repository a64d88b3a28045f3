/* Images written and read again. */
#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "storage/images/image_encoder.h"
#include "tests/storage/made_images.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_H = 61, MAX_W = 83, MAX_N = 3 * MAX_H * MAX_W };

static uint8_t planes[MAX_N], pixels[MAX_N];

typedef struct tools {
    bpt_image_encoder *encoder;
    bpt_image_decoder *decoder;
    bpt_image_file file;
} tools;

static int set_up(void **state) {
    static tools t;
    t = (tools){0};
    *state = &t;
    return bpt_image_encoder_open(&t.encoder) == BPT_OK &&
                   bpt_image_decoder_open(NULL, &t.decoder) == BPT_OK
               ? 0
               : 1;
}

static int tear_down(void **state) {
    tools *t = *state;
    bpt_image_encoder_close(t->encoder);
    bpt_image_decoder_close(t->decoder);
    bpt_free(t->file.data);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static void fill_planes(uint32_t C, uint32_t H, uint32_t W) {
    static uint8_t packed[MAX_N];
    made_picture(packed, H, W, C);
    for (size_t i = 0; i < (size_t)H * W; i++)
        for (size_t c = 0; c < C; c++) planes[c * H * W + i] = packed[i * C + c];
}

static bpt_image_info read_again(tools *t) {
    bpt_image_info info;
    assert_int_equal(bpt_image_look("made", t->file.data, t->file.size, NULL, &info), BPT_OK);
    const bpt_image_wish wish = {.C = info.C,
                                 .frame = bpt_image_fit_frame(&(bpt_image_fit){0}, info.H, info.W)};
    memset(pixels, 0xA5, sizeof pixels);
    assert_int_equal(
        bpt_image_decode(t->decoder, "made", t->file.data, t->file.size, &wish, pixels), BPT_OK);
    return info;
}

static const uint32_t shapes[][3] = {{1, 1, 1},   {3, 1, 1},   {1, 1, 83}, {3, 61, 1},
                                     {1, 61, 83}, {3, 61, 83}, {3, 16, 16}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void png_comes_back_as_it_was(void **state) {
    tools *t = *state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        const uint32_t C = shapes[i][0], H = shapes[i][1], W = shapes[i][2];
        fill_planes(C, H, W);
        assert_int_equal(bpt_image_encode_png(t->encoder, planes, C, H, W, &t->file), BPT_OK);
        const bpt_image_info info = read_again(t);
        assert_int_equal(info.format, BPT_IMAGE_PNG);
        assert_true(info.C == C && info.H == H && info.W == W && !info.alpha);
        assert_memory_equal(pixels, planes, (size_t)C * H * W);
    }
}

static void jpeg_of_best_quality_is_close(void **state) {
    tools *t = *state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        const uint32_t C = shapes[i][0], H = shapes[i][1], W = shapes[i][2];
        fill_planes(C, H, W);
        assert_int_equal(
            bpt_image_encode_jpeg(t->encoder, planes, C, H, W, 100, BPT_JPEG_444, &t->file),
            BPT_OK);
        const bpt_image_info info = read_again(t);
        assert_int_equal(info.format, BPT_IMAGE_JPEG);
        assert_true(info.C == C && info.H == H && info.W == W && !info.progressive);
        for (size_t k = 0; k < (size_t)C * H * W; k++) assert_true(abs(pixels[k] - planes[k]) <= 4);
    }
}

/* @return mean of the squares of what an encoding changes */
static double error_of(tools *t, int quality, bpt_jpeg_chroma chroma) {
    fill_planes(3, MAX_H, MAX_W);
    assert_int_equal(
        bpt_image_encode_jpeg(t->encoder, planes, 3, MAX_H, MAX_W, quality, chroma, &t->file),
        BPT_OK);
    read_again(t);
    double sum = 0;
    for (size_t i = 0; i < MAX_N; i++) {
        const double d = (double)pixels[i] - planes[i];
        sum += d * d;
    }
    return sum / MAX_N;
}

static void quality_and_chroma_count(void **state) {
    tools *t = *state;
    const double best = error_of(t, 95, BPT_JPEG_444);
    const size_t best_size = t->file.size;
    const double fewer_colours = error_of(t, 95, BPT_JPEG_420);
    assert_true(fewer_colours > best && t->file.size < best_size);
    const double worse = error_of(t, 30, BPT_JPEG_444);
    assert_true(worse > best && t->file.size < best_size);
}

static void what_cannot_be_written_is_refused(void **state) {
    tools *t = *state;
    t->file.size = 7;
    static const uint32_t wrong[][3] = {{2, 4, 4}, {0, 4, 4},     {4, 4, 4},    {1, 0, 4},
                                        {1, 4, 0}, {1, 16385, 1}, {1, 1, 16385}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const uint32_t *w = wrong[i];
        assert_int_equal(bpt_image_encode_png(t->encoder, planes, w[0], w[1], w[2], &t->file),
                         BPT_EUSAGE);
        assert_int_equal(
            bpt_image_encode_jpeg(t->encoder, planes, w[0], w[1], w[2], 90, BPT_JPEG_420, &t->file),
            BPT_EUSAGE);
    }
    assert_int_equal(t->file.size, 0);
    for (int quality = 0; quality <= 101; quality += 101)
        assert_int_equal(
            bpt_image_encode_jpeg(t->encoder, planes, 1, 4, 4, quality, BPT_JPEG_420, &t->file),
            BPT_EUSAGE);
}

static void warm_encoder_does_not_allocate(void **state) {
    tools *t = *state;
    fill_planes(3, MAX_H, MAX_W);
    uint64_t before = 0;
    for (int round = 0; round < 2; round++) {
        before = bpt_memory_allocations();
        assert_int_equal(bpt_image_encode_png(t->encoder, planes, 3, MAX_H, MAX_W, &t->file),
                         BPT_OK);
        assert_int_equal(
            bpt_image_encode_jpeg(t->encoder, planes, 3, MAX_H, MAX_W, 90, BPT_JPEG_444, &t->file),
            BPT_OK);
    }
    assert_int_equal(bpt_memory_allocations(), before);
}

static void failed_allocations_leave_nothing(void **state) {
    (void)state;
    fill_planes(3, 16, 16);
    for (int png = 0; png < 2; png++)
        for (int64_t n = 0;; n++) {
            bpt_image_encoder *encoder = NULL;
            bpt_image_file file = {0};
            bpt_memory_fail_at(n);
            bpt_status status = bpt_image_encoder_open(&encoder);
            if (status == BPT_OK)
                status = png ? bpt_image_encode_png(encoder, planes, 3, 16, 16, &file)
                             : bpt_image_encode_jpeg(encoder, planes, 3, 16, 16, 90, BPT_JPEG_420,
                                                     &file);
            bpt_memory_fail_at(-1);
            bpt_image_encoder_close(encoder);
            assert_int_equal(status == BPT_OK, file.size > 0);
            bpt_free(file.data);
            assert_int_equal(bpt_memory_live(), 0);
            if (status == BPT_OK) {
                assert_true(n >= 3); /* the encoder, its pixels, the file */
                break;
            }
            assert_int_equal(status, BPT_ENOMEM);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(png_comes_back_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jpeg_of_best_quality_is_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quality_and_chroma_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(warm_encoder_does_not_allocate, set_up, tear_down),
        cmocka_unit_test(failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
