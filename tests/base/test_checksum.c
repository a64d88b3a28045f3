/* XXH3 with 64 bits, against the vectors of xxHash's own sanity check (seed 0). */
#include "base/checksum.h"
#include "base/memory.h"
#include "tests/base/support.h"

#include <sys/resource.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BUFFER_SIZE = 2367 };

/* The bytes that xxhsum's sanity check hashes. */
static void fill(uint8_t buffer[BUFFER_SIZE]) {
    uint64_t generator = 2654435761u;
    for (size_t i = 0; i < BUFFER_SIZE; i++) {
        buffer[i] = (uint8_t)(generator >> 56);
        generator *= 11400714785074694797u;
    }
}

static void test_known_answers(void **state) {
    (void)state;
    /* one size for each of the algorithm's paths */
    static const struct {
        size_t size;
        uint64_t sum;
    } rows[] = {
        {0, 0x2D06800538D394C2u},    {1, 0xC44BDFF4074EECDBu},    {6, 0x27B56A84CD2D7325u},
        {12, 0xA713DAF0DFBB77E7u},   {24, 0xA3FE70BF9D3510EBu},   {48, 0x397DA259ECBA1F11u},
        {80, 0xBCDEFBBB2C47C90Au},   {195, 0xCD94217EE362EC3Au},  {403, 0xCDEB804D65C6DEA4u},
        {512, 0x617E49599013CB6Bu},  {2048, 0xDD59E2C3A5F038E0u}, {2240, 0x6E73A90539CF2948u},
        {2367, 0xCB37AEB9E5D361EDu},
    };
    uint8_t buffer[BUFFER_SIZE];
    fill(buffer);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(bpt_checksum(buffer, rows[i].size), rows[i].sum);
    assert_int_equal(bpt_checksum("abc", 3), 0x78AF5F94892F3950u);
}

static void test_sum_does_not_depend_on_alignment(void **state) {
    (void)state;
    uint8_t buffer[BUFFER_SIZE], moved[BUFFER_SIZE + 8];
    fill(buffer);
    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(moved + shift, buffer, BUFFER_SIZE);
        assert_int_equal(bpt_checksum(moved + shift, BUFFER_SIZE), 0xCB37AEB9E5D361EDu);
    }
}

static void test_every_flipped_bit_shows(void **state) {
    (void)state;
    uint8_t buffer[BUFFER_SIZE];
    fill(buffer);
    const uint64_t sum = bpt_checksum(buffer, BUFFER_SIZE);
    for (size_t bit = 0; bit < 8 * (size_t)BUFFER_SIZE; bit++) {
        buffer[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(bpt_checksum(buffer, BUFFER_SIZE), sum);
        buffer[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void expect_file_sum(const void *data, size_t size) {
    char path[SUPPORT_PATH_SIZE];
    uint64_t bytes = 1, sum = 1;
    support_write(path, "summed", data, size);
    assert_int_equal(bpt_checksum_file(path, &bytes, &sum), BPT_OK);
    assert_int_equal(bytes, size);
    assert_int_equal(sum, bpt_checksum(data, size));
}

static void test_sum_of_a_file_is_that_of_its_bytes(void **state) {
    (void)state;
    uint8_t buffer[BUFFER_SIZE];
    fill(buffer);
    expect_file_sum(buffer, 0);
    expect_file_sum(buffer, 1);
    expect_file_sum(buffer, BUFFER_SIZE);
}

/* Files of several pieces take no more memory than one. */
static void test_sum_of_a_large_file(void **state) {
    (void)state;
    enum { SIZE = (64 << 20) + 7 };
    char path[SUPPORT_PATH_SIZE];
    uint64_t bytes, sum;
    struct rusage before, after;
    support_write(path, "large", "", 0);
    assert_int_equal(truncate(path, SIZE), 0);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    assert_int_equal(bpt_checksum_file(path, &bytes, &sum), BPT_OK);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true(after.ru_maxrss - before.ru_maxrss < SIZE / 1024 / 4);
    uint8_t *zeros;
    assert_int_equal(BPT_NEW("zeros", SIZE, &zeros), BPT_OK);
    assert_int_equal(bytes, SIZE);
    assert_int_equal(sum, bpt_checksum(zeros, SIZE));
    bpt_free(zeros);
}

static void test_sum_of_no_file_is_refused(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    uint64_t bytes, sum;
    assert_int_equal(bpt_checksum_file(support_path(path, "none"), &bytes, &sum), BPT_ENOENT);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_int_equal(bpt_checksum_file(support_scratch(), &bytes, &sum), BPT_EDATA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_sum_does_not_depend_on_alignment),
        cmocka_unit_test(test_every_flipped_bit_shows),
        cmocka_unit_test(test_sum_of_a_file_is_that_of_its_bytes),
        cmocka_unit_test(test_sum_of_a_large_file),
        cmocka_unit_test(test_sum_of_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, support_make_scratch, support_remove_scratch);
}
