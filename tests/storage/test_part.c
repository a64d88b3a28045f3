/* Which of a split's records are here: parcels are found by their records, and what is no parcel of
 * the split is not taken for one. */
#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/dataset/parcel.h"
#include "storage/dataset/part.h"
#include "storage/dataset/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 10, RECORD = 5, MOST = COUNT + 1, HOME = 7 };

static bpt__part part;
static uint8_t parcel[BPT__VALUE_HEADER + MOST * (RECORD + 2 + 4)];

static int set_up(void **state) {
    (void)state;
    return bpt__part_create(HOME, RECORD, COUNT, &part) == BPT_OK ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    bpt__part_free(&part);
    return bpt_memory_live() == 0 ? 0 : 1;
}

/* Makes one of records first, first + 1... @return its bytes */
static size_t make(uint32_t first, uint32_t n) {
    const size_t size = bpt_parcel_bytes(RECORD, n);
    const bpt__value_place place = bpt__parcel_place(HOME, RECORD, n);
    assert_true(size <= sizeof parcel);
    memset(parcel, 0, sizeof parcel);
    uint8_t *at = parcel + bpt__value_bytes(RECORD, n);
    for (uint32_t k = 0; k < n; k++) at = bpt_put_u32(at, first + k);
    bpt__value_seal(parcel, size, &place);
    return size;
}

static void records_are_found(void **state) {
    (void)state;
    uint32_t k;
    assert_int_equal(bpt__part_add(&part, parcel, make(3, 4), true), BPT_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        const bpt__kept_parcel *found = bpt__part_find(&part, i, &k);
        assert_int_equal(found != NULL, i >= 3 && i < 7);
        if (!found) continue;
        assert_ptr_equal(found->data, parcel);
        assert_int_equal(found->n, 4);
        assert_int_equal(k, i - 3);
    }
}

static void refuse(size_t size) {
    uint32_t k;
    assert_int_equal(bpt__part_add(&part, parcel, size, true), BPT_ECORRUPT);
    for (uint32_t i = 0; i < COUNT; i++) assert_null(bpt__part_find(&part, i, &k));
}

static void what_is_no_parcel_is_refused(void **state) {
    (void)state;
    const size_t size = make(0, 4);
    for (size_t cut = 0; cut < size; cut++) refuse(cut);
    refuse(size + 1);
    refuse(make(0, 0));         /* of none */
    refuse(make(COUNT - 3, 4)); /* one that the split has not */
    refuse(make(UINT32_MAX, 1));
    const size_t more = make(0, MOST);
    uint8_t *last = parcel + more - sizeof(uint32_t);
    bpt_put_u32(last, 0); /* all are of the split, but more than it has */
    refuse(more);
}

/* Each has a record of its own: no more than that are ever kept. */
static void there_are_not_endless_parcels(void **state) {
    (void)state;
    enum { BLOCK = 1024 };
    const size_t size = make(0, 1);
    bpt_status status = BPT_OK;
    int n = 0;
    for (; status == BPT_OK && n <= 2 * BLOCK; n++)
        status = bpt__part_add(&part, parcel, size, true);
    assert_int_equal(status, BPT_ECORRUPT);
    assert_in_range(n, COUNT, BLOCK + 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(records_are_found),
        TEST(what_is_no_parcel_is_refused),
        TEST(there_are_not_endless_parcels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
