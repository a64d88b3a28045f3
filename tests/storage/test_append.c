/* Adding to a split: the records, in order, as if they had been written at once; readers see the
 * old ones or all; what does not fit is refused and changes nothing.
 * ctest: TIMEOUT=180 */
#include "base/file.h"
#include "base/memory.h"
#include "tests/storage/made_database.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_encoded.h"

#include <sys/wait.h>

#include <lmdb.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SALT = 3 };

static made_place place;
static char whole[100]; /* a dataset beside it */

static int set_up(void **state) {
    (void)state;
    place = made_place_create();
    snprintf(whole, sizeof whole, "%s/whole", place.directory);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    made_place_remove(&place);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static bpt_dataset *open_at(const char *path, const char *name, const bpt_split **split) {
    bpt_dataset *dataset;
    const bpt_status status = bpt_dataset_open(path, &dataset);
    if (status != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(status, BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, name, split), BPT_OK);
    return dataset;
}

static void expect_sound(uint64_t n_expected) {
    uint64_t n_records;
    const bpt_status status = bpt_dataset_verify(place.dataset, NULL, NULL, &n_records);
    if (status != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(status, BPT_OK);
    assert_int_equal(n_records, n_expected);
}

/* Writes records [from, to) of SALT. */
static bpt_status write_range(const char *path, const bpt_writer_options *o, uint32_t from,
                              uint32_t to) {
    bpt_writer *writer;
    BPT_TRY(bpt_writer_open(path, o, &writer));
    bpt_status status = made_append(writer, o, SALT, from, to);
    if (status == BPT_OK) status = bpt_writer_commit(writer);
    bpt_writer_close(writer);
    return status;
}

static bpt_writer_options appending(const bpt_writer_options *o) {
    bpt_writer_options a = *o;
    a.append = true;
    return a;
}

static void expect_like(const bpt_split *a, const bpt_split *b, uint32_t C) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->per_class, b->per_class, 3 * sizeof *a->per_class);
    assert_memory_equal(a->mean, b->mean, C * sizeof *a->mean);
    assert_memory_equal(a->std, b->std, C * sizeof *a->std);
    assert_memory_equal(&a->extent, &b->extent, sizeof a->extent);
}

/* Sizes that fill values, leave one open, and need more than one. */
static void like_one_that_was_written_at_once(void **state) {
    (void)state;
    static const uint32_t ends[][4] = {{1, 2, 3, 4}, {31, 62, 63, 100}, {100, 101, 250, 251}};
    static const uint32_t shapes[][3] = {{1, 28, 28}, {3, 9, 7}, {1, 1, 1}, {3, 200, 150}};
    for (size_t k = 0; k < 3; k++)
        for (size_t s = 0; s < 4; s++) {
            const uint32_t *at = ends[k], *shape = shapes[s];
            const bpt_writer_options o = made_options("train", shape[0], shape[1], shape[2]);
            const bpt_writer_options more = appending(&o);
            assert_int_equal(write_range(place.dataset, &o, 0, at[0]), BPT_OK);
            for (int i = 0; i < 3; i++)
                assert_int_equal(write_range(place.dataset, &more, at[i], at[i + 1]), BPT_OK);
            assert_int_equal(write_range(whole, &o, 0, at[3]), BPT_OK);
            expect_sound(at[3]);
            const bpt_split *split, *once;
            bpt_dataset *dataset = open_at(place.dataset, "train", &split);
            bpt_dataset *other = open_at(whole, "train", &once);
            assert_int_equal(made_equal(dataset, split, SALT), at[3]);
            expect_like(split, once, shape[0]);
            assert_int_equal(split->n_intakes, 4);
            assert_int_equal(split->intakes[2].count, at[2] - at[1]);
            assert_int_equal(bpt_dataset_describe(dataset)->format, BPT_DATASET_FORMAT_APPENDED);
            assert_int_equal(bpt_dataset_describe(other)->format, BPT_DATASET_FORMAT_RAW);
            bpt_dataset_close(dataset);
            bpt_dataset_close(other);
            bpt_dir_remove(place.dataset);
            bpt_dir_remove(whole);
        }
}

static void encoded_ones(void **state) {
    (void)state;
    enum { FIRST = 6, ALL = 17 };
    const bpt_writer_options o = made_encoded_options("train", 3), more = appending(&o);
    assert_int_equal(made_encoded_range(place.dataset, &o, 0, FIRST), BPT_OK);
    assert_int_equal(made_encoded_range(place.dataset, &more, FIRST, ALL), BPT_OK);
    assert_int_equal(made_encoded_split(whole, &o, ALL), BPT_OK);
    expect_sound(ALL);
    const bpt_split *split, *once;
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    bpt_dataset *other = open_at(whole, "train", &once);
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    assert_int_equal(info->format, BPT_DATASET_FORMAT_APPENDED);
    assert_true(info->encoded);
    assert_string_equal(info->encoding, "jpeg");
    expect_like(split, once, 3);
    for (uint32_t i = 0; i < ALL; i++) {
        bpt_record a, b;
        uint32_t label, label_once;
        assert_int_equal(bpt_dataset_get_record(dataset, split, i, &a, &label), BPT_OK);
        assert_int_equal(bpt_dataset_get_record(other, once, i, &b, &label_once), BPT_OK);
        assert_int_equal(label, label_once);
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.data, b.data, a.size);
    }
    bpt_dataset_close(dataset);
    bpt_dataset_close(other);
}

