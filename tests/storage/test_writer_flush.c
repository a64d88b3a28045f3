/* What must be on disk when a commit returns: the names of a dataset's files, in its folder and the
 * folder's own. Only the order of flushes shows it, so fsync() is looked at. ctest: TIMEOUT=60 */
#include "base/file.h"
#include "storage/writer/writer.h"
#include "tests/storage/made_dataset.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_FLUSHES = 100 };

static ino_t flushed[MAX_FLUSHES];
static size_t n_flushed;

/* In place of the C library's. */
int fsync(int fd) {
    struct stat info;
    if (fstat(fd, &info) == 0 && n_flushed < MAX_FLUSHES) flushed[n_flushed++] = info.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

static bool was_flushed(const char *path) {
    struct stat info;
    bool found = false;
    assert_int_equal(stat(path, &info), 0);
    for (size_t i = 0; i < n_flushed; i++) found |= flushed[i] == info.st_ino;
    return found;
}

/* @param exists the dataset's folder is there before */
static void expect_flushed(bool exists) {
    const made_place place = made_place_create();
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    if (exists) assert_int_equal(bpt_dir_create(place.dataset, true), BPT_OK);
    n_flushed = 0;
    assert_int_equal(made_split(place.dataset, &o, 1, 10), BPT_OK);
    assert_true(was_flushed(place.dataset));
    assert_true(was_flushed(place.directory));
    made_place_remove(&place);
}

static void in_a_new_folder(void **state) {
    (void)state;
    expect_flushed(false);
}

static void in_folders_that_are_new_as_well(void **state) {
    (void)state;
    const made_place place = made_place_create();
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    char deep[120];
    snprintf(deep, sizeof deep, "%s/a/b/data", place.directory);
    n_flushed = 0;
    assert_int_equal(made_split(deep, &o, 1, 10), BPT_OK);
    for (int i = 0; i < 4; i++) { /* data, b, a and the one that was there */
        assert_true(was_flushed(deep));
        *strrchr(deep, '/') = '\0';
    }
    made_place_remove(&place);
}

static void in_a_folder_that_was_there(void **state) {
    (void)state;
    expect_flushed(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_new_folder),
        cmocka_unit_test(in_folders_that_are_new_as_well),
        cmocka_unit_test(in_a_folder_that_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
