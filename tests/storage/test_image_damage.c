/* Images that are cut, altered, or lack something: an error with a reason or the image, never a
 * crash, never half an image. ctest: TIMEOUT=120 */
#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "tests/storage/made_images.h"

#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include <cmocka.h>

enum { H = 19, W = 26 };

static made_file file;
static uint8_t pixels[3 * H * W], intact[3 * H * W];
static bpt_image_limits limits = {.bytes = 1 << 20, .pixels = 1 << 16, .side = 1 << 14};

static int set_up(void **state) {
    return bpt_image_decoder_open(&limits, (bpt_image_decoder **)state) == BPT_OK ? 0 : 1;
}

static int tear_down(void **state) {
    bpt_image_decoder_close(*state);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static uint32_t random_word(void) {
    static uint64_t x = 1;
    x = x * UINT64_C(6364136223846793005) + 99;
    return (uint32_t)(x >> 33);
}

/* A small file of one of several kinds. */
enum { N_KINDS = 8 };

static void make(int kind) {
    static uint8_t in[H * W * 4];
    uint8_t tiff[32];
    made_picture(in, H, W, kind == 0 || kind == 6 ? 1 : kind == 3 || kind == 5 ? 4 : 3);
    switch (kind) {
    case 0:
        made_jpeg(&file, in, H, W, TJPF_GRAY, TJSAMP_GRAY, 70, 0);
        break;
    case 1:
        made_jpeg(&file, in, H, W, TJPF_RGB, TJSAMP_420, 80, 0);
        break;
    case 2:
        made_jpeg(&file, in, H, W, TJPF_RGB, TJSAMP_422, 60, TJFLAG_PROGRESSIVE);
        break;
    case 3:
        made_jpeg(&file, in, H, W, TJPF_CMYK, TJSAMP_444, 50, 0);
        break;
    case 4:
        made_png(&file, &(made_png_kind){.colour_type = PNG_COLOR_TYPE_RGB, .bits = 8}, in, 3 * W,
                 H, W);
        break;
    case 5:
        made_png(&file,
                 &(made_png_kind){
                     .colour_type = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8, .interlaced = true},
                 in, 4 * W, H, W);
        break;
    case 6: {
        const made_png_kind grey = {.colour_type = PNG_COLOR_TYPE_GRAY, .bits = 4};
        made_png(&file, &grey, in, W / 2, H, W);
        break;
    }
    default: {
        static uint8_t palette[16 * 3], alpha[16];
        made_noise(palette, sizeof palette, 5);
        const made_png_kind kinds = {.colour_type = PNG_COLOR_TYPE_PALETTE,
                                     .bits = 4,
                                     .palette = palette,
                                     .n_palette = 16,
                                     .palette_alpha = alpha};
        made_png(&file, &kinds, in, W / 2, H, W);
    }
    }
    if (kind % 2) made_add_exif(&file, tiff, made_exif(tiff, 1 + (uint32_t)kind, true));
}

/* Looks and decodes, in memory of exactly the file's size, so that a sanitizer sees what reads
 * behind it. What comes may have any size up to that of @c pixels; else only the look is had. */
static bpt_status try_bytes(bpt_image_decoder *decoder, const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    bpt_image_info info;
    bpt_status status = bpt_image_look("a.file", copy, size, &limits, &info);
    if (status == BPT_OK) {
        bpt_image_wish wish = {.C = info.C,
                               .frame = bpt_image_fit_frame(&(bpt_image_fit){0}, info.H, info.W)};
        if ((size_t)info.H * info.W > H * W)
            wish.frame = bpt_image_fit_frame(&(bpt_image_fit){.H = 5, .W = 7}, info.H, info.W);
        status = bpt_image_decode(decoder, "a.file", copy, size, &wish, pixels);
    }
    free(copy);
    if (status != BPT_OK) {
        assert_int_equal(status, BPT_EDATA);
        assert_non_null(strstr(bpt_error_last()->text, "a.file"));
    }
    return status;
}

static void every_cut_is_an_error(void **state) {
    for (int kind = 0; kind < N_KINDS; kind++) {
        make(kind);
        assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
        for (size_t size = 0; size < file.size; size++) {
            if (try_bytes(*state, file.data, size) == BPT_OK)
                print_error("kind %d of %zu bytes: %zu of them pass\n", kind, file.size, size);
            assert_int_equal(try_bytes(*state, file.data, size), BPT_EDATA);
        }
    }
}

static void every_altered_byte_is_survived(void **state) {
    for (int kind = 0; kind < N_KINDS; kind++) {
        make(kind);
        for (size_t at = 0; at < file.size; at++) {
            const uint8_t was = file.data[at];
            const uint8_t values[] = {was ^ 1, was ^ 0x80, 0, 0xFF, (uint8_t)random_word()};
            for (size_t i = 0; i < sizeof values; i++) {
                file.data[at] = values[i];
                try_bytes(*state, file.data, file.size);
            }
            file.data[at] = was;
        }
        assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
    }
}

/* A PNG has checksums: no altered byte of its pixels passes. */
static void altered_png_pixels_are_an_error(void **state) {
    make(4);
    size_t data = 8;
    while (memcmp(file.data + data, "IDAT", 4) != 0) data++;
    for (size_t at = data + 4; at + 12 < file.size; at++) {
        file.data[at] ^= 0x10;
        assert_int_equal(try_bytes(*state, file.data, file.size), BPT_EDATA);
        file.data[at] ^= 0x10;
    }
}

static void random_changes_are_survived(void **state) {
    for (int i = 0; i < 4000; i++) {
        make(i % N_KINDS);
        for (uint32_t n = 1 + random_word() % 6; n > 0; n--) {
            const size_t at = random_word() % file.size;
            switch (random_word() % 4) {
            case 0:
                file.data[at] = (uint8_t)random_word();
                break;
            case 1:
                made_remove(&file, at, random_word() % (file.size - at));
                break;
            case 2:
                made_insert(&file, at, file.data + at / 2, random_word() % (at / 2 + 1));
                break;
            default:
                file.data[at] = 0xFF;
            }
            if (file.size == 0) break;
        }
        try_bytes(*state, file.data, file.size);
    }
}

static void expect_damaged(bpt_image_decoder *decoder, const char *text) {
    assert_int_equal(try_bytes(decoder, file.data, file.size), BPT_EDATA);
    if (!strstr(bpt_error_last()->text, text)) print_error("%s\n", bpt_error_last()->text);
    assert_non_null(strstr(bpt_error_last()->text, text));
    assert_true(strlen(bpt_error_last()->hint) > 0);
}

/* Half of the pixels, then an end as it should be. */
static void early_end_is_an_error(void **state) {
    make(1);
    const size_t scan = made_find_marker(&file, 0xDA);
    made_remove(&file, scan + (file.size - scan) / 2, (file.size - scan) / 2 - 2);
    assert_int_equal(file.data[file.size - 1], 0xD9);
    expect_damaged(*state, "damaged JPEG");
    make(1);
    file.size -= 2;
    expect_damaged(*state, "cut short");
    make(4);
    file.size -= 20;
    expect_damaged(*state, "cut short");
}

/* What one image leaves in libjpeg must not help out where the next one lacks it. */
static void tables_of_an_earlier_image_are_not_used(void **state) {
    make(1);
    assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
    const size_t table = made_find_marker(&file, 0xDB);
    made_remove(&file, table, 2 + ((size_t)file.data[table + 2] << 8 | file.data[table + 3]));
    expect_damaged(*state, "uantization table");
}

static void pixels_that_are_whole_are_had(void **state) {
    for (int kind = 0; kind < 4; kind++) {
        make(kind);
        memset(pixels, 0, sizeof pixels);
        assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
        memcpy(intact, pixels, sizeof intact);
        const size_t end = file.size - 2;
        made_insert(&file, end, "\0\0\0\1\2\3", 6); /* rubbish before the end */
        made_insert(&file, file.size, "behind \xFF\xDD end", 13);
        memset(pixels, 0, sizeof pixels);
        assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
        assert_memory_equal(pixels, intact, sizeof intact);
        made_insert(&file, end, "\xFF\xDD\0\4\0\0", 6); /* it might stand for pixels */
        expect_damaged(*state, "extraneous bytes");
    }
}

static void wrong_range_of_a_sequential_scan_is_mended(void **state) {
    make(1);
    assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
    memcpy(intact, pixels, sizeof intact);
    const size_t range = made_find_marker(&file, 0xDA) + 5 + 2 * 3;
    assert_memory_equal(file.data + range, "\0\x3F\0", 3);
    memset(file.data + range, 0, 3);
    memset(pixels, 0, sizeof pixels);
    assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
    assert_memory_equal(pixels, intact, sizeof intact);
    file.size -= 40;
    expect_damaged(*state, "cut short"); /* and hides nothing */
}

/* More scans than any encoder makes: each costs the time of a whole image. */
static void endless_scans_are_an_error(void **state) {
    make(2);
    const size_t scan = made_find_marker(&file, 0xDA);
    size_t next = scan + 2;
    while (file.data[next] != 0xFF || file.data[next + 1] == 0) next++;
    static uint8_t one[4096];
    const size_t n = next - scan;
    memcpy(one, file.data + scan, n);
    for (int i = 0; i < 600; i++) made_insert(&file, next, one, n);
    assert_int_equal(try_bytes(*state, file.data, file.size), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "more than 500 scans"));
}