/* What each of them was made of stays known. */
static void all_sources_are_told(void **state) {
    (void)state;
    static const char *const first[] = {"a", "b"}, *const second[] = {"c"};
    bpt_writer_options o = made_options("train", 1, 4, 4);
    o.importer = "one";
    o.sources = first;
    o.n_sources = 2;
    o.seed = 7;
    assert_int_equal(write_range(place.dataset, &o, 0, 5), BPT_OK);
    o.importer = "two";
    o.sources = second;
    o.n_sources = 1;
    o.seed = 0;
    o.append = true;
    assert_int_equal(write_range(place.dataset, &o, 5, 8), BPT_OK);
    const bpt_split *split;
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    assert_int_equal(split->n_intakes, 2);
    assert_int_equal(split->intakes[0].count, 5);
    assert_string_equal(split->intakes[0].importer, "one");
    assert_int_equal(split->intakes[0].n_sources, 2);
    assert_string_equal(split->intakes[0].sources[1], "b");
    assert_int_equal(split->intakes[0].seed, 7);
    assert_int_equal(split->intakes[1].count, 3);
    assert_string_equal(split->intakes[1].importer, "two");
    assert_string_equal(split->intakes[1].sources[0], "c");
    assert_int_equal(split->intakes[1].seed, 0);
    bpt_dataset_close(dataset);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    bpt_writer *writer;
    bpt_writer_options a = appending(&o);
    assert_int_equal(bpt_writer_open(place.dataset, &a, &writer), BPT_ENOENT);
    assert_false(bpt_path_exists(place.dataset));
    assert_int_equal(write_range(place.dataset, &o, 0, 40), BPT_OK);
    a.split = "test";
    assert_int_equal(bpt_writer_open(place.dataset, &a, &writer), BPT_ENOENT);
    assert_non_null(strstr(bpt_error_last()->hint, "leave out --append"));
    a = appending(&o);
    a.H = 9;
    assert_int_equal(bpt_writer_open(place.dataset, &a, &writer), BPT_EDATA);
    a = appending(&o);
    a.n_classes = 4;
    assert_int_equal(bpt_writer_open(place.dataset, &a, &writer), BPT_EDATA);
    static const char *const names[] = {"0", "1", "x"};
    a.n_classes = 3;
    a.class_names = names;
    assert_int_equal(bpt_writer_open(place.dataset, &a, &writer), BPT_EDATA);
    a = made_encoded_options("train", 1);
    a.append = true;
    assert_int_equal(bpt_writer_open(place.dataset, &a, &writer), BPT_EDATA);
    a = appending(&o);
    assert_int_equal(write_range(place.dataset, &a, 40, 40), BPT_EDATA); /* none */
    assert_non_null(strstr(bpt_error_last()->text, "would get no images"));
    expect_sound(40);
    const bpt_split *split;
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    assert_int_equal(split->n_intakes, 1);
    assert_int_equal(bpt_dataset_describe(dataset)->format, BPT_DATASET_FORMAT_RAW);
    bpt_dataset_close(dataset);
}

/* A child appends, while this process has the dataset open since before. */
static void readers_keep_what_they_had(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 1, 28, 28), more = appending(&o);
    assert_int_equal(write_range(place.dataset, &o, 0, 100), BPT_OK);
    int go[2];
    assert_int_equal(pipe(go), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        if (read(go[0], &byte, 1) != 1) _exit(1);
        for (uint32_t from = 100; from < 400; from += 100)
            if (write_range(place.dataset, &more, from, from + 100) != BPT_OK) _exit(2);
        _exit(0);
    }
    const bpt_split *split;
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    assert_int_equal(write(go[1], "x", 1), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(split->count, 100);
    assert_int_equal(made_equal(dataset, split, SALT), 100);
    assert_int_equal(bpt_dataset_check(dataset), BPT_OK);
    bpt_dataset_close(dataset);
    expect_sound(400);
    close(go[0]);
    close(go[1]);
}

