/* Copies of a dataset: whole or not used, gone on with, made by one and used by all. ctest:
 * TIMEOUT=60 */
#include "base/file.h"
#include "base/memory.h"
#include "storage/dataset/dataset.h"
#include "storage/stage/stage.h"
#include "tests/storage/made_dataset.h"

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* 10 MB and some, in three blocks. */
enum { TRAIN = 2600, H = 64, W = 64, BLOCK = 4 << 20, LOCK_FILE = 32768 };

typedef struct subject {
    made_place place;
    char dir[100];
} subject;

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    snprintf(s.dir, sizeof s.dir, "%s/stage/deep", s.place.directory);
    const bpt_writer_options train = made_options("train", 1, H, W);
    *state = &s;
    return made_split(s.place.dataset, &train, 1, TRAIN) == BPT_OK ? 0 : 1;
}

static int tear_down(void **state) {
    const subject *s = *state;
    made_place_remove(&s->place);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static bpt_stage *open_stage(const subject *s) {
    bpt_stage *stage = NULL;
    if (bpt_stage_open(s->place.dataset, s->dir, &stage) != BPT_OK)
        fail_msg("%s", bpt_error_last()->text);
    return stage;
}

static void succeed(bpt_status status) {
    if (status != BPT_OK) fail_msg("%s", bpt_error_last()->text);
}

/* One step at a time, so that nobody waits for anything.
 * @param bytes at least so many are to be right */
static void advance_to(bpt_stage *stage, uint64_t bytes) {
    while (bpt_stage_look(stage).done < bytes) succeed(bpt_stage_advance(stage, 0));
}

static void make_whole(bpt_stage *stage) {
    succeed(bpt_stage_advance(stage, INFINITY));
    const bpt_stage_state state = bpt_stage_look(stage);
    assert_true(state.whole && !state.waits);
    assert_int_equal(state.done, state.bytes);
    assert_true(state.identity != 0);
}

static uint64_t file_bytes(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static void name_file(const char *folder, const char *name, char path[300]) {
    assert_true(snprintf(path, 300, "%s/%s", folder, name) < 300);
}

/* The copy is the dataset, record by record and byte by byte. */
static void check_copy(const subject *s, const char *path, uint32_t salt) {
    char mine[300], theirs[300], *a, *b;
    size_t n_a, n_b;
    bpt_dataset *dataset;
    const bpt_split *train;
    succeed(bpt_dataset_open(path, &dataset));
    succeed(bpt_dataset_find(dataset, "train", &train));
    assert_int_equal(made_equal(dataset, train, salt), TRAIN);
    bpt_dataset_close(dataset);
    name_file(path, "data.mdb", mine);
    name_file(s->place.dataset, "data.mdb", theirs);
    succeed(bpt_file_read(mine, (size_t)1 << 30, &a, &n_a));
    succeed(bpt_file_read(theirs, (size_t)1 << 30, &b, &n_b));
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    bpt_free(a);
    bpt_free(b);
}

/* Makes a copy, and closes it. @param[out] path its folder */
static void make_copy(const subject *s, char path[300]) {
    bpt_stage *stage = open_stage(s);
    make_whole(stage);
    snprintf(path, 300, "%s", bpt_stage_path(stage));
    bpt_stage_close(stage);
}

static int count_copies(const subject *s) {
    int n = 0;
    DIR *dir = opendir(s->dir);
    assert_non_null(dir);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void flip(const char *file, uint64_t at) {
    uint8_t byte;
    const int fd = open(file, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* Flips a byte and sets the times back, as far as anybody can. */
static void alter(const char *file, uint64_t at) {
    struct stat info;
    assert_int_equal(stat(file, &info), 0);
    flip(file, at);
    const struct timespec times[] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, file, times, 0), 0);
}

/* ---- a copy ---- */

static void test_copy(void **state) {
    const subject *s = *state;
    bpt_stage *stage = open_stage(s);
    assert_null(bpt_stage_path(stage));
    assert_int_equal(bpt_stage_look(stage).identity, 0);
    make_whole(stage);
    assert_int_equal(bpt_stage_look(stage).copied, bpt_stage_look(stage).bytes);
    assert_true(bpt_stage_look(stage).bytes > 2 * BLOCK);
    check_copy(s, bpt_stage_path(stage), 1);
    /* A second one, while the first is in use: nothing is copied. */
    bpt_stage *other = open_stage(s);
    make_whole(other);
    assert_int_equal(bpt_stage_look(other).copied, 0);
    assert_string_equal(bpt_stage_path(other), bpt_stage_path(stage));
    assert_true(bpt_stage_place(other) == bpt_stage_place(stage));
    bpt_stage_close(other);
    bpt_stage_close(stage);
    bpt_stage_close(NULL);
    assert_int_equal(count_copies(s), 1);
}

static void test_place(void **state) {
    const subject *s = *state;
    char dataset[300], dir[300];
    bpt_stage *a = open_stage(s), *b;
    snprintf(dataset, sizeof dataset, "%s/../data/.", s->place.dataset);
    snprintf(dir, sizeof dir, "%s/../deep//", s->dir);
    succeed(bpt_stage_open(dataset, dir, &b));
    assert_true(bpt_stage_place(a) == bpt_stage_place(b));
    make_whole(a);
    make_whole(b);
    assert_int_equal(bpt_stage_look(b).copied, 0);
    bpt_stage_close(b);
    snprintf(dir, sizeof dir, "%s/other", s->place.directory);
    succeed(bpt_stage_open(dataset, dir, &b));
    assert_true(bpt_stage_place(a) != bpt_stage_place(b));
    bpt_stage_close(b);
    bpt_stage_close(a);
}

static void test_missing(void **state) {
    const subject *s = *state;
    char nowhere[300];
    bpt_stage *stage;
    uint64_t bytes;
    name_file(s->place.directory, "nowhere", nowhere);
    assert_int_equal(bpt_stage_open(nowhere, s->dir, &stage), BPT_ENOENT);
    assert_non_null(strstr(bpt_error_last()->text, "there is no dataset at "));
    assert_true(bpt_error_last()->hint[0] != '\0');
    assert_int_equal(bpt_stage_need(nowhere, s->dir, &bytes), BPT_ENOENT);
    assert_false(bpt_path_exists(s->dir));
}

/* ---- what is interrupted ---- */

/* Copies so much, and is gone. */
static void interrupt_at(const subject *s, uint64_t bytes, char path[300]) {
    bpt_stage *stage = open_stage(s);
    advance_to(stage, bytes);
    assert_false(bpt_stage_look(stage).whole);
    snprintf(path, 300, "%s", bpt_stage_path(stage));
    bpt_stage_close(stage);
}

/* @return bytes that were copied to make it whole */
static uint64_t go_on(const subject *s) {
    bpt_stage *stage = open_stage(s);
    make_whole(stage);
    const uint64_t copied = bpt_stage_look(stage).copied;
    check_copy(s, bpt_stage_path(stage), 1);
    bpt_stage_close(stage);
    return copied;
}

static void test_interrupted(void **state) {
    const subject *s = *state;
    char path[300], file[300];
    interrupt_at(s, BLOCK, path);
    name_file(path, "data.mdb", file);
    assert_false(bpt_path_exists(file)); /* no half copy by that name */
    name_file(s->place.dataset, "data.mdb", file);
    assert_int_equal(go_on(s), file_bytes(file) - BLOCK);
}

/* What a power cut leaves: a part that is longer than its list, or shorter, or not what it says. */
static void test_torn(void **state) {
    const subject *s = *state;
    char path[300], part[300], list[300], data[300];
    name_file(s->place.dataset, "data.mdb", data);
    const uint64_t bytes = file_bytes(data);

    interrupt_at(s, 2 * BLOCK, path);
    name_file(path, "data.mdb.part", part);
    name_file(path, "stage.list", list);
    assert_int_equal(truncate(list, (off_t)file_bytes(list) - 3), 0);
    assert_int_equal(truncate(part, (off_t)bytes), 0);
    assert_int_equal(go_on(s), bytes - BLOCK);

    bpt_dir_remove(path);
    interrupt_at(s, 2 * BLOCK, path);
    assert_int_equal(truncate(part, 2 * BLOCK - 1), 0);
    assert_int_equal(go_on(s), bytes - BLOCK);

    bpt_dir_remove(path);
    interrupt_at(s, 2 * BLOCK, path);
    flip(part, 17);
    assert_int_equal(go_on(s), bytes);

    bpt_dir_remove(path);
    interrupt_at(s, 2 * BLOCK, path);
    flip(list, 5); /* not its list */
    assert_int_equal(go_on(s), bytes);
}

/* ---- what is altered ---- */

static void test_altered(void **state) {
    const subject *s = *state;
    char path[300], data[300];
    make_copy(s, path);
    name_file(path, "data.mdb", data);
    const uint64_t bytes = file_bytes(data);
    alter(data, 2 * BLOCK + 5);
    assert_int_equal(go_on(s), bytes - 2 * BLOCK);
    alter(data, bytes - 1);
    assert_int_equal(go_on(s), bytes - 2 * BLOCK);
    alter(data, 0);
    assert_int_equal(go_on(s), bytes);
    assert_int_equal(truncate(data, (off_t)bytes - 1), 0);
    assert_int_equal(go_on(s), bytes - 2 * BLOCK);
    assert_int_equal(truncate(data, (off_t)bytes + 1), 0); /* more than there should be */
    assert_int_equal(go_on(s), 0);
    assert_int_equal(go_on(s), 0);
    /* Touched, and what it was. */
    assert_int_equal(utimensat(AT_FDCWD, data, NULL, 0), 0);
    assert_int_equal(go_on(s), 0);
}

/* Damage that shows in no times is told of by who reads. */
static void test_doubted(void **state) {
    const subject *s = *state;
    char path[300], seal[300];
    make_copy(s, path);
    name_file(path, "stage.seal", seal);
    bpt_stage *stage = open_stage(s);
    make_whole(stage);
    bpt_stage_doubt(stage);
    assert_false(bpt_path_exists(seal));
    bpt_stage_close(stage);
    assert_int_equal(go_on(s), 0);
    assert_true(bpt_path_exists(seal));
}

/* A copy that is not right cannot be made anew under those who use it. */
static void test_altered_in_use(void **state) {
    const subject *s = *state;
    char data[300];
    bpt_stage *user = open_stage(s), *other = open_stage(s);
    make_whole(user);
    name_file(bpt_stage_path(user), "data.mdb", data);
    alter(data, 100);
    bpt_status status = BPT_OK;
    while (status == BPT_OK) status = bpt_stage_advance(other, 0);
    assert_int_equal(status, BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "in use"));
    assert_true(bpt_error_last()->hint[0] != '\0');
    bpt_stage_close(user);
    bpt_stage_close(other);
    assert_true(go_on(s) > 0);
}

/* ---- several at a time ---- */

static void test_two_makers(void **state) {
    const subject *s = *state;
    bpt_stage *first = open_stage(s), *second = open_stage(s);
    advance_to(first, BLOCK);
    for (int i = 0; i < 300; i++) { /* more often than it is patient with users */
        succeed(bpt_stage_advance(second, 0));
        assert_true(bpt_stage_look(second).waits);
        assert_int_equal(bpt_stage_look(second).done, 0);
    }
    make_whole(first);
    make_whole(second);
    assert_int_equal(bpt_stage_look(second).copied, 0);
    check_copy(s, bpt_stage_path(second), 1);
    bpt_stage_close(first);
    bpt_stage_close(second);
}

static void test_maker_dies(void **state) {
    const subject *s = *state;
    bpt_stage *first = open_stage(s), *second = open_stage(s);
    advance_to(first, BLOCK);
    succeed(bpt_stage_advance(second, 0));
    bpt_stage_close(first);
    make_whole(second);
    assert_int_equal(bpt_stage_look(second).copied, bpt_stage_look(second).bytes - BLOCK);
    check_copy(s, bpt_stage_path(second), 1);
    bpt_stage_close(second);
}

static void test_join(void **state) {
    const subject *s = *state;
    bpt_stage *maker = open_stage(s), *other = open_stage(s);
    make_whole(maker);
    const uint64_t identity = bpt_stage_look(maker).identity;
    succeed(bpt_stage_join(other, identity));
    assert_true(bpt_stage_look(other).whole);
    assert_string_equal(bpt_stage_path(other), bpt_stage_path(maker));
    bpt_stage_close(other);
    other = open_stage(s);
    assert_int_equal(bpt_stage_join(other, identity + 1), BPT_EIO);
    bpt_stage_close(other);
    bpt_stage_close(maker);
}

/* ---- a dataset that changes ---- */

static void add_split(const subject *s, const char *name, uint32_t n) {
    const bpt_writer_options test = made_options(name, 1, H, W);
    succeed(made_split(s->place.dataset, &test, 2, n));
}

static void test_changed(void **state) {
    const subject *s = *state;
    char path[300];
    make_copy(s, path);
    add_split(s, "test", 50);
    assert_true(go_on(s) > 0);
    assert_int_equal(count_copies(s), 1); /* the earlier one is removed */
    assert_false(bpt_path_exists(path));
    /* Nor do a touched file and one with two labels exchanged pass for what was copied. */
    char data[300];
    name_file(s->place.dataset, "data.mdb", data);
    assert_int_equal(utimensat(AT_FDCWD, data, NULL, 0), 0);
    assert_true(go_on(s) > 0);
    assert_int_equal(count_copies(s), 1);
}

static void test_changed_in_use(void **state) {
    const subject *s = *state;
    bpt_stage *user = open_stage(s);
    make_whole(user);
    add_split(s, "test", 50);
    assert_true(go_on(s) > 0);
    assert_int_equal(count_copies(s), 2);
    bpt_dataset *dataset;
    succeed(bpt_dataset_open(bpt_stage_path(user), &dataset));
    bpt_dataset_close(dataset);
    bpt_stage_close(user);
}

static void test_changed_meanwhile(void **state) {
    const subject *s = *state;
    bpt_stage *stage = open_stage(s);
    advance_to(stage, BLOCK);
    add_split(s, "test", 50);
    assert_int_equal(bpt_stage_advance(stage, INFINITY), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "has changed while it was copied"));
    assert_true(bpt_error_last()->hint[0] != '\0');
    bpt_stage_close(stage);
    assert_true(go_on(s) > 0);
    assert_int_equal(count_copies(s), 1);
}

/* Another dataset of the same name, in another folder: nobody's copy is taken, nor removed. */
static void test_namesake(void **state) {
    const subject *s = *state;
    char path[300];
    subject other = *s;
    make_copy(s, path);
    assert_true(snprintf(other.place.dataset, sizeof other.place.dataset, "%s/b/data",
                         s->place.directory) < (int)sizeof other.place.dataset);
    const bpt_writer_options train = made_options("train", 1, H, W);
    succeed(made_split(other.place.dataset, &train, 1, TRAIN));
    add_split(&other, "test", 20);
    assert_true(go_on(&other) > 0);
    assert_int_equal(count_copies(s), 2);
    assert_int_equal(go_on(s), 0);
}

/* ---- a look before ---- */

static void test_need(void **state) {
    const subject *s = *state;
    char path[300], data[300];
    uint64_t need, first;
    name_file(s->place.dataset, "data.mdb", data);
    succeed(bpt_stage_need(s->place.dataset, s->dir, &first));
    /* and its list, its seal and a lock file */
    assert_in_range(first, file_bytes(data) + LOCK_FILE, file_bytes(data) + 2 * LOCK_FILE);
    assert_false(bpt_path_exists(s->dir));
    interrupt_at(s, BLOCK, path);
    succeed(bpt_stage_need(s->place.dataset, s->dir, &need));
    assert_int_equal(need, first - BLOCK);
    assert_true(go_on(s) > 0);
    succeed(bpt_stage_need(s->place.dataset, s->dir, &need));
    assert_int_equal(need, 0);
}

/* Any allocation may fail: an error, and the next attempt goes on. */
static void test_memory(void **state) {
    const subject *s = *state;
    for (int64_t n = 0;; n++) {
        bpt_stage *stage = NULL;
        const uint64_t live = bpt_memory_live();
        bpt_memory_fail_at(n);
        bpt_status status = bpt_stage_open(s->place.dataset, s->dir, &stage);
        if (status == BPT_OK) status = bpt_stage_advance(stage, INFINITY);
        bpt_memory_fail_at(-1);
        const bool whole = status == BPT_OK;
        if (whole) check_copy(s, bpt_stage_path(stage), 1);
        bpt_stage_close(stage);
        assert_int_equal(bpt_memory_live(), live);
        if (whole && n > 60) break; /* more than there are */
        if (!whole) assert_int_equal(status, BPT_ENOMEM);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_copy),           TEST(test_place),
        TEST(test_missing),        TEST(test_interrupted),
        TEST(test_torn),           TEST(test_altered),
        TEST(test_doubted),        TEST(test_altered_in_use),
        TEST(test_two_makers),     TEST(test_maker_dies),
        TEST(test_join),           TEST(test_changed),
        TEST(test_changed_in_use), TEST(test_changed_meanwhile),
        TEST(test_namesake),       TEST(test_need),
        TEST(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
