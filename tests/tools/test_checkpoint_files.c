/* The folder of checkpoints, where the disk fails at the last moment. */
#include "base/file.h"
#include "base/memory.h"
#include "tools/train/run/checkpoint_files.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static char folder[] = "/tmp/bpt-test-XXXXXX", old[64], new[64];
static int syncs_that_succeed, syncs_that_fail;

bpt_status __real_bpt_dir_sync(const char *path);
bpt_status __wrap_bpt_dir_sync(const char *path);
bpt_status __wrap_bpt_dir_sync(const char *path) {
    if (syncs_that_fail == 0) return __real_bpt_dir_sync(path);
    if (syncs_that_succeed > 0) {
        syncs_that_succeed--;
        return __real_bpt_dir_sync(path);
    }
    syncs_that_fail--;
    return bpt_fail(BPT_EIO, "cannot write %s", path);
}

/* The file that cannot be read; NULL: none. */
static const char *unread;

bpt_status __real_bpt_file_read(const char *path, size_t max, char **text, size_t *size);
bpt_status __wrap_bpt_file_read(const char *path, size_t max, char **text, size_t *size);
bpt_status __wrap_bpt_file_read(const char *path, size_t max, char **text, size_t *size) {
    if (!unread || strcmp(path, unread) != 0) return __real_bpt_file_read(path, max, text, size);
    return bpt_fail(BPT_EIO, "cannot read %s", path);
}

static void make_whole(const char *path, const char *text) {
    char file[96];
    bpt_checkpoint_file listed = {0};
    snprintf(file, sizeof file, "%s/rank-0.json", path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(bpt_file_write(file, text, strlen(text)), BPT_OK);
    assert_int_equal(bpt_checkpoint_measure(path, "rank-0.json", &listed), BPT_OK);
    assert_int_equal(bpt_checkpoint_write_done(path, 1, &listed, 1), BPT_OK);
}

static void check_holds(const char *path, const char *expected) {
    char file[96], *text;
    size_t size;
    snprintf(file, sizeof file, "%s/rank-0.json", path);
    assert_int_equal(bpt_file_read(file, 100, &text, &size), BPT_OK);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
    bpt_free(text);
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(old, sizeof old, "%s/step-00000001", folder);
    snprintf(new, sizeof new, "%s/step-00000001.part", folder);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    bpt_dir_remove(folder);
    return 0;
}

/* The one that was there is there again, whole, and the new one where it was made. */
static void test_a_sync_that_fails_moves_nothing(void **state) {
    (void)state;
    make_whole(old, "old");
    make_whole(new, "new");
    syncs_that_fail = 1;
    assert_int_equal(bpt_checkpoint_place(folder, new, old), BPT_EIO);
    check_holds(old, "old");
    assert_int_equal(bpt_checkpoint_verify(old, 1), BPT_OK);
    check_holds(new, "new");
    assert_int_equal(bpt_checkpoint_place(folder, new, old), BPT_OK);
    check_holds(old, "new");
    assert_false(bpt_path_exists(new));
}

/* Behind the move, as the one that was there is removed: the new one is in its place. */
static void test_a_sync_that_fails_later_loses_nothing(void **state) {
    (void)state;
    char aside[80];
    snprintf(aside, sizeof aside, "%s.old", old);
    make_whole(new, "newer");
    syncs_that_succeed = 1;
    syncs_that_fail = 1;
    assert_int_equal(bpt_checkpoint_place(folder, new, old), BPT_OK);
    assert_int_equal(syncs_that_fail, 0);
    check_holds(old, "newer");
    assert_int_equal(bpt_checkpoint_verify(old, 0), BPT_OK);
    assert_false(bpt_path_exists(new));
    assert_true(bpt_path_exists(aside));
    make_whole(new, "newest");
    assert_int_equal(bpt_checkpoint_place(folder, new, old), BPT_OK);
    check_holds(old, "newest");
    assert_false(bpt_path_exists(aside));
}

static void age(const char *checkpoint, time_t seconds) {
    char done[100];
    snprintf(done, sizeof done, "%s/DONE", checkpoint);
    const struct timespec at[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, done, at, 0), 0);
}

