/* Splits that appear together: both or none, whatever happens on the way. ctest: TIMEOUT=60 */
#include "base/file.h"
#include "base/memory.h"
#include "tests/storage/made_database.h"
#include "tests/storage/made_dataset.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FEW = 30, MANY = 70, FEW_SALT = 1, MANY_SALT = 2, MAX_SPLITS = 64 };

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

static bpt_writer_options half(const char *split, bool replace) {
    bpt_writer_options o = made_options(split, 1, 8, 8);
    o.replace = replace;
    return o;
}

/* @param[out] writer of "few", with its records, and of "many", with none */
static bpt_status begin_both(bool replace, bpt_writer **writer) {
    const bpt_writer_options few = half("few", replace), many = half("many", replace);
    BPT_TRY(bpt_writer_open(place.dataset, &few, writer));
    bpt_status status = made_append(*writer, &few, FEW_SALT, 0, FEW);
    if (status == BPT_OK) status = bpt_writer_next(*writer, &many);
    if (status != BPT_OK) bpt_writer_close(*writer);
    return status;
}

static bpt_status write_both(bool replace) {
    const bpt_writer_options many = half("many", replace);
    bpt_writer *writer;
    BPT_TRY(begin_both(replace, &writer));
    bpt_status status = made_append(writer, &many, MANY_SALT, 0, MANY);
    if (status == BPT_OK) status = bpt_writer_commit(writer);
    bpt_writer_close(writer);
    return status;
}

static uint32_t count_equal(const char *name, uint32_t salt) {
    bpt_dataset *dataset;
    const bpt_split *split;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    const uint32_t n =
        bpt_dataset_find(dataset, name, &split) == BPT_OK ? made_equal(dataset, split, salt) : 0;
    bpt_dataset_close(dataset);
    return n;
}

/* As another process sees it: one that writes a dataset may not open it as well. */
static int count_from_outside(const char *name, uint32_t salt) {
    int status;
    const pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (pid == 0) _exit((int)count_equal(name, salt));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_both(uint64_t n_others) {
    uint64_t n_records;
    assert_int_equal(count_equal("few", FEW_SALT), FEW);
    assert_int_equal(count_equal("many", MANY_SALT), MANY);
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_OK);
    assert_int_equal(n_records, FEW + MANY + n_others);
}

static void appear_together(void **state) {
    (void)state;
    const bpt_writer_options old = half("old", false);
    assert_int_equal(made_split(place.dataset, &old, 3, 10), BPT_OK);
    assert_int_equal(write_both(false), BPT_OK);
    expect_both(10);
    assert_int_equal(made_databases(place.dataset), 4);
}

static void of_a_new_dataset(void **state) {
    (void)state;
    assert_int_equal(write_both(false), BPT_OK);
    expect_both(0);
}

/* The only split that was there is replaced, so the dataset takes the shape of the new ones. */
static void take_another_shape(void **state) {
    (void)state;
    const bpt_writer_options few = made_options("few", 3, 5, 5), old = made_options("old", 3, 5, 5);
    bpt_writer *writer;
    assert_int_equal(made_split(place.dataset, &few, 4, 10), BPT_OK);
    assert_int_equal(write_both(false), BPT_EEXIST);
    assert_int_equal(write_both(true), BPT_OK);
    expect_both(0);
    assert_int_equal(bpt_writer_open(place.dataset, &old, &writer), BPT_EDATA);
}

static void unseen_before(void **state) {
    (void)state;
    const bpt_writer_options old = half("few", false);
    bpt_writer *writer;
    assert_int_equal(made_split(place.dataset, &old, 3, 10), BPT_OK);
    assert_int_equal(begin_both(true, &writer), BPT_OK);
    assert_int_equal(count_from_outside("few", 3), 10);
    bpt_writer_close(writer); /* given up: as if it had not been */
    assert_int_equal(count_equal("few", 3), 10);
    assert_int_equal(made_databases(place.dataset), 2);
    assert_int_equal(write_both(true), BPT_OK);
    expect_both(0);
}

