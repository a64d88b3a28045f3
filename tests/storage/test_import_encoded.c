/* From files to encoded records: what may stay is kept byte for byte, the rest is encoded, for any
 * number of threads. ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "storage/images/image_encoder.h"
#include "storage/importers/import_stream.h"
#include "tests/storage/made_files.h"
#include "tests/storage/made_images.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include <cmocka.h>

enum { MAX_FILES = 16, MAX_SIDE = 128, QUALITY = 90 };

static made_file files[MAX_FILES];
static uint32_t n_files;

static made_file *add(const char *name) {
    made_file *file = &files[n_files++];
    made_bytes(name, file->data, file->size);
    return file;
}

/* A JPEG of a picture. */
static void make(const char *name, uint32_t H, uint32_t W, int format, int chroma,
                 uint32_t orientation, int flags) {
    static uint8_t pixels[MAX_SIDE * MAX_SIDE * 4], tiff[32];
    made_picture(pixels, H, W, (uint32_t)tjPixelSize[format]);
    made_jpeg(&files[n_files], pixels, H, W, format, chroma, 85, flags);
    if (orientation) made_add_exif(&files[n_files], tiff, made_exif(tiff, orientation, true));
    add(name);
}

static void make_png(const char *name, uint32_t H, uint32_t W) {
    static uint8_t pixels[MAX_SIDE * MAX_SIDE * 3];
    made_picture(pixels, H, W, 3);
    made_png(&files[n_files], &(made_png_kind){.colour_type = 2, .bits = 8}, pixels, 3 * W, H, W);
    add(name);
}

static const struct {
    const char *name;
    bool kept_as_is, kept_grey, kept_short; /* without options, --channels 1, --short-side 60 */
    uint32_t C;
} wanted[] = {{"a 4:2:0", true, false, false, 3},        {"b progressive", true, false, false, 3},
              {"c grey", true, true, false, 1},          {"d turned", false, false, false, 3},
              {"e upright", true, false, false, 3},      {"f CMYK", false, false, false, 3},
              {"g PNG", false, false, false, 3},         {"h of that size", true, false, true, 3},
              {"i grey, turned", false, false, false, 1}};
enum { N_WANTED = sizeof wanted / sizeof *wanted };

static void make_images(void) {
    n_files = 0;
    make("in/x/a.jpg", 90, 100, TJPF_RGB, TJSAMP_420, 0, 0);
    make("in/x/b.jpg", 70, 120, TJPF_RGB, TJSAMP_444, 0, TJFLAG_PROGRESSIVE);
    make("in/x/c.jpg", 50, 41, TJPF_GRAY, TJSAMP_GRAY, 0, 0);
    make("in/x/d.jpg", 40, 70, TJPF_RGB, TJSAMP_420, 6, 0);
    make("in/x/e.jpg", 33, 31, TJPF_RGB, TJSAMP_422, 1, 0);
    make("in/x/f.jpg", 48, 30, TJPF_CMYK, TJSAMP_444, 0, 0);
    make_png("in/x/g.png", 64, 80);
    make("in/x/h.jpg", 60, 75, TJPF_RGB, TJSAMP_420, 0, 0);
    make("in/x/i.jpg", 62, 63, TJPF_GRAY, TJSAMP_GRAY, 3, 0);
    assert_int_equal(n_files, N_WANTED);
}

static void decode(bpt_image_decoder *decoder, const void *data, size_t size,
                   const bpt_image_fit *fit, uint32_t C, bpt_image_info *info, uint8_t *pixels) {
    assert_int_equal(bpt_image_look("x", data, size, NULL, info), BPT_OK);
    const bpt_image_wish wish = {.frame = bpt_image_fit_frame(fit, info->H, info->W), .C = C};
    assert_int_equal(bpt_image_decode(decoder, "x", data, size, &wish, pixels), BPT_OK);
    info->H = wish.frame.H;
    info->W = wish.frame.W;
}

/* The record's pixels are those of its file, and near those of the image. */
static void check_record(bpt_image_decoder *decoder, uint32_t i, const bpt_picture_fit *fit,
                         bool kept, const bpt_import_record *record) {
    static uint8_t is[3 * MAX_SIDE * MAX_SIDE], was[sizeof is];
    const bpt_image_fit as_is = {0};
    bpt_image_info info, source;
    const bpt_record *r = &record->file;
    assert_null(record->pixels);
    assert_int_equal(kept,
                     r->size == files[i].size && memcmp(r->data, files[i].data, r->size) == 0);
    decode(decoder, r->data, r->size, &as_is, record->C, &info, is);
    decode(decoder, files[i].data, files[i].size, &fit->size, record->C, &source, was);
    assert_int_equal(info.format, BPT_IMAGE_JPEG);
    assert_int_equal(info.orientation, 1);
    assert_int_equal(info.colour, (fit->C ? fit->C : wanted[i].C) == 1 || wanted[i].C == 1
                                      ? BPT_IMAGE_GREY
                                      : BPT_IMAGE_RGB);
    assert_int_equal(r->H, source.H);
    assert_int_equal(r->W, source.W);
    assert_int_equal(info.H, source.H);
    assert_int_equal(info.W, source.W);
    bpt_record measured = *r;
    bpt_record_measure(&measured, is, record->C);
    assert_memory_equal(&measured, r, sizeof measured);
    double error = 0;
    const size_t n = (size_t)record->C * r->H * r->W;
    for (size_t p = 0; p < n; p++) error += pow((double)is[p] - was[p], 2);
    /* with half of the colours gone, a picture with sharp ones is off by up to 13 */
    assert_true(sqrt(error / (double)n) < (kept ? 1e-9 : 16));
}