/* Decodes a part of an image of 2048 x 4096 pixels, which goes into the buffer. */
static bpt_status try_large(const uint8_t *data, size_t size) {
    bpt_image_decoder *decoder;
    assert_int_equal(bpt_image_decoder_open(NULL, &decoder), BPT_OK);
    const bpt_image_fit fit = {.H = 1, .W = 1};
    const bpt_image_wish wish = {.frame = bpt_image_fit_frame(&fit, 2048, 4096), .C = 1};
    const bpt_status status = bpt_image_decode(decoder, "a", data, size, &wish, pixels);
    bpt_image_decoder_close(decoder);
    return status;
}

/* Likewise of a large image: far fewer scans are too many. */
static void scans_of_large_images_are_counted(void **state) {
    (void)state;
    enum { SIDE_H = 2048, SIDE_W = 4096 };
    uint8_t *in = calloc(SIDE_H, SIDE_W);
    assert_non_null(in);
    made_jpeg(&file, in, SIDE_H, SIDE_W, TJPF_GRAY, TJSAMP_GRAY, 50, TJFLAG_PROGRESSIVE);
    free(in);
    size_t scan = file.size - 2;
    while (file.data[scan] != 0xFF || file.data[scan + 1] != 0xDA) scan--;
    uint8_t last[4096];
    const size_t n = file.size - 2 - scan;
    assert_true(n <= sizeof last);
    memcpy(last, file.data + scan, n);
    assert_int_equal(try_large(file.data, file.size), BPT_OK);
    for (int i = 0; i < 256; i++) made_insert(&file, scan, last, n);
    assert_int_equal(try_large(file.data, file.size), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "scans of 2048 x 4096 pixels"));
}

