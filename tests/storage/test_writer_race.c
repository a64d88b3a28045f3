/* Two writers of one folder: what one has committed outlives the other's failure, and a lock that
 * was taken of a file that is gone is none. Somebody else acts at the moment when a writer is about
 * to lock, in place of luck. ctest: TIMEOUT=60 */
#include "base/file.h"
#include "base/memory.h"
#include "tests/storage/made_dataset.h"

#include <sys/file.h>
#include <sys/syscall.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static made_place place;
static void (*before_lock)(void); /* once */

/* In place of the C library's. */
int flock(int fd, int operation) {
    void (*const act)(void) = before_lock;
    before_lock = NULL;
    if (act) act();
    return (int)syscall(SYS_flock, fd, operation);
}

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

static bpt_writer_options small(const char *split) {
    return made_options(split, 1, 8, 8);
}

static void commit_train(void) {
    const bpt_writer_options o = small("train");
    assert_int_equal(made_split(place.dataset, &o, 1, 30), BPT_OK);
}

static void expect_train(uint64_t n_others) {
    bpt_dataset *dataset;
    const bpt_split *split;
    uint64_t n_records;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    assert_int_equal(made_equal(dataset, split, 1), 30);
    bpt_dataset_close(dataset);
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_OK);
    assert_int_equal(n_records, 30 + n_others);
}

/* Both have seen no folder; the one that comes second is refused. */
static void who_is_refused_removes_nothing(void **state) {
    (void)state;
    const bpt_writer_options o = small("train");
    bpt_writer *writer;
    before_lock = commit_train;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_EEXIST);
    expect_train(0);
}

static void who_gives_up_removes_nothing(void **state) {
    (void)state;
    const bpt_writer_options o = small("other");
    bpt_writer *writer;
    before_lock = commit_train;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    assert_int_equal(made_append(writer, &o, 2, 0, 10), BPT_OK);
    bpt_writer_close(writer);
    expect_train(0);
}

/* The folder, and the file that is about to be locked, go. */
static void give_up(void) {
    const bpt_writer_options o = small("train");
    bpt_writer *writer;
    assert_int_equal(bpt_dir_remove(place.dataset), BPT_OK);
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    bpt_writer_close(writer);
    assert_false(bpt_path_exists(place.dataset));
}

static bpt_writer *first; /* holds the new lock */

static void give_up_and_begin(void) {
    const bpt_writer_options o = small("train");
    give_up();
    assert_int_equal(bpt_writer_open(place.dataset, &o, &first), BPT_OK);
    assert_int_equal(made_append(first, &o, 1, 0, 30), BPT_OK);
}

static void a_lock_that_is_gone(void **state) {
    (void)state;
    const bpt_writer_options o = small("other");
    before_lock = give_up;
    assert_int_equal(made_split(place.dataset, &o, 2, 10), BPT_OK);
    commit_train();
    expect_train(10);
}

static void a_lock_that_another_has_anew(void **state) {
    (void)state;
    const bpt_writer_options o = small("other");
    bpt_writer *writer;
    before_lock = give_up_and_begin;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "is being written by another process"));
    assert_int_equal(bpt_writer_commit(first), BPT_OK);
    bpt_writer_close(first);
    expect_train(0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(who_is_refused_removes_nothing),
        TEST(who_gives_up_removes_nothing),
        TEST(a_lock_that_is_gone),
        TEST(a_lock_that_another_has_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