static void import_all(bpt_image_decoder *decoder, const bpt_picture_fit *fit, unsigned threads,
                       const bool *kept, uint32_t C) {
    const bpt_importer *folder = bpt_importer_find("folder");
    char *paths[] = {made_path("in")};
    bpt_import_plan plan;
    void *import;
    bpt_import_stream *stream;
    const bpt_import_stream_options options = {
        .fit = *fit, .C = fit->C, .n_threads = threads, .quality = QUALITY};
    const bpt_import_source source = {.files = paths, .n_files = 1};
    assert_int_equal(folder->open(&source, &plan, &import), BPT_OK);
    assert_int_equal(bpt_import_stream_open(folder, import, &plan, &options, &stream), BPT_OK);
    for (uint32_t i = 0; i < n_files; i++) {
        bpt_import_record record;
        assert_int_equal(bpt_import_stream_next(stream, &record), BPT_OK);
        assert_null(record.error);
        assert_int_equal(record.C, C);
        check_record(decoder, i, fit, kept[i], &record);
    }
    bpt_import_stream_close(stream);
    folder->close(import);
}

static void keeps_what_may_stay(void **state) {
    (void)state;
    bool as_is[N_WANTED], grey[N_WANTED], shorter[N_WANTED];
    for (uint32_t i = 0; i < N_WANTED; i++) {
        as_is[i] = wanted[i].kept_as_is;
        grey[i] = wanted[i].kept_grey;
        shorter[i] = wanted[i].kept_short;
    }
    make_images();
    bpt_image_decoder *decoder;
    assert_int_equal(bpt_image_decoder_open(NULL, &decoder), BPT_OK);
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        import_all(decoder, &(bpt_picture_fit){0}, threads, as_is, 3);
        import_all(decoder, &(bpt_picture_fit){.C = 3}, threads, as_is, 3);
        import_all(decoder, &(bpt_picture_fit){.C = 1}, threads, grey, 1);
        import_all(decoder, &(bpt_picture_fit){.size = {.short_side = 60}}, threads, shorter, 3);
    }
    bpt_image_decoder_close(decoder);
}

/* @return how the stream ends, at which item */
static bpt_status first_failure(uint32_t C, uint64_t *at) {
    const bpt_importer *folder = bpt_importer_find("folder");
    char *paths[] = {made_path("in")};
    bpt_import_plan plan;
    void *import;
    bpt_import_stream *stream;
    const bpt_import_stream_options options = {.C = C, .n_threads = 2, .quality = QUALITY};
    const bpt_import_source source = {.files = paths, .n_files = 1};
    assert_int_equal(folder->open(&source, &plan, &import), BPT_OK);
    assert_int_equal(bpt_import_stream_open(folder, import, &plan, &options, &stream), BPT_OK);
    bpt_status status = BPT_OK;
    for (*at = 0; *at < plan.count && status == BPT_OK; ++*at) {
        bpt_import_record record;
        status = bpt_import_stream_next(stream, &record);
        if (status == BPT_OK && record.error) status = record.error->status;
    }
    bpt_import_stream_close(stream);
    folder->close(import);
    return status;
}

static void refuses_what_is_wrong(void **state) {
    (void)state;
    uint64_t at;
    n_files = 0;
    make("in/x/a.jpg", 50, 41, TJPF_GRAY, TJSAMP_GRAY, 0, 0);
    make("in/x/b.jpg", 50, 41, TJPF_RGB, TJSAMP_420, 0, 0);
    assert_int_equal(first_failure(0, &at), BPT_EDATA); /* colour after grey */
    assert_int_equal(at, 2);
    assert_non_null(strstr(bpt_error_last()->text, "b.jpg has 3 channels"));
    assert_int_equal(first_failure(3, &at), BPT_OK);
    made_bytes("in/x/b.jpg", files[1].data, files[1].size - 300); /* cut, and would be kept */
    assert_int_equal(first_failure(3, &at), BPT_EDATA);
    assert_int_equal(at, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_what_may_stay, made_files_set_up,
                                        made_files_tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_is_wrong, made_files_set_up,
                                        made_files_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