/* Behind the end of an image there may be anything, such as a film. */
static void bytes_behind_an_image_are_no_scans(void **state) {
    (void)state;
    enum { SIDE_H = 2048, SIDE_W = 4096 };
    uint8_t *in = calloc(SIDE_H, SIDE_W);
    assert_non_null(in);
    for (int progressive = 0; progressive < 2; progressive++) {
        made_jpeg(&file, in, SIDE_H, SIDE_W, TJPF_GRAY, TJSAMP_GRAY, 50,
                  progressive ? TJFLAG_PROGRESSIVE : 0);
        for (int i = 0; i < 300; i++) made_insert(&file, file.size, "\xFF\xDA\0\x03", 4);
        assert_int_equal(try_large(file.data, file.size), BPT_OK);
    }
    free(in);
}

/* Text that unpacks to a thousand times its size is not unpacked. */
static void packed_text_is_skipped(void **state) {
    make(4);
    for (int i = 0; i < 50; i++) made_add_chunk(&file, "zTXt", "k\0\0\x78\x9C\x4B\4\0\0b\0b", 12);
    made_add_chunk(&file, "iCCP", "broken", 6);
    made_add_chunk(&file, "gAMA", "\0\0\0\0", 4);
    assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
}

/* libpng would leave it out, and what is transparent would get a colour. */
static void altered_transparency_is_an_error(void **state) {
    make(7);
    uint8_t *at = memmem(file.data, file.size, "tRNS", 4);
    assert_non_null(at);
    at[4 + 16] ^= 1; /* its checksum */
    expect_damaged(*state, "transparency fails its checksum");
}

static void warm_decoder_does_not_allocate(void **state) {
    for (int round = 0; round < 2; round++)
        for (int kind = 0; kind < N_KINDS; kind++) {
            make(kind);
            const uint64_t before = bpt_memory_allocations();
            assert_int_equal(try_bytes(*state, file.data, file.size), BPT_OK);
            if (round) assert_int_equal(bpt_memory_allocations(), before);
        }
}

static void failed_allocations_leave_nothing(void **state) {
    (void)state;
    bpt_image_info info;
    make(1);
    assert_int_equal(bpt_image_look("a", file.data, file.size, NULL, &info), BPT_OK);
    const bpt_image_fit fit = {.H = 15, .W = 11};
    const bpt_image_wish wish = {.frame = bpt_image_fit_frame(&fit, info.H, info.W), .C = 3};
    for (int64_t n = 0;; n++) {
        bpt_image_decoder *decoder = NULL;
        bpt_memory_fail_at(n);
        bpt_status status = bpt_image_decoder_open(NULL, &decoder);
        if (status == BPT_OK)
            status = bpt_image_decode(decoder, "a", file.data, file.size, &wish, pixels);
        bpt_memory_fail_at(-1);
        bpt_image_decoder_close(decoder);
        assert_int_equal(bpt_memory_live(), 0);
        if (status == BPT_OK) {
            assert_int_equal(n, 11); /* decoder, 2 parts, 2 images, 6 tables */
            return;
        }
        assert_int_equal(status, BPT_ENOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_cut_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_altered_byte_is_survived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(altered_png_pixels_are_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_changes_are_survived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(early_end_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_of_an_earlier_image_are_not_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pixels_that_are_whole_are_had, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_range_of_a_sequential_scan_is_mended, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(endless_scans_are_an_error, set_up, tear_down),
        cmocka_unit_test(scans_of_large_images_are_counted),
        cmocka_unit_test(bytes_behind_an_image_are_no_scans),
        cmocka_unit_test_setup_teardown(packed_text_is_skipped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(altered_transparency_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(warm_decoder_does_not_allocate, set_up, tear_down),
        cmocka_unit_test(failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