/* Replacing drops all that was appended; the format is what the other splits need. */
static void replaced_as_a_whole(void **state) {
    (void)state;
    const bpt_writer_options train = made_options("train", 1, 8, 8),
                             test = made_options("test", 1, 8, 8);
    bpt_writer_options more = appending(&train), again = train;
    again.replace = true;
    assert_int_equal(write_range(place.dataset, &train, 0, 10), BPT_OK);
    assert_int_equal(write_range(place.dataset, &more, 10, 20), BPT_OK);
    assert_int_equal(write_range(place.dataset, &test, 0, 5), BPT_OK);
    assert_int_equal(made_databases(place.dataset), 4);
    more.split = "test";
    assert_int_equal(write_range(place.dataset, &more, 5, 6), BPT_OK);
    assert_int_equal(made_databases(place.dataset), 5);
    const bpt_split *split;
    assert_int_equal(write_range(place.dataset, &again, 0, 30), BPT_OK);
    assert_int_equal(made_databases(place.dataset), 4);
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    assert_int_equal(split->n_intakes, 1);
    assert_int_equal(bpt_dataset_describe(dataset)->format, BPT_DATASET_FORMAT_APPENDED);
    bpt_dataset_close(dataset);
    again.split = "test";
    assert_int_equal(write_range(place.dataset, &again, 0, 3), BPT_OK);
    assert_int_equal(made_databases(place.dataset), 3);
    dataset = open_at(place.dataset, "test", &split);
    assert_int_equal(bpt_dataset_describe(dataset)->format, BPT_DATASET_FORMAT_RAW);
    bpt_dataset_close(dataset);
    expect_sound(33);
}

/* A killed appending leaves what the next one drops, and readers do not see it. */
static void survives_being_killed(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 3, 300, 300), more = appending(&o);
    assert_int_equal(write_range(place.dataset, &o, 0, 20), BPT_OK);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bpt_writer *writer;
        if (bpt_writer_open(place.dataset, &more, &writer) != BPT_OK) _exit(1);
        if (made_append(writer, &more, SALT, 20, 160) != BPT_OK) _exit(1);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    expect_sound(20);
    assert_int_equal(made_databases(place.dataset), 3); /* two chunks of it, or one */
    assert_int_equal(write_range(place.dataset, &more, 20, 25), BPT_OK);
    expect_sound(25);
    assert_int_equal(made_databases(place.dataset), 3);
    const bpt_split *split;
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    assert_int_equal(made_equal(dataset, split, SALT), 25);
    bpt_dataset_close(dataset);
}

/* The limit is told, and what is there can be read with that many. */
static void appended_to_as_often_as_can_be(void **state) {
    (void)state;
    enum { MOST = 1024 };
#ifdef __SANITIZE_ADDRESS__
    skip(); /* but for the limit a thousand times what it sees in the others */
#endif
    const bpt_writer_options o = made_options("train", 1, 2, 2), more = appending(&o);
    assert_int_equal(write_range(place.dataset, &o, 0, 1), BPT_OK);
    for (uint32_t i = 1; i < MOST; i++)
        assert_int_equal(write_range(place.dataset, &more, i, i + 1), BPT_OK);
    assert_int_equal(write_range(place.dataset, &more, MOST, MOST + 1), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "1024 times"));
    expect_sound(MOST);
    const bpt_split *split;
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    assert_int_equal(made_equal(dataset, split, SALT), MOST);
    bpt_dataset_close(dataset);
}

/* Changes a byte of the first value of a database. */
static void damage_first_value(const char *database) {
    made_database d;
    MDB_cursor *cursor;
    MDB_val key, value;
    static uint8_t bytes[1 << 18];
    assert_true(made_database_open(place.dataset, database, 0, &d));
    assert_int_equal(mdb_cursor_open(d.txn, d.dbi, &cursor), 0);
    assert_int_equal(mdb_cursor_get(cursor, &key, &value, MDB_FIRST), 0);
    assert_true(value.mv_size <= sizeof bytes);
    memcpy(bytes, value.mv_data, value.mv_size);
    bytes[100] ^= 1;
    value.mv_data = bytes;
    assert_int_equal(mdb_cursor_put(cursor, &key, &value, MDB_CURRENT), 0);
    mdb_cursor_close(cursor);
    assert_true(made_database_close(&d, true));
}

/* By the numbers that the split has for them, not those of what was added. */
static void damaged_records_are_named(void **state) {
    (void)state;
    enum { FIRST = 700, ALL = 1000 };
    const bpt_writer_options o = made_options("train", 1, 16, 16), more = appending(&o);
    const bpt_split *split;
    const uint8_t *pixels;
    uint32_t label;
    uint64_t n_records;
    assert_int_equal(write_range(place.dataset, &o, 0, FIRST), BPT_OK);
    assert_int_equal(write_range(place.dataset, &more, FIRST, ALL), BPT_OK);
    damage_first_value("train@2");
    bpt_dataset *dataset = open_at(place.dataset, "train", &split);
    assert_int_equal(bpt_dataset_get(dataset, split, FIRST - 1, &pixels, &label), BPT_OK);
    assert_int_equal(bpt_dataset_get(dataset, split, FIRST, &pixels, &label), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "records 700 to 7"));
    bpt_dataset_close(dataset);
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "records 700 to 7"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damaged_records_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(like_one_that_was_written_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(encoded_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_sources_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(readers_keep_what_they_had, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replaced_as_a_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_being_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(appended_to_as_often_as_can_be, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
