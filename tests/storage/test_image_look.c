/* Headers of images, byte by byte: each that makes no sense is refused, and for what is wrong with
 * it. */
#include "base/memory.h"
#include "storage/images/exif.h"
#include "storage/images/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

/* Looks at a copy that ends where its memory does. */
static bpt_status look(const uint8_t *data, size_t size, bpt_image_info *info) {
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, data, size);
    const bpt_status status = bpt_image_look("a.file", copy, size, NULL, info);
    free(copy);
    return status;
}

static void refuse(const uint8_t *data, size_t size, const char *says) {
    bpt_image_info info;
    assert_int_equal(look(data, size, &info), BPT_EDATA);
    if (!strstr(bpt_error_last()->text, says)) fail_msg("%s: %s", says, bpt_error_last()->text);
}

/* ---- PNG ---- */

enum {
    IHDR = 8,
    BODY = IHDR + 8,
    WIDTH = BODY,
    HEIGHT = BODY + 4,
    BITS = BODY + 8,
    SUM = BODY + 13
};

/* Grey, 3 wide, 2 high. */
static const uint8_t png[SUM + 4] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 13, 'I',
                                     'H',  'D', 'R', 0,   0,    0,    3,    0,    0, 0, 2, 8};

static void seal_png(uint8_t *bytes) {
    const uLong sum = crc32(0, bytes + IHDR + 4, 4 + 13);
    for (int i = 0; i < 4; i++) bytes[SUM + i] = (uint8_t)(sum >> 8 * (3 - i));
}

static void png_headers(void **state) {
    (void)state;
    uint8_t bytes[sizeof png];
    bpt_image_info info;
    memcpy(bytes, png, sizeof png);
    seal_png(bytes);
    assert_int_equal(look(bytes, sizeof bytes, &info), BPT_OK);
    assert_int_equal(info.W, 3);
    assert_int_equal(info.H, 2);
    bytes[SUM] ^= 1;
    refuse(bytes, sizeof bytes, "its header fails its checksum");
    bytes[SUM] ^= 1;
    for (size_t cut = IHDR; cut < sizeof bytes; cut++)
        refuse(bytes, cut, "is cut short within its header");
    /* bits, kind of colour, compression, filter, interlacing: one that there is not */
    static const uint8_t wrong[] = {3, 1, 1, 1, 2};
    for (size_t i = 0; i < sizeof wrong; i++) {
        memcpy(bytes, png, sizeof png);
        bytes[BITS + i] = wrong[i];
        seal_png(bytes);
        refuse(bytes, sizeof bytes, "its header makes no sense");
    }
    memcpy(bytes, png, sizeof png);
    bytes[WIDTH + 3] = 0;
    seal_png(bytes);
    refuse(bytes, sizeof bytes, "has 2 x 0 pixels");
    memcpy(bytes, png, sizeof png);
    bytes[HEIGHT] = 1;
    seal_png(bytes);
    refuse(bytes, sizeof bytes, "the limit is");
}

/* ---- JPEG ---- */

#define FRAME 0xFF, 0xC0, 0, 11, 8, 0, 2, 0, 3, 1, 1, 0x11, 0
#define SCAN  0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0

