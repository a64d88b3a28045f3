/* The importer of Caffe's LMDB, and the reader of its messages, on what is made here.
 * ctest: TIMEOUT=60 */
#include "base/file.h"
#include "base/memory.h"
#include "storage/dataset/dataset.h"
#include "storage/importers/datum.h"
#include "tests/storage/made_files.h"

#include <lmdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- messages ---- */

typedef struct message {
    uint8_t bytes[4096];
    size_t size;
} message;

static void put_varint(message *m, uint64_t value) {
    for (; value >= 0x80; value >>= 7) m->bytes[m->size++] = (uint8_t)(value | 0x80);
    m->bytes[m->size++] = (uint8_t)value;
}

static void put_number(message *m, unsigned field, int64_t value) {
    put_varint(m, field << 3);
    put_varint(m, (uint64_t)value);
}

static void put_bytes(message *m, unsigned field, const void *data, size_t size) {
    put_varint(m, field << 3 | 2);
    put_varint(m, size);
    memcpy(m->bytes + m->size, data, size);
    m->size += size;
}

/* As Caffe writes it: fields in order. */
static message raw_datum(int C, int H, int W, const void *data, size_t size, int label) {
    message m = {.size = 0};
    put_number(&m, 1, C);
    put_number(&m, 2, H);
    put_number(&m, 3, W);
    put_bytes(&m, 4, data, size);
    put_number(&m, 5, label);
    return m;
}

static message encoded_datum(const void *data, size_t size, int label) {
    message m = {.size = 0};
    put_bytes(&m, 4, data, size);
    put_number(&m, 5, label);
    put_number(&m, 7, 1);
    return m;
}

static void datum_says_what_was_written(void **state) {
    (void)state;
    bpt__datum d;
    message m = raw_datum(3, 300, 2, "abcdefgh", 8, 999);
    put_bytes(&m, 12, "unknown", 7);
    put_number(&m, 200, 5);
    assert_null(bpt__datum_read(m.bytes, m.size, &d));
    assert_int_equal(d.channels, 3);
    assert_int_equal(d.height, 300);
    assert_int_equal(d.width, 2);
    assert_int_equal(d.label, 999);
    assert_int_equal(d.n_data, 8);
    assert_memory_equal(d.data, "abcdefgh", 8);
    assert_false(d.encoded);
    assert_false(d.has_floats);
    m = encoded_datum("jpeg", 4, -1);
    assert_null(bpt__datum_read(m.bytes, m.size, &d));
    assert_true(d.encoded);
    assert_int_equal(d.label, -1);
    m = (message){.bytes = {6 << 3 | 5, 0, 0, 0x80, 0x3f}, .size = 5};
    assert_null(bpt__datum_read(m.bytes, m.size, &d));
    assert_true(d.has_floats);
    m.size = 0;
    put_bytes(&m, 6, "\0\0\x80\x3f", 4);
    assert_null(bpt__datum_read(m.bytes, m.size, &d));
    assert_true(d.has_floats);
    assert_null(bpt__datum_read(m.bytes, 0, &d));
    assert_null(d.data);
}

static void datum_refuses_what_is_none(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } wrong[] = {
        {"\x80", 1},                                          /* a tag without an end */
        {"\x08", 1},                                          /* no number */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, /* one of more than 64 bits */
        {"\x22\x05"
         "abcd",
         6},                                                  /* data beyond the end */
        {"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* likewise, by far */
        {"\x0a\x01\x01", 3},                                  /* channels as bytes */
        {"\x20\x01", 2},                                      /* data as a number */
        {"\x00\x01", 2},                                      /* field 0 */
        {"\x43", 1},                                          /* a group */
        {"\x47", 1},                                          /* no kind at all */
        {"\x41\x01\x02\x03", 4},                              /* 64 bits, cut */
        {"\x35\x01", 2},                                      /* a float, cut */
    };
    bpt__datum d;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(bpt__datum_read((const uint8_t *)wrong[i].bytes, wrong[i].size, &d));
}

/* ---- databases ---- */

typedef struct entry {
    const char *key;
    message value;
} entry;

static size_t map_bytes = (size_t)1 << 40; /* as Caffe does */

