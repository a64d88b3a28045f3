/* XXH3 with 64 bits, against the vectors of xxHash's own sanity check (seed 0). */
#include "base/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_sum_does_not_depend_on_alignment),
        cmocka_unit_test(test_every_flipped_bit_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