/* The second is damaged, and the newest by its time. @param[out] first,second shape [64] */
static void make_two(char *first, char *second) {
    char done[100];
    snprintf(first, 64, "%s/step-00000001", folder);
    snprintf(second, 64, "%s/step-00000002", folder);
    make_whole(first, "first");
    make_whole(second, "second");
    snprintf(done, sizeof done, "%s/DONE", second);
    assert_int_equal(truncate(done, 5), 0);
    age(first, 1000);
    age(second, 2000);
}

/* One that is damaged is the newest by its time, or nothing hangs on it. */
static void test_a_damaged_list(void **state) {
    (void)state;
    char first[64], second[64], names[100], *found;
    uint64_t serial;
    assert_int_equal(bpt_checkpoint_remove(old), BPT_OK);
    make_two(first, second);
    assert_int_equal(bpt_checkpoint_next_serial(folder, &serial), BPT_OK);
    assert_int_equal(serial, 2); /* that of the second is not known */
    assert_int_equal(bpt_checkpoint_find(folder, NULL, &found), BPT_OK);
    assert_string_equal(found, second);
    bpt_free(found);
    age(first, 3000);
    assert_int_equal(bpt_checkpoint_find(folder, NULL, &found), BPT_OK);
    assert_string_equal(found, first);
    bpt_free(found);
    assert_int_equal(bpt_checkpoint_find(folder, "step-00000001", &found), BPT_OK);
    assert_null(found); /* the second is of no use */
    assert_int_equal(bpt_checkpoint_find(folder, "step-00000002", &found), BPT_OK);
    assert_string_equal(found, first);
    bpt_free(found);
    assert_int_equal(bpt_checkpoint_passed_over(folder, "step-00000001", names, sizeof names),
                     BPT_OK);
    assert_string_equal(names, "step-00000002");
    assert_int_equal(bpt_checkpoint_passed_over(folder, "step-00000002", names, sizeof names),
                     BPT_OK);
    assert_string_equal(names, "");
    uint64_t *bytes, goes;
    size_t n;
    assert_int_equal(bpt_checkpoint_bytes(folder, 2, &bytes, &n, &goes), BPT_OK);
    assert_true(n == 2 && bytes[0] > 0 && bytes[1] > 0 && goes == 0);
    bpt_free(bytes);
    assert_int_equal(bpt_checkpoint_bytes(folder, 1, &bytes, &n, &goes), BPT_OK);
    assert_true(n == 1 && goes > 0);
    bpt_free(bytes);
    assert_int_equal(bpt_checkpoint_bytes("/not/there", 1, &bytes, &n, &goes), BPT_OK);
    assert_true(n == 0 && goes == 0);
    bpt_free(bytes);
    assert_int_equal(bpt_checkpoint_remove(first), BPT_OK);
    assert_int_equal(bpt_checkpoint_next_serial(folder, &serial), BPT_OK);
    assert_int_equal(serial, 1);
    assert_int_equal(bpt_checkpoint_remove(second), BPT_OK);
}

/* Where the clock was ahead when it was made, say. */
static void test_a_damaged_one_takes_no_place(void **state) {
    (void)state;
    char first[64], second[64];
    make_two(first, second);
    assert_int_equal(bpt_checkpoint_prune(folder, 1), BPT_OK);
    check_holds(first, "first");
    check_holds(second, "second");
    age(first, 3000); /* another one is newer by now */
    assert_int_equal(bpt_checkpoint_prune(folder, 1), BPT_OK);
    check_holds(first, "first");
    assert_false(bpt_path_exists(second));
    assert_int_equal(bpt_checkpoint_remove(first), BPT_OK);
}