static void make_lmdb(const char *name, const char *database, const entry *entries, size_t n) {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    char *path = made_path(name);
    bpt_dir_remove(path);
    assert_int_equal(bpt_dir_create(path, true), BPT_OK);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_mapsize(env, map_bytes), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 2), 0);
    assert_int_equal(mdb_env_open(env, path, 0, 0666), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, database, database ? MDB_CREATE : 0, &dbi), 0);
    for (size_t i = 0; i < n; i++) {
        MDB_val key = {strlen(entries[i].key), (void *)(uintptr_t)entries[i].key};
        MDB_val value = {entries[i].value.size, (void *)(uintptr_t)entries[i].value.bytes};
        assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
    }
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    char lock[32];
    snprintf(lock, sizeof lock, "%s/lock.mdb", name);
    remove(made_path(lock));
}

enum { MAX_ITEMS = 16 };
static made_item items[MAX_ITEMS];
static size_t n_items;
static bpt_import_plan plan;

static bpt_status read_lmdb(const char *name, bool rgb) {
    char *files[] = {made_path(name)};
    const bpt_import_source source = {.files = files, .n_files = 1, .rgb = rgb};
    return made_import("caffe", &source, items, MAX_ITEMS, &n_items, &plan);
}

/* LMDB keeps the size of the map as it was asked for. */
static void maps_of_any_size_are_read(void **state) {
    (void)state;
    const entry entries[] = {{"0", raw_datum(1, 1, 2, "uv", 2, 1)}};
    static const size_t sizes[] = {10000000, 1000000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        map_bytes = sizes[i];
        make_lmdb("db", NULL, entries, 1);
        map_bytes = (size_t)1 << 40;
        assert_int_equal(read_lmdb("db", false), BPT_OK);
        assert_int_equal(n_items, 1);
    }
}

static void planes_become_red_green_blue(void **state) {
    (void)state;
    const entry entries[] = {
        {"00000001_b", raw_datum(3, 1, 2, "BbGgRr", 6, 4)},
        {"00000000_a", raw_datum(1, 2, 3, "uvwxyz", 6, 2)},
        {"00000002_c", encoded_datum("\xff\xd8 jpeg", 7, 0)},
    };
    make_lmdb("db", NULL, entries, 3);
    for (int rgb = 0; rgb < 2; rgb++) {
        assert_int_equal(read_lmdb("db", rgb), BPT_OK);
        assert_int_equal(n_items, 3);
        assert_int_equal(plan.n_classes, 5);
        assert_string_equal(items[0].name, "db: key 00000000_a");
        assert_int_equal(items[0].label, 2);
        assert_memory_equal(items[0].head, "uvwxyz", 6);
        assert_int_equal(items[1].label, 4);
        assert_memory_equal(items[1].head, rgb ? "BbGgRr" : "RrGgBb", 6);
        assert_int_equal(items[1].size, 6);
        assert_false(items[1].encoded);
        assert_true(items[2].encoded);
        assert_memory_equal(items[2].head, "\xff\xd8 jpeg", 7);
    }
    assert_false(bpt_path_exists(made_path("db/lock.mdb"))); /* nothing is left beside it */
}

static void bad_messages_are_bad_items(void **state) {
    (void)state;
    message floats = raw_datum(1, 1, 2, "", 0, 1);
    put_bytes(&floats, 6, "\0\0\x80\x3f\0\0\0\0", 8);
    const entry entries[] = {
        {"0", raw_datum(1, 1, 2, "ok", 2, 1)},   {"1", floats},
        {"2", raw_datum(1, 2, 2, "abc", 3, 1)},  {"3", raw_datum(0, 2, 2, "", 0, 1)},
        {"4", raw_datum(1, 1, 2, "ok", 2, -7)},  {"5", raw_datum(1, 1, 2, "ok", 2, 70000)},
        {"6", {.bytes = "\x22\x05", .size = 2}}, {"7", encoded_datum("", 0, 1)},
        {"8", raw_datum(-1, -1, 1, "a", 1, 1)},
    };
    static const char *const why[] = {NULL,
                                      "float_data cannot be stored",
                                      "1x2x2 with 3 bytes",
                                      "without data",
                                      "label -7",
                                      "label 70000",
                                      "beyond the end",
                                      "without data",
                                      "without channels"};
    make_lmdb("db", NULL, entries, 9);
    assert_int_equal(read_lmdb("db", false), BPT_OK);
    assert_int_equal(n_items, 9);
    assert_int_equal(plan.n_classes, 2);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(items[i].status, why[i] ? BPT_EDATA : BPT_OK);
        if (!why[i]) continue;
        if (!strstr(items[i].name, why[i])) print_error("%s\n", items[i].name);
        assert_non_null(strstr(items[i].name, why[i]));
        assert_non_null(strstr(items[i].name, "db: key "));
    }
}

