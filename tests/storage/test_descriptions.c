/* Descriptions of datasets that are wrong, though their checksums are right: each is refused, for
 * what is wrong with it, by who reads and by who writes. */
#include "base/file.h"
#include "base/memory.h"
#include "tests/storage/made_database.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_entry.h"

#include <lmdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static made_place place;

static int set_up(void **state) {
    (void)state;
    place = made_place_create();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    made_place_remove(&place);
    return bpt_memory_live() == 0 ? 0 : 1;
}

/* Ten images of three classes. */
static void write_anew(void) {
    const bpt_writer_options o = made_options("train", 1, 4, 4);
    bpt_dir_remove(place.dataset);
    assert_int_equal(made_split(place.dataset, &o, 1, 10), BPT_OK);
}

static void expect_refused(bpt_status status, const char *says) {
    const bpt_writer_options test = made_options("test", 1, 4, 4);
    bpt_dataset *dataset;
    bpt_writer *writer;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), status);
    if (!strstr(bpt_error_last()->text, says)) fail_msg("%s: %s", says, bpt_error_last()->text);
    assert_int_equal(bpt_writer_open(place.dataset, &test, &writer), status);
    if (!strstr(bpt_error_last()->text, says)) fail_msg("%s: %s", says, bpt_error_last()->text);
}

typedef struct lie {
    const char *from, *to, *says;
} lie;

static void refuse_each(const char *key, const lie *lies, size_t n) {
    for (size_t i = 0; i < n; i++) {
        write_anew();
        assert_true(made_entry_alter(place.dataset, key, lies[i].from, lies[i].to));
        expect_refused(BPT_EDATA, lies[i].says);
    }
}

static void schemas_that_are_unknown(void **state) {
    (void)state;
    static const lie lies[] = {
        {"\"format\": 1", "\"format\": 4", "has format 4"},
        {"\"format\": 1", "\"format\": 2", "\"channels\" is missing"},
        {"\"format\": 1, \"shape\": [1, 4, 4], \"encoding\": \"raw\"",
         "\"format\": 2, \"channels\": 2, \"encoding\": \"jpeg\"", "images of 2 channels"},
        {"\"format\": 1, \"shape\": [1, 4, 4], \"encoding\": \"raw\"",
         "\"format\": 2, \"channels\": 4, \"encoding\": \"jpeg\"", "is 4, outside of 1 to 3"},
        {"\"format\": 1, \"shape\": [1, 4, 4]", "\"format\": 2, \"channels\": 1",
         "unknown encoding \"raw\""},
        {"\"raw\"", "\"runes\"", "unknown encoding \"runes\""},
        {"\"raw\"", "\"jpeg\"", "unknown encoding \"jpeg\""},
        {"\"format\": 1, \"shape\": [1, 4, 4], \"encoding\": \"raw\"",
         "\"format\": 3, \"shape\": [1, 4, 4], \"encoding\": \"runes\"", "unknown encoding"},
        {"\"format\": 1, \"shape\": [1, 4, 4], \"encoding\": \"raw\"",
         "\"format\": 3, \"shape\": [1, 4, 4], \"encoding\": \"jpeg\"", "\"channels\" is missing"},
        {"\"xxh3-64\"", "\"sum\"", "unknown checksum \"sum\""},
    };
    refuse_each("dataset", lies, sizeof lies / sizeof *lies);
    write_anew();
    assert_true(made_entry_put(place.dataset, "dataset", "not JSON"));
    expect_refused(BPT_EDATA, "not valid JSON");
}

static void shapes_and_classes_that_cannot_be(void **state) {
    (void)state;
    static const lie lies[] = {
        {"[1, 4, 4]", "[1, 4]", "shape has 2 entries, not 3"},
        {"[1, 4, 4]", "[1, 4, 0]", "is 0, outside of 1 to"},
        {"[1, 4, 4]", "[2, 16384, 16384]", "images of more than 268435456 bytes"},
        {"[\"0\", \"1\", \"2\"]", "[]", "has 0 classes"},
        {"[\"0\", \"1\", \"2\"]", "[\"0\", \"1\", 2]", "is not a text"},
        {"\"1\", \"2\"", "\"1\", \"1\"", "the class name \"1\" is given twice"},
        {"\"1\", \"2\"", "\"1\", \"\"", "is no class name"},
    };
    refuse_each("dataset", lies, sizeof lies / sizeof *lies);
}