static void jpeg_headers(void **state) {
    (void)state;
    static const uint8_t sound[] = {0xFF, 0xD8, FRAME, SCAN};
    bpt_image_info info;
    assert_int_equal(look(sound, sizeof sound, &info), BPT_OK);
    assert_int_equal(info.H, 2);
    assert_int_equal(info.W, 3);
    for (size_t cut = 3; cut < sizeof sound; cut++)
        refuse(sound, cut, "is cut short within its header");
#define REFUSE(says, ...)                                                                          \
    refuse((const uint8_t[]){0xFF, 0xD8, __VA_ARGS__},                                             \
           sizeof((const uint8_t[]){0xFF, 0xD8, __VA_ARGS__}), says)
    REFUSE("it has two frame headers", FRAME, FRAME, SCAN);
    REFUSE("it has pixels before their number", SCAN);
    REFUSE("it ends before any pixel", FRAME, 0xFF, 0xD9);
    REFUSE("its header has an unknown marker", FRAME, 0xFF, 0xF0, 0, 2, SCAN);
    REFUSE("a segment of its header has no length", FRAME, 0xFF, 0xFE, 0, 1, SCAN);
    REFUSE("its frame header has the wrong length", 0xFF, 0xC0, 0, 7, 8, 0, 2, 0, 3, SCAN);
    REFUSE("its frame header has the wrong length", 0xFF, 0xC0, 0, 11, 8, 0, 2, 0, 3, 2, 1, 0x11, 0,
           SCAN);
    REFUSE("samples of other than 8 bits", 0xFF, 0xC0, 0, 11, 12, 0, 2, 0, 3, 1, 1, 0x11, 0, SCAN);
    REFUSE("lossless or hierarchical frames", 0xFF, 0xC3, 0, 11, 8, 0, 2, 0, 3, 1, 1, 0x11, 0,
           SCAN);
    REFUSE("other than 1, 3 or 4 colours", 0xFF, 0xC0, 0, 14, 8, 0, 2, 0, 3, 2, 1, 0x11, 0, 2, 0x11,
           0, SCAN);
}

#define EXIF_BLOCK(orientation)                                                                    \
    0xFF, 0xE1, 0, 30, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3,   \
        0, 1, 0, 0, 0, orientation, 0, 0, 0
#define ADOBE 'A', 'd', 'o', 'b', 'e'

/* The first Exif block counts, and Adobe's marker only where it is whole. */
static void jpeg_applications(void **state) {
    (void)state;
    static const uint8_t two[] = {0xFF, 0xD8, EXIF_BLOCK(6), EXIF_BLOCK(3), FRAME, SCAN},
                         whole[] = {0xFF, 0xD8, 0xFF, 0xEE, 0, 14, ADOBE, 0,
                                    0x64, 0,    0,    0,    0, 0,  FRAME, SCAN},
                         part[] = {0xFF, 0xD8, 0xFF, 0xEE, 0, 13,    ADOBE, 0,
                                   0x64, 0,    0,    0,    0, FRAME, SCAN};
    bpt_image_info info;
    assert_int_equal(look(two, sizeof two, &info), BPT_OK);
    assert_int_equal(info.orientation, 6);
    assert_false(info.adobe);
    assert_int_equal(look(whole, sizeof whole, &info), BPT_OK);
    assert_true(info.adobe);
    assert_int_equal(look(part, sizeof part, &info), BPT_OK);
    assert_false(info.adobe);
}

/* ---- Exif ---- */

enum { AT_TYPE = 12, AT_COUNT = 14, AT_VALUE = 18, EXIF = 22 };

/* One entry: orientation 6. */
static const uint8_t exif[EXIF] = {'I',  'I',  '*', 0, 8, 0, 0, 0, 1, 0,
                                   0x12, 0x01, 3,   0, 1, 0, 0, 0, 6};

static uint32_t orientation_with(size_t at, uint8_t value) {
    uint8_t bytes[EXIF];
    memcpy(bytes, exif, sizeof bytes);
    bytes[at] = value;
    return bpt__exif_orientation(bytes, sizeof bytes);
}

static void orientations_that_make_no_sense(void **state) {
    (void)state;
    assert_int_equal(orientation_with(AT_VALUE, 6), 6);
    assert_int_equal(orientation_with(AT_TYPE, 4), 6); /* as a long number */
    assert_int_equal(orientation_with(AT_TYPE, 2), 1);
    assert_int_equal(orientation_with(AT_COUNT, 2), 1);
    assert_int_equal(orientation_with(AT_VALUE, 8), 8);
    assert_int_equal(orientation_with(AT_VALUE, 9), 1);
    assert_int_equal(orientation_with(AT_VALUE, 0), 1);
    for (size_t cut = 0; cut < EXIF; cut++) {
        uint8_t *copy = malloc(cut + 1);
        assert_non_null(copy);
        memcpy(copy + 1, exif, cut);
        assert_int_equal(bpt__exif_orientation(copy + 1, cut), 1);
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_headers),
        cmocka_unit_test(jpeg_headers),
        cmocka_unit_test(jpeg_applications),
        cmocka_unit_test(orientations_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