static void what_is_no_such_database_is_refused(void **state) {
    (void)state;
    const entry entries[] = {{"0", raw_datum(1, 1, 2, "ok", 2, 1)}};
    make_lmdb("named", "inner", entries, 1);
    assert_int_equal(read_lmdb("named", false), BPT_ECORRUPT);
    make_lmdb("empty", NULL, entries, 0);
    assert_int_equal(read_lmdb("empty", false), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "holds no images"));
    assert_int_equal(read_lmdb("missing", false), BPT_ENOENT);
    made_text("text/data.mdb",
              "this is no database, though it is long enough to be looked at: "
              "what LMDB writes begins with two pages that say what they are, "
              "and this one begins with a sentence that goes on and on");
    assert_int_equal(read_lmdb("text", false), BPT_EDATA);
}

/* Nor may it be taken for a dataset, whatever its map: it is whole, and becomes one by being
 * imported. */
static void it_is_no_dataset(void **state) {
    (void)state;
    static uint8_t pixels[3000]; /* also a large value, on pages of its own */
    const entry entries[] = {{"0", raw_datum(1, 1, 2, "ok", 2, 1)},
                             {"1", raw_datum(3, 10, 100, pixels, sizeof pixels, 1)}};
    const size_t sizes[] = {(size_t)8 << 20, (size_t)1 << 40, ((size_t)8 << 20) + 512};
    for (size_t i = 0; i < 6; i++) {
        bpt_dataset *dataset = NULL;
        map_bytes = sizes[i / 2];
        make_lmdb("db", NULL, entries + i % 2, 1);
        map_bytes = (size_t)1 << 40;
        const bool ours = i < 2; /* a map that bpt could have made */
        assert_int_equal(bpt_dataset_open(made_path("db"), &dataset),
                         ours ? BPT_EDATA : BPT_ECORRUPT);
        assert_null(dataset);
        assert_non_null(strstr(bpt_error_last()->text, "of another program"));
        assert_non_null(strstr(bpt_error_last()->hint, "bpt-ingest caffe"));
        assert_int_equal(bpt_memory_live(), 0);
    }
}

/* A changed byte anywhere: an error, a bad item, or no difference; never a crash. */
static void damage_is_an_error(void **state) {
    (void)state;
    entry entries[6];
    static char keys[6][16];
    uint8_t pixels[3000];
    for (size_t p = 0; p < sizeof pixels; p++) pixels[p] = (uint8_t)p;
    for (int i = 0; i < 6; i++) {
        snprintf(keys[i], sizeof keys[i], "%d", i);
        entries[i] = (entry){keys[i], raw_datum(3, 10, 100, pixels, sizeof pixels, i)};
    }
    make_lmdb("db", NULL, entries, 6);
    char *content;
    size_t size;
    assert_int_equal(bpt_file_read(made_path("db/data.mdb"), 1 << 20, &content, &size), BPT_OK);
    size_t n_errors = 0;
    for (size_t at = 0; at < size; at += at < 4096 * 2 ? 3 : 41) {
        content[at] ^= 0x55;
        made_bytes("changed/data.mdb", content, size);
        content[at] ^= 0x55;
        const bpt_status status = read_lmdb("changed", false);
        assert_true(status == BPT_OK || status == BPT_ECORRUPT || status == BPT_EDATA);
        n_errors += status != BPT_OK;
    }
    assert_true(n_errors > 20);
    for (size_t cut = 0; cut < size; cut += 512) {
        made_bytes("changed/data.mdb", content, cut);
        assert_int_not_equal(read_lmdb("changed", false), BPT_OK);
    }
    bpt_free(content);
}

/* Every allocation fails in turn: an error, no leak. */
static void memory_may_run_out(void **state) {
    (void)state;
    const entry entries[] = {{"0", raw_datum(3, 1, 1, "bgr", 3, 1)}};
    make_lmdb("db", NULL, entries, 1);
    for (int64_t n = 0;; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = read_lmdb("db", false);
        bpt_memory_fail_at(-1);
        assert_int_equal(bpt_memory_live(), 0);
        if (status == BPT_OK && items[0].status == BPT_OK) {
            assert_true(n > 3);
            break;
        }
        assert_int_equal(status == BPT_OK ? items[0].status : status, BPT_ENOMEM);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, made_files_set_up, made_files_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(datum_says_what_was_written),
        TEST(datum_refuses_what_is_none),
        TEST(maps_of_any_size_are_read),
        TEST(planes_become_red_green_blue),
        TEST(bad_messages_are_bad_items),
        TEST(what_is_no_such_database_is_refused),
        TEST(it_is_no_dataset),
        TEST(damage_is_an_error),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