static void splits_that_lie(void **state) {
    (void)state;
    static const lie lies[] = {
        {"\"train\"", "7", "\"name\" is not a text"},
        {"\"count\": 10", "\"count\": 11", "has 11 records, and its classes 10"},
        {"\"per_class\": [", "\"per_class\": [0, ", "per_class has 4 entries, not 3"},
        {"\"per_class\": [", "\"per_class\": [-", "outside of 0 to"},
        {"\"mean\": [", "\"mean\": [0.5, ", "mean has 2 entries, not 1"},
        {"\"mean\": [0.", "\"mean\": [1.", "is no mean of pixels"},
        {"\"std\": [", "\"std\": [0.5, ", "std has 2 entries, not 1"},
        {"\"std\": [0.", "\"std\": [0.000000000000000000000000", "is no std of pixels"},
        {"\"std\": [0.", "\"std\": [7.", "is no std of pixels"},
        {"\"std\": [0.", "\"std\": [-0.", "is no std of pixels"},
        {"\"pack\": ", "\"pack\": -", "outside of 1 to"},
        {"\"generation\": ", "\"generation\": -", "outside of 1 to"},
        {"\"importer\": ", "\"importer\": 5, \"x\": ", "\"importer\" is not a text"},
        {"\"sources\": [", "\"sources\": [7], \"x\": [", "is not a text"},
        {"\"seed\": ", "\"seed\": -1, \"x\": ", "is -1, outside of 0 to"},
    };
    refuse_each("split/train", lies, sizeof lies / sizeof *lies);
}

/* Of the format that has them. */
static void intakes_that_lie(void **state) {
    (void)state;
    static const lie lies[] = {
        {"\"count\": 10", "\"count\": 10, \"intakes\": []", "has 0 intakes"},
        {"\"count\": 10", "\"count\": 10, \"intakes\": {}", "\"intakes\" is not an array"},
        {"\"count\": 10",
         "\"count\": 10, \"intakes\": [{\"generation\": 1, \"count\": 9, \"pack\": 1, "
         "\"importer\": "
         "\"a\", \"sources\": [], \"seed\": 0}]",
         "has 10 records, and its intakes 9"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        write_anew();
        assert_true(made_entry_alter(place.dataset, "dataset", "\"format\": 1", "\"format\": 3"));
        assert_true(made_entry_alter(place.dataset, "split/train", lies[i].from, lies[i].to));
        expect_refused(BPT_EDATA, lies[i].says);
    }
}

static void entries_of_others(void **state) {
    (void)state;
    write_anew();
    assert_true(made_entry_alter(place.dataset, "split/train", "\"train\"", "\"trail\""));
    expect_refused(BPT_ECORRUPT, "entry split/train describes split trail");
    write_anew();
    assert_true(made_entry_put(place.dataset, "split/a b", "{\"name\": \"a b\", \"count\": 1}"));
    expect_refused(BPT_EDATA, "is no name for a split");
    write_anew();
    assert_true(made_entry_put(place.dataset, "other", "{}"));
    expect_refused(BPT_ECORRUPT, "unknown entry other");
}

static void drop_database(const char *name) {
    made_database d;
    assert_true(made_database_open(place.dataset, name, 0, &d));
    assert_int_equal(mdb_drop(d.txn, d.dbi, 1), 0);
    assert_true(made_database_close(&d, true));
}

/* A writer would otherwise store a second split beside one that is lost. */
static void records_that_are_missing(void **state) {
    (void)state;
    write_anew();
    drop_database("train@1");
    expect_refused(BPT_ECORRUPT, "missing");
    assert_non_null(strstr(bpt_error_last()->text, "its database train@1"));
}

/* Only who reads the records sees it. */
static void records_of_another_size(void **state) {
    (void)state;
    bpt_dataset *dataset;
    write_anew();
    assert_true(made_entry_alter(place.dataset, "dataset", "[1, 4, 4]", "[1, 400, 900]"));
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_ECORRUPT);
}

/* Fewer classes than the records have: the last one's images belong to none. */
static void labels_beyond_the_classes(void **state) {
    (void)state;
    char from[80], to[80];
    const bpt_split *split;
    const uint8_t *pixels;
    uint32_t label;
    uint64_t n_records;
    bpt_dataset *dataset;
    write_anew();
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    const unsigned n[] = {(unsigned)split->per_class[0], (unsigned)split->per_class[1],
                          (unsigned)split->per_class[2]};
    snprintf(from, sizeof from, "[%u, %u, %u]", n[0], n[1], n[2]);
    snprintf(to, sizeof to, "[%u, %u]", n[0], n[1] + n[2]);
    bpt_dataset_close(dataset);
    assert_true(made_entry_alter(place.dataset, "dataset", "\"1\", \"2\"", "\"1\""));
    assert_true(made_entry_alter(place.dataset, "split/train", from, to));
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    for (uint32_t i = 0; i < split->count; i++) {
        const bool beyond = made_label(1, i, 3) == 2;
        assert_int_equal(bpt_dataset_get(dataset, split, i, &pixels, &label),
                         beyond ? BPT_ECORRUPT : BPT_OK);
        if (beyond) assert_non_null(strstr(bpt_error_last()->text, "a label is out of range"));
    }
    bpt_dataset_close(dataset);
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "a label is out of range"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(schemas_that_are_unknown), TEST(shapes_and_classes_that_cannot_be),
        TEST(splits_that_lie),          TEST(intakes_that_lie),
        TEST(records_that_are_missing), TEST(entries_of_others),
        TEST(records_of_another_size),  TEST(labels_beyond_the_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