/* A job was killed before it could rename what was whole. */
static void test_what_an_interrupted_job_left(void **state) {
    (void)state;
    char part[64], placed[64];
    snprintf(part, sizeof part, "%s/step-00000003.part", folder);
    snprintf(placed, sizeof placed, "%s/step-00000003", folder);
    assert_int_equal(bpt_checkpoint_clear(folder, part, placed), BPT_OK);
    make_whole(part, "left");
    assert_int_equal(bpt_checkpoint_clear(folder, part, placed), BPT_OK);
    check_holds(placed, "left"); /* the only one, perhaps */
    assert_false(bpt_path_exists(part));
    make_whole(part, "again");
    assert_int_equal(bpt_checkpoint_clear(folder, part, placed), BPT_OK);
    check_holds(placed, "left");
    assert_false(bpt_path_exists(part));
    assert_int_equal(bpt_checkpoint_remove(placed), BPT_OK);
    assert_int_equal(mkdir(part, 0777), 0); /* not whole */
    assert_int_equal(bpt_checkpoint_clear(folder, part, placed), BPT_OK);
    assert_false(bpt_path_exists(part) || bpt_path_exists(placed));
}

/* Copies and links that a user has made are left alone. */
static void test_names_of_users(void **state) {
    (void)state;
    char first[64], copy[64], link[64], *found;
    snprintf(first, sizeof first, "%s/step-00000001", folder);
    snprintf(copy, sizeof copy, "%s/step-00000001.bak", folder);
    snprintf(link, sizeof link, "%s/step-latest", folder);
    make_whole(first, "first");
    make_whole(copy, "copy");
    assert_int_equal(symlink("step-00000001", link), 0);
    assert_int_equal(bpt_checkpoint_find(folder, NULL, &found), BPT_OK);
    assert_string_equal(found, first);
    bpt_free(found);
    assert_int_equal(bpt_checkpoint_prune(folder, 1), BPT_OK);
    check_holds(first, "first");
    check_holds(copy, "copy");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(bpt_checkpoint_remove(first), BPT_OK);
    assert_int_equal(bpt_checkpoint_remove(copy), BPT_OK);
}

/* One whose list cannot be read for now may be sound: nothing is chosen, and nothing removed. */
static void test_a_list_that_cannot_be_read(void **state) {
    (void)state;
    char first[64], second[64], done[100], *found;
    snprintf(first, sizeof first, "%s/step-00000001", folder);
    snprintf(second, sizeof second, "%s/step-00000002", folder);
    make_whole(first, "first");
    make_whole(second, "second");
    snprintf(done, sizeof done, "%s/DONE", second);
    unread = done;
    assert_int_equal(bpt_checkpoint_find(folder, NULL, &found), BPT_EIO);
    assert_int_equal(bpt_checkpoint_prune(folder, 1), BPT_EIO);
    unread = NULL;
    check_holds(first, "first");
    check_holds(second, "second");
}

/* By a run that goes on, between finding it and reading it. */
static void test_one_that_was_removed_meanwhile(void **state) {
    (void)state;
    char path[64], done[100];
    snprintf(path, sizeof path, "%s/step-00000003", folder);
    snprintf(done, sizeof done, "%s/DONE", path);
    make_whole(path, "third");
    assert_int_equal(unlink(done), 0);
    assert_int_equal(bpt_checkpoint_verify(path, 0), BPT_ENOENT);
    assert_non_null(strstr(bpt_error_last()->hint, "has removed it meanwhile: try again"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sync_that_fails_moves_nothing),
        cmocka_unit_test(test_a_sync_that_fails_later_loses_nothing),
        cmocka_unit_test(test_a_damaged_list),
        cmocka_unit_test(test_a_damaged_one_takes_no_place),
        cmocka_unit_test(test_what_an_interrupted_job_left),
        cmocka_unit_test(test_names_of_users),
        cmocka_unit_test(test_a_list_that_cannot_be_read),
        cmocka_unit_test(test_one_that_was_removed_meanwhile),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
