/* The lock of a run's folder: who has it, what others see of it, and file systems on which it does
 * not hold. */
#include "base/file.h"
#include "base/log.h"
#include "tools/train/run/run_lock.h"

#include <sys/stat.h>

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

static char folder[] = "/tmp/bpt-run-lock-XXXXXX";

/* ---- a file system that numbers a file otherwise by name: ld --wrap=stat ---- */

static int n_other_numbers; /* calls left that see another number */

int __real_stat(const char *path, struct stat *s);
int __wrap_stat(const char *path, struct stat *s);

int __wrap_stat(const char *path, struct stat *s) {
    const int result = __real_stat(path, s);
    if (n_other_numbers > 0) {
        n_other_numbers--;
        s->st_ino++;
    }
    return result;
}

/* ---- tests ---- */

static bool lock_is_there(void) {
    char path[64];
    snprintf(path, sizeof path, "%s/" BPT_RUN_LOCK_NAME, folder);
    return bpt_path_exists(path);
}

static void one_at_a_time(void **state) {
    (void)state;
    bpt_run_lock *lock = NULL, *second = NULL;
    assert_int_equal(bpt_run_lock_take(folder, &lock), BPT_OK);
    assert_int_equal(bpt_run_lock_take(folder, &second), BPT_EUSAGE);
    assert_null(second);
    assert_non_null(strstr(bpt_error_last()->text, bpt_run_lock_mark(lock)));
    bpt_run_lock_release(lock);
    assert_false(lock_is_there());
}

static void what_others_see(void **state) {
    (void)state;
    bpt_run_lock *lock = NULL;
    assert_int_equal(bpt_run_lock_look(folder, "process 1"), BPT_RUN_UNSEEN);
    assert_int_equal(bpt_run_lock_look(folder, ""), BPT_RUN_UNSEEN);
    assert_int_equal(bpt_run_lock_take(folder, &lock), BPT_OK);
    char mark[BPT_RUN_MARK_SIZE];
    snprintf(mark, sizeof mark, "process %ld on ", (long)getpid());
    assert_int_equal(strncmp(bpt_run_lock_mark(lock), mark, strlen(mark)), 0);
    assert_int_equal(bpt_run_lock_look(folder, bpt_run_lock_mark(lock)), BPT_RUN_SEEN);
    assert_int_equal(bpt_run_lock_look(folder, mark), BPT_RUN_OTHER);
    assert_int_equal(bpt_run_lock_look(folder, ""), BPT_RUN_SEEN);
    bpt_run_lock_release(lock);
    assert_int_equal(bpt_run_lock_look(folder, mark), BPT_RUN_UNSEEN);
}

/* Removed between open() and flock() now and then: the next file is the lock. */
static void removed_meanwhile(void **state) {
    (void)state;
    bpt_run_lock *lock = NULL;
    n_other_numbers = 3;
    assert_int_equal(bpt_run_lock_take(folder, &lock), BPT_OK);
    assert_int_equal(n_other_numbers, 0);
    bpt_run_lock_release(lock);
    assert_false(lock_is_there());
}

/* Never the same file: the run goes on without a lock, and leaves the file. */
static void never_the_same_file(void **state) {
    (void)state;
    enum { MANY = 1000000 };
    bpt_run_lock *lock = NULL;
    n_other_numbers = MANY;
    assert_int_equal(bpt_run_lock_take(folder, &lock), BPT_OK);
    assert_in_range(n_other_numbers, MANY - 1000, MANY - 2);
    assert_int_equal(bpt_run_lock_look(folder, bpt_run_lock_mark(lock)), BPT_RUN_SEEN);
    bpt_run_lock_release(lock);
    n_other_numbers = 0;
    assert_true(lock_is_there());
    assert_int_equal(bpt_dir_remove(folder), BPT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(what_others_see),
        cmocka_unit_test(removed_meanwhile),
        cmocka_unit_test(never_the_same_file),
    };
    bpt_log_setup(0, BPT_LOG_ERROR);
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)bpt_dir_remove(folder);
    return failed;
}
