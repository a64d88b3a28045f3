/* Who reads a dataset beside others: through a link, where writers do not see it; where readers
 * were killed; and in a container whose processes have numbers of their own. ctest: TIMEOUT=120 */
#include "base/file.h"
#include "base/memory.h"
#include "tests/storage/made_dataset.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 4000, N_KILLED = 600 };

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

static bpt_status write_train(uint32_t salt) {
    bpt_writer_options o = made_options("train", 1, 16, 16);
    o.replace = salt > 1;
    return made_split(place.dataset, &o, salt, N);
}

/* ---- links ---- */

/* @return records of the first salt, up to where one cannot be read */
static uint32_t readable(const bpt_dataset *dataset, const bpt_split *split, bpt_status *status) {
    const uint8_t *pixels;
    uint32_t label;
    for (uint32_t i = 0; i < N; i++) {
        *status = bpt_dataset_get(dataset, split, i, &pixels, &label);
        if (*status != BPT_OK) return i;
        for (size_t p = 0; p < 256; p++) assert_int_equal(pixels[p], made_pixel(1, i, p));
        assert_int_equal(label, made_label(1, i, 3));
    }
    return N;
}

/* Records that were good are gone with their pages, and the reader has to hear of it. */
static void check_link(int (*make_link)(const char *from, const char *to)) {
    char file[100], folder[100], linked[120];
    bpt_dataset *dataset;
    const bpt_split *split;
    bpt_status status;
    assert_int_equal(write_train(1), BPT_OK);
    snprintf(file, sizeof file, "%s/data.mdb", place.dataset);
    snprintf(folder, sizeof folder, "%s/link", place.directory);
    snprintf(linked, sizeof linked, "%s/data.mdb", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(make_link(file, linked), 0);
    assert_int_equal(bpt_dataset_open(folder, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    assert_int_equal(readable(dataset, split, &status), N);
    if (make_link == link) assert_int_equal(unlink(linked), 0); /* or nobody may write */
    for (uint32_t salt = 2; salt < 6; salt++) assert_int_equal(write_train(salt), BPT_OK);
    assert_true(readable(dataset, split, &status) < N);
    assert_int_equal(status, BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "was written to while split train was read"));
    bpt_dataset_close(dataset);
}

static void reads_through_a_link(void **state) {
    (void)state;
    check_link(symlink);
}

static void reads_through_a_hard_link(void **state) {
    (void)state;
    check_link(link);
}

/* ---- killed readers ---- */

static void die_as_reader(void) {
    bpt_dataset *dataset;
    if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) _exit(1);
    kill(getpid(), SIGKILL);
}

static void slots_of_killed_readers_are_given_back(void **state) {
    (void)state;
    bpt_dataset *dataset, *late;
    assert_int_equal(write_train(1), BPT_OK);
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    for (int i = 0; i < N_KILLED; i++) {
        int how;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) die_as_reader();
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
    }
    assert_int_equal(bpt_dataset_open(place.dataset, &late), BPT_OK);
    bpt_dataset_close(late);
    assert_int_equal(write_train(2), BPT_OK);
    bpt_dataset_close(dataset);
}

/* ---- containers ---- */

enum { UNABLE = 77 };

static int ends[2]; /* of the test, and of who holds the dataset */

/* Runs a function as process number 1 of a namespace of its own. @return the child to wait for */
static pid_t run_as_first(int (*function)(void)) {
    const pid_t child = fork();
    if (child != 0) return child;
    close(ends[0]);
    if (unshare(CLONE_NEWPID) != 0) _exit(UNABLE);
    const pid_t first = fork();
    if (first == 0) _exit(getpid() == 1 ? function() : UNABLE);
    int how;
    if (first < 0 || waitpid(first, &how, 0) != first || !WIFEXITED(how)) _exit(1);
    _exit(WEXITSTATUS(how));
}

/* Has the dataset open until the test closes its end. */
static int hold(void) {
    bpt_dataset *dataset;
    char byte;
    if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) return 1;
    if (write(ends[1], "", 1) != 1 || read(ends[1], &byte, 1) != 0) return 2;
    bpt_dataset_close(dataset);
    return 0;
}

static int read_and_write(void) {
    bpt_dataset *dataset;
    const bpt_split *split;
    if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) return 1;
    if (bpt_dataset_find(dataset, "train", &split) != BPT_OK) return 2;
    if (made_equal(dataset, split, 1) != N) return 3;
    bpt_dataset_close(dataset);
    if (write_train(2) != BPT_EIO) return 4;
    return strstr(bpt_error_last()->text, "has the number of this one, 1,") ? 0 : 5;
}

static int status_of(pid_t child) {
    int how;
    return waitpid(child, &how, 0) == child && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void processes_may_have_one_number(void **state) {
    (void)state;
    char byte;
    assert_int_equal(write_train(1), BPT_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t holder = run_as_first(hold);
    close(ends[1]);
    const bool held = read(ends[0], &byte, 1) == 1;
    const int other = held ? status_of(run_as_first(read_and_write)) : 0;
    close(ends[0]);
    const int status = status_of(holder);
    if (status == UNABLE) skip(); /* namespaces are root's */
    assert_true(held);
    assert_int_equal(status, 0);
    assert_int_equal(other, 0);
    assert_int_equal(write_train(2), BPT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_through_a_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_through_a_hard_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slots_of_killed_readers_are_given_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_may_have_one_number, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
