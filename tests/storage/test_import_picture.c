/* From files to records: what the stream makes of them is what the decoder makes of each, for any
 * number of threads. ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "storage/images/image_encoder.h"
#include "storage/images/resize.h"
#include "storage/importers/import_stream.h"
#include "tests/storage/made_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 24 };

static bpt_image_file files[N];
static const bpt_image_limits *no_limits;

/* Images of many sizes, JPEG and PNG, grey and colour. */
static void make_images(void) {
    bpt_image_encoder *encoder;
    assert_int_equal(bpt_image_encoder_open(&encoder), BPT_OK);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t C = i % 3 == 1 ? 1 : 3, H = 20 + 13 * i, W = 300 - 11 * i;
        uint8_t *pixels = malloc((size_t)C * H * W);
        assert_non_null(pixels);
        for (size_t p = 0; p < (size_t)C * H * W; p++)
            pixels[p] = (uint8_t)(p / W * 3 + p % W * (i + 1) / 4);
        assert_int_equal(
            i % 2 ? bpt_image_encode_png(encoder, pixels, C, H, W, &files[i])
                  : bpt_image_encode_jpeg(encoder, pixels, C, H, W, 90, BPT_JPEG_420, &files[i]),
            BPT_OK);
        free(pixels);
        char name[32];
        snprintf(name, sizeof name, "in/c%u/%02u.any", i % 4, i);
        made_bytes(name, files[i].data, files[i].size);
    }
    bpt_image_encoder_close(encoder);
}

static void free_images(void) {
    for (uint32_t i = 0; i < N; i++) {
        bpt_free(files[i].data);
        files[i] = (bpt_image_file){0};
    }
}

static const struct {
    bpt_picture_fit fit;
    uint32_t H, W;
} cases[] = {
    {{.size = {.H = 32, .W = 48}, .C = 3}, 32, 48},
    {{.size = {.H = 300, .W = 10}, .C = 1}, 300, 10},
    {{.size = {.short_side = 40, .H = 32, .W = 24}, .C = 3}, 32, 24},
    {{.size = {.short_side = 7, .H = 7, .W = 7}}, 7, 7}, /* as is: the first is in colour */
};

static void check_record(bpt_image_decoder *decoder, size_t c, uint32_t i,
                         const bpt_import_record *record) {
    bpt_image_info info;
    assert_int_equal(bpt_image_look("x", files[i].data, files[i].size, no_limits, &info), BPT_OK);
    const bpt_image_wish wish = {.frame = bpt_image_fit_frame(&cases[c].fit.size, info.H, info.W),
                                 .C = record->C};
    static uint8_t pixels[3 * 512 * 512];
    assert_int_equal(bpt_image_decode(decoder, "x", files[i].data, files[i].size, &wish, pixels),
                     BPT_OK);
    assert_int_equal(record->C, cases[c].fit.C ? cases[c].fit.C : 3);
    assert_int_equal(record->H, cases[c].H);
    assert_int_equal(record->W, cases[c].W);
    assert_memory_equal(record->pixels, pixels, (size_t)record->C * record->H * record->W);
}

static void records_are_what_the_decoder_makes(void **state) {
    (void)state;
    make_images();
    bpt_image_decoder *decoder;
    assert_int_equal(bpt_image_decoder_open(NULL, &decoder), BPT_OK);
    const bpt_importer *folder = bpt_importer_find("folder");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned threads = 1; threads <= 4; threads += 3) {
            char *paths[] = {made_path("in")};
            bpt_import_plan plan;
            void *import;
            bpt_import_stream *stream;
            assert_int_equal(
                folder->open(&(bpt_import_source){.files = paths, .n_files = 1}, &plan, &import),
                BPT_OK);
            assert_int_equal(plan.count, N);
            assert_int_equal(bpt_import_stream_open(folder, import, &plan,
                                                    &(bpt_import_stream_options){
                                                        .fit = cases[c].fit, .n_threads = threads},
                                                    &stream),
                             BPT_OK);
            for (uint32_t k = 0; k < N; k++) {
                bpt_import_record record;
                const uint32_t class = k / (N / 4), i = k % (N / 4) * 4 + class;
                assert_int_equal(bpt_import_stream_next(stream, &record), BPT_OK);
                assert_null(record.error);
                assert_int_equal(record.label, class);
                check_record(decoder, c, i, &record);
            }
            bpt_import_stream_close(stream);
            folder->close(import);
        }
    bpt_image_decoder_close(decoder);
    free_images();
}

/* Pixels that come as such: sizes change by the same filter. */
static void pixels_are_resized_too(void **state) {
    (void)state;
    enum { H = 20, W = 30, h = 9, w = 41 };
    uint8_t pixels[3 * H * W], expected[3 * h * w];
    for (size_t p = 0; p < sizeof pixels; p++) pixels[p] = (uint8_t)(p * 17);
    const bpt_import_image image = {.bytes = pixels, .size = sizeof pixels, .C = 3, .H = H, .W = W};
    const bpt_picture_fit fit = {.size = {.H = h, .W = w}};
    const bpt_image_frame frame = bpt_image_fit_frame(&fit.size, H, W);
    bpt_image_resizer *resizer;
    bpt__picture_maker *maker;
    bpt__picture picture = {.C = 0};
    assert_int_equal(bpt_image_resizer_open(&resizer), BPT_OK);
    assert_int_equal(bpt__picture_maker_create(&maker), BPT_OK);
    assert_int_equal(bpt_image_resize(resizer, &frame, pixels, 3, H, W, expected), BPT_OK);
    assert_int_equal(bpt__picture_make(maker, &fit, "x", &image, &picture), BPT_OK);
    assert_int_equal(picture.H, h);
    assert_memory_equal(picture.pixels.bytes, expected, sizeof expected);
    const bpt_import_image four = {.bytes = pixels, .size = 4 * H, .C = 4, .H = H, .W = 1};
    assert_int_equal(bpt__picture_make(maker, &(bpt_picture_fit){.C = 3}, "x", &four, &picture),
                     BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "x has 4 channels"));
    const bpt_import_image wide = {.bytes = pixels, .C = 1, .H = 1, .W = 20000};
    assert_int_equal(bpt__picture_make(maker, &fit, "x", &wide, &picture), BPT_EDATA);
    bpt_free(picture.pixels.bytes);
    bpt__picture_maker_free(maker);
    bpt_image_resizer_close(resizer);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, made_files_set_up, made_files_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(records_are_what_the_decoder_makes),
        TEST(pixels_are_resized_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
