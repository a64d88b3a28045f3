/* Records of encoded images as bytes: what is written comes back, and nothing is taken for one that
 * no image can have. */
#include "base/little_endian.h"
#include "storage/dataset/record.h"
#include "storage/images/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { AT_H = 0, AT_W = 4, AT_SUMS = 8, SIZE = 100 };

static const uint8_t file[] = {0xFF, 0xD8, 0xFF};

/* Of one pixel, as bright as can be. @return bytes, in a block that ends with them: caller frees */
static uint8_t *write_one(uint32_t C, size_t *size) {
    bpt_record r = {.data = file, .size = sizeof file, .H = 1, .W = 1};
    for (uint32_t c = 0; c < C; c++) {
        r.sum[c] = 255;
        r.square[c] = 255 * 255;
    }
    *size = bpt__record_bytes(&r, C);
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    bpt__record_write(&r, C, bytes);
    return bytes;
}

static void comes_back(void **state) {
    (void)state;
    for (uint32_t C = 1; C <= 3; C++) {
        size_t size;
        uint8_t *bytes = write_one(C, &size);
        bpt_record r;
        assert_true(bpt__record_read(bytes, size, C, &r));
        assert_int_equal(r.size, sizeof file);
        assert_memory_equal(r.data, file, sizeof file);
        assert_int_equal(r.H, 1);
        assert_int_equal(r.W, 1);
        for (uint32_t c = 0; c < C; c++) {
            assert_int_equal(r.sum[c], 255);
            assert_int_equal(r.square[c], 255 * 255);
        }
        for (size_t n = 0; n <= size - sizeof file;
             n++) /* all up to the file: none is left of it */
            assert_false(bpt__record_read(bytes, n, C, &r));
        free(bytes);
    }
}

static void sums_that_no_pixels_have(void **state) {
    (void)state;
    for (uint32_t C = 1; C <= 3; C += 2)
        for (uint32_t word = 0; word < 2 * C; word++) {
            size_t size;
            uint8_t *bytes = write_one(C, &size);
            bpt_record r;
            uint8_t *at = bytes + AT_SUMS + word * sizeof(uint64_t);
            bpt_put_u64(at, bpt_get_u64(at) + 1);
            assert_false(bpt__record_read(bytes, size, C, &r));
            free(bytes);
        }
}

/* @return whether an image of such a size, all black, is one */
static bool read_size(uint32_t H, uint32_t W, size_t bytes) {
    static uint8_t black[SIZE];
    bpt_record r;
    bpt_put_u32(black + AT_H, H);
    bpt_put_u32(black + AT_W, W);
    return bpt__record_read(black, bytes, 1, &r); /* of the file nothing is looked at */
}

static void sizes_within_the_limits(void **state) {
    (void)state;
    const bpt_image_limits most = BPT_IMAGE_LIMITS_INIT;
    const uint32_t other = (uint32_t)(most.pixels / most.side);
    const size_t header = AT_SUMS + 2 * sizeof(uint64_t);
    assert_true(read_size(1, 1, SIZE));
    assert_false(read_size(0, 1, SIZE));
    assert_false(read_size(1, 0, SIZE));
    assert_true(read_size(most.side, 1, SIZE));
    assert_true(read_size(1, most.side, SIZE));
    assert_false(read_size(most.side + 1, 1, SIZE));
    assert_false(read_size(1, most.side + 1, SIZE));
    assert_true(read_size(most.side, other, SIZE));
    if (other < most.side) assert_false(read_size(most.side, other + 1, SIZE));
    assert_true(read_size(1, 1, header + most.bytes));
    assert_false(read_size(1, 1, header + most.bytes + 1));
}

static void channels_that_no_record_has(void **state) {
    (void)state;
    static const uint8_t zeros[SIZE] = {[AT_H] = 1, [AT_W] = 1};
    bpt_record r;
    assert_true(bpt__record_read(zeros, SIZE, BPT_RECORD_MAX_C, &r));
    assert_false(bpt__record_read(zeros, SIZE, 0, &r));
    assert_false(bpt__record_read(zeros, SIZE, BPT_RECORD_MAX_C + 1, &r));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(sums_that_no_pixels_have),
        cmocka_unit_test(sizes_within_the_limits),
        cmocka_unit_test(channels_that_no_record_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