static void refused_before_anything_is_there(void **state) {
    (void)state;
    const bpt_writer_options many = half("many", false);
    const struct {
        const char *name;
        bpt_status status;
    } wrong[] = {{"a/b", BPT_EUSAGE}, {"few", BPT_EUSAGE}, {"many", BPT_EEXIST}};
    assert_int_equal(made_split(place.dataset, &many, 3, 10), BPT_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const bpt_writer_options few = half("few", false), next = half(wrong[i].name, false);
        bpt_writer *writer;
        assert_int_equal(bpt_writer_open(place.dataset, &few, &writer), BPT_OK);
        assert_int_equal(bpt_writer_check_next(writer, &next), wrong[i].status);
        assert_int_equal(made_append(writer, &few, FEW_SALT, 0, FEW), BPT_OK);
        assert_int_equal(bpt_writer_next(writer, &next), wrong[i].status);
        bpt_writer_close(writer);
        assert_int_equal(count_equal("few", FEW_SALT), 0);
        assert_int_equal(count_equal("many", 3), 10);
    }
}

static void with_no_records(void **state) {
    (void)state;
    const bpt_writer_options few = half("few", false), many = half("many", false);
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &few, &writer), BPT_OK);
    assert_int_equal(bpt_writer_next(writer, &many), BPT_EDATA);
    bpt_writer_close(writer);
    assert_int_equal(begin_both(false, &writer), BPT_OK);
    assert_int_equal(bpt_writer_commit(writer), BPT_EDATA);
    bpt_writer_close(writer);
    assert_false(bpt_path_exists(place.dataset));
}

/* The last one that there is room for, and one more. */
static void count_for_the_limit_together(void **state) {
    (void)state;
    bpt_writer *writer;
    for (int i = 0; i < MAX_SPLITS - 1; i++) {
        char name[32];
        snprintf(name, sizeof name, "split%d", i);
        const bpt_writer_options o = half(name, false);
        assert_int_equal(made_split(place.dataset, &o, 3, 1), BPT_OK);
    }
    assert_int_equal(begin_both(false, &writer), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "which is the limit"));
    const bpt_writer_options last = half("few", false);
    assert_int_equal(made_split(place.dataset, &last, 3, 1), BPT_OK);
}

/* What is replaced together counts for nothing, and the second follows the first. */
static void replace_two(void **state) {
    (void)state;
    bpt_writer_options few = half("few", false), many = half("many", false);
    bpt_dataset *dataset;
    few.n_classes = many.n_classes = 10;
    assert_int_equal(made_split(place.dataset, &few, 4, 10), BPT_OK);
    assert_int_equal(made_split(place.dataset, &many, 5, 20), BPT_OK);
    few.append = many.append = true;
    assert_int_equal(made_split(place.dataset, &few, 4, 10), BPT_OK);
    assert_int_equal(made_split(place.dataset, &many, 5, 20), BPT_OK);
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_describe(dataset)->format, 3);
    bpt_dataset_close(dataset);
    assert_int_equal(write_both(true),
                     BPT_OK); /* of three classes, unnamed: those there are kept */
    expect_both(0);
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_describe(dataset)->format, 1);
    assert_int_equal(bpt_dataset_describe(dataset)->n_classes, 10);
    bpt_dataset_close(dataset);
    assert_int_equal(made_databases(place.dataset), 3);
}

static void killed_between(void **state) {
    (void)state;
    const bpt_writer_options old = half("few", false);
    assert_int_equal(made_split(place.dataset, &old, 3, 10), BPT_OK);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bpt_writer *writer;
        if (begin_both(true, &writer) == BPT_OK) raise(SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(count_equal("few", 3), 10);
    assert_int_equal(count_equal("many", MANY_SALT), 0);
    assert_int_equal(write_both(true), BPT_OK);
    expect_both(0);
    assert_int_equal(made_databases(place.dataset), 3);
}

static void any_failed_allocation(void **state) {
    (void)state;
    int64_t n = 0;
    for (bpt_status status = BPT_ENOMEM; status != BPT_OK; n++) {
        bpt_memory_fail_at(n);
        status = write_both(false);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), 0);
        assert_int_equal(bpt_path_exists(place.dataset), status == BPT_OK);
        assert_true(n < 1000);
    }
    assert_true(n > 30);
    expect_both(0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(appear_together),
        TEST(of_a_new_dataset),
        TEST(take_another_shape),
        TEST(unseen_before),
        TEST(refused_before_anything_is_there),
        TEST(with_no_records),
        TEST(count_for_the_limit_together),
        TEST(replace_two),
        TEST(killed_between),
        TEST(any_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
