/* Packing of records into values. ctest: TIMEOUT=20 */
#include "storage/dataset/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PAGE = 4096 };

static void packs_without_waste(void **state) {
    (void)state;
    const size_t sizes[] = {784, 1024, 3072, 3 * 64 * 64, 33075, 3 * 128 * 128, 3 * 224 * 224};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t pack = bpt__value_pack(sizes[i], PAGE);
        const size_t stored = bpt__value_padded(bpt__value_bytes(sizes[i], pack), PAGE) + 16;
        assert_int_equal(stored % PAGE, 0);
        assert_true(stored >= bpt__value_bytes(sizes[i], pack) + 16);
        assert_true((double)stored < 1.025 * (double)(pack * sizes[i]));
    }
    assert_true(bpt__value_pack(1, PAGE) > 1000);
    assert_int_equal(bpt__value_pack((size_t)1 << 28, PAGE), 1);
}

static void pads_to_whole_pages(void **state) {
    (void)state;
    assert_int_equal(bpt__value_padded(1, PAGE), PAGE - 16);
    assert_int_equal(bpt__value_padded(PAGE - 16, PAGE), PAGE - 16);
    assert_int_equal(bpt__value_padded(PAGE - 15, PAGE), 2 * PAGE - 16);
}

static void finds_any_change(void **state) {
    (void)state;
    enum { RECORD = 5, N = 3, SIZE = 32 + N * (RECORD + 2) + 7 };
    const bpt__value_place place = {
        .database = bpt__database_id("train@1"), .first = 6, .n = N, .record_bytes = RECORD};
    uint8_t value[SIZE];
    for (size_t i = 0; i < SIZE; i++) value[i] = (uint8_t)(i * 37);
    bpt__value_seal(value, SIZE, &place);
    assert_true(bpt__value_intact(value, SIZE, &place));
    for (size_t bit = 0; bit < 8 * SIZE; bit++) {
        value[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(bpt__value_intact(value, SIZE, &place));
        value[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    /* Whole, but in the place of another. */
    bpt__value_place other = place;
    other.first = 9;
    assert_false(bpt__value_intact(value, SIZE, &other));
    other = place;
    other.database = bpt__database_id("test@1");
    assert_false(bpt__value_intact(value, SIZE, &other));
    other = place;
    other.n = N - 1;
    assert_false(bpt__value_intact(value, SIZE, &other));
    other = place;
    other.record_bytes--; /* so that it would fit */
    assert_false(bpt__value_intact(value, SIZE, &other));
    assert_false(bpt__value_intact(value, 31, &place));
}

static void keys_sort_as_numbers(void **state) {
    (void)state;
    const uint32_t numbers[] = {0, 1, 255, 256, 65535, 65536, 1u << 24, UINT32_MAX};
    uint8_t before[4], key[4];
    bpt__value_key(0, before);
    for (size_t i = 1; i < sizeof numbers / sizeof *numbers; i++) {
        bpt__value_key(numbers[i], key);
        assert_true(memcmp(before, key, sizeof key) < 0);
        memcpy(before, key, sizeof key);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_without_waste),
        cmocka_unit_test(pads_to_whole_pages),
        cmocka_unit_test(finds_any_change),
        cmocka_unit_test(keys_sort_as_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
