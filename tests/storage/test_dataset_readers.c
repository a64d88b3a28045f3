/* Who reads a dataset beside others: through a link, where writers do not see it, also while it
 * opens it; where readers were killed; in a container whose processes have numbers of their own;
 * and beside programs with another LMDB. ld --wrap says when a dataset is being opened.
 * ctest: TIMEOUT=120 */
#include "base/file.h"
#include "base/memory.h"
#include "tests/storage/made_dataset.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <lmdb.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

static char folder[100], linked[120]; /* another name of the dataset, and of its file */

static void give_another_name(int (*make_link)(const char *from, const char *to)) {
    char file[100];
    snprintf(file, sizeof file, "%s/data.mdb", place.dataset);
    snprintf(folder, sizeof folder, "%s/link", place.directory);
    snprintf(linked, sizeof linked, "%s/data.mdb", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(make_link(file, linked), 0);
}

/* Records that were good are gone with their pages, and the reader has to hear of it. */
static void check_link(int (*make_link)(const char *from, const char *to)) {
    bpt_dataset *dataset;
    const bpt_split *split;
    bpt_status status;
    assert_int_equal(write_train(1), BPT_OK);
    give_another_name(make_link);
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

/* ---- others write while it is opened ---- */

static struct {
    bool forever; /* each time */
    int left;     /* calls of LMDB until others write; below 0: they do not */
    int n;        /* splits that they have stored */
} others = {.left = -1};

/* Whole splits of one image: what they are stored in is soon used again. */
static void write_others(void) {
    enum { MANY = 4 };
    for (int i = 0; i < MANY; i++) {
        char name[20];
        snprintf(name, sizeof name, "other%d", others.forever ? i : others.n);
        bpt_writer_options o = made_options(name, 1, 16, 16);
        o.replace = others.forever && others.n >= MANY;
        assert_int_equal(made_split(place.dataset, &o, 1, 1), BPT_OK);
        others.n++;
    }
}

int __real_mdb_dbi_open(MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *dbi);
int __wrap_mdb_dbi_open(MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *dbi);
int __wrap_mdb_dbi_open(MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *dbi) {
    static bool is_writer;
    if (!is_writer && others.left >= 0 && others.left-- == 0) {
        is_writer = true;
        write_others();
        is_writer = false;
        if (others.forever) others.left = 0;
    }
    return __real_mdb_dbi_open(txn, name, flags, dbi);
}

static void opens_while_others_write(void **state) {
    enum { CALLS = 3 }; /* of `meta`, for its bytes and its entries, and of the records */
    (void)state;
    bpt_dataset *dataset;
    const bpt_split *split;
    assert_int_equal(write_train(1), BPT_OK);
    give_another_name(symlink);
    for (int i = 0; i < CALLS; i++) {
        others.left = i;
        assert_int_equal(bpt_dataset_open(folder, &dataset), BPT_OK);
        assert_true(others.left < 0);
        assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
        assert_int_equal(made_equal(dataset, split, 1), N);
        bpt_dataset_close(dataset);
    }
}

static void others_write_faster_than_it_opens(void **state) {
    (void)state;
    bpt_dataset *dataset;
    assert_int_equal(write_train(1), BPT_OK);
    give_another_name(symlink);
    others.forever = true;
    others.left = others.n = 0;
    assert_int_equal(bpt_dataset_open(folder, &dataset), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "changes too fast to be read"));
    others.forever = false;
    others.left = -1;
}

/* ---- processes ---- */

enum { UNABLE = 77 };

static int ends[2] = {-1, -1}; /* of the test, and of who holds the dataset */

/* @return what the child returns, or -1 */
static int status_of(pid_t child) {
    int how;
    return waitpid(child, &how, 0) == child && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

typedef int (*body)(void);

static pid_t start(body function) {
    const pid_t child = fork();
    if (child != 0) return child;
    close(ends[0]);
    _exit(function());
}

/* As process number 1 of a namespace of its own. @return the child to wait for */
static pid_t start_as_first(body function) {
    const pid_t child = fork();
    if (child != 0) return child;
    close(ends[0]);
    if (unshare(CLONE_NEWPID) != 0) _exit(UNABLE);
    const pid_t first = fork();
    if (first == 0) _exit(getpid() == 1 ? function() : UNABLE);
    _exit(first < 0 ? 1 : status_of(first));
}

/* By a child, so that the test itself stays small: it forks hundreds of times, and each copies its
 * table of pages, of which a sanitizer has many. */
static int write_first(void) {
    return write_train(1) == BPT_OK ? 0 : 1;
}

static int open_and_close_often(void) {
    for (int i = 0; i < 300; i++) {
        bpt_dataset *dataset;
        if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) return 1;
        bpt_dataset_close(dataset);
    }
    return 0;
}

/* Whoever closes last of all takes nothing away from those that open meanwhile. */
static void come_and_go(void **state) {
    (void)state;
    pid_t readers[3];
    assert_int_equal(status_of(start(write_first)), 0);
    for (int r = 0; r < 3; r++) readers[r] = start(open_and_close_often);
    for (int r = 0; r < 3; r++) assert_int_equal(status_of(readers[r]), 0);
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

static pid_t holder;

/* @return whether a process has the dataset open now */
static bool begin_to_hold(pid_t (*start_it)(body)) {
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    holder = start_it(hold);
    close(ends[1]);
    return read(ends[0], &byte, 1) == 1;
}

static int end_to_hold(void) {
    close(ends[0]);
    ends[0] = -1;
    return status_of(holder);
}

/* ---- killed readers ---- */

/* Leaves its place in the table, as who is killed does. */
static int die_as_reader(void) {
    bpt_dataset *dataset;
    return bpt_dataset_open(place.dataset, &dataset) == BPT_OK ? 0 : 1;
}

static int read_all(void) {
    bpt_dataset *dataset;
    const bpt_split *split;
    if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) return 1;
    if (bpt_dataset_find(dataset, "train", &split) != BPT_OK) return 2;
    if (made_equal(dataset, split, 1) != N) return 3;
    bpt_dataset_close(dataset);
    return 0;
}

static int replace(void) {
    return write_train(2) == BPT_OK ? 0 : 1;
}

/* @return how many in the table are dead */
static int count_dead(void) {
    MDB_env *env;
    int dead = -1;
    if (mdb_env_create(&env) != 0 || mdb_env_open(env, place.dataset, MDB_RDONLY, 0666) != 0 ||
        mdb_reader_check(env, &dead) != 0)
        return UNABLE;
    mdb_env_close(env);
    return dead;
}

static void slots_of_killed_readers_are_given_back(void **state) {
    (void)state;
    assert_int_equal(status_of(start(write_first)), 0);
    assert_true(begin_to_hold(start));
    for (int i = 0; i < N_KILLED; i++) assert_int_equal(status_of(start(die_as_reader)), 0);
    assert_int_equal(status_of(start(read_all)), 0);
    assert_int_equal(status_of(start(die_as_reader)), 0);
    assert_int_equal(status_of(start(replace)), 0);
    assert_int_equal(status_of(start(count_dead)), 0);
    assert_int_equal(end_to_hold(), 0);
}

/* LMDB takes those of its own number for alive. */
static void slots_of_killed_twins_are_done_without(void **state) {
    (void)state;
    int status = 0;
    assert_int_equal(status_of(start(write_first)), 0);
    assert_true(begin_to_hold(start));
    for (int i = 0; i < N_KILLED && status == 0; i++)
        status = status_of(start_as_first(die_as_reader));
    if (status == 0) status = status_of(start_as_first(read_all));
    assert_int_equal(end_to_hold(), 0);
    if (status == UNABLE) skip(); /* namespaces are root's */
    assert_int_equal(status, 0);
}

/* ---- containers ---- */

static int read_and_be_refused(void) {
    const int status = read_all();
    if (status != 0) return status;
    if (write_train(2) != BPT_EIO) return 4;
    return strstr(bpt_error_last()->text, "has the number of this one, 1,") ? 0 : 5;
}

static void processes_may_have_one_number(void **state) {
    (void)state;
    assert_int_equal(write_train(1), BPT_OK);
    const bool held = begin_to_hold(start_as_first);
    const int other = held ? status_of(start_as_first(read_and_be_refused)) : 0;
    const int status = end_to_hold();
    if (status == UNABLE) skip(); /* namespaces are root's */
    assert_true(held);
    assert_int_equal(status, 0);
    assert_int_equal(other, 0);
    assert_int_equal(write_train(2), BPT_OK);
}

/* ---- other builds ---- */

/* The number of the layout, behind LMDB's magic. */
static void alter_lock_file(void) {
    enum { AT_FORMAT = 4 };
    char name[100];
    snprintf(name, sizeof name, "%s/lock.mdb", place.dataset);
    FILE *file = fopen(name, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, AT_FORMAT, SEEK_SET), 0);
    assert_int_equal(fputc(0x7F, file), 0x7F);
    assert_int_equal(fclose(file), 0);
}

static int read_and_be_refused_by_another_lmdb(void) {
    const int status = read_all();
    if (status != 0) return status;
    if (write_train(2) != BPT_EIO) return 4;
    return strstr(bpt_error_last()->text, "in use by a program whose LMDB") ? 0 : 5;
}

static void a_lock_file_of_another_lmdb_is_done_without(void **state) {
    (void)state;
    assert_int_equal(status_of(start(write_first)), 0);
    assert_true(begin_to_hold(start));
    alter_lock_file();
    assert_int_equal(status_of(start(read_and_be_refused_by_another_lmdb)), 0);
    assert_int_equal(end_to_hold(), 0);
    assert_int_equal(status_of(start(replace)), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slots_of_killed_readers_are_given_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slots_of_killed_twins_are_done_without, set_up, tear_down),
        cmocka_unit_test_setup_teardown(come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_through_a_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_through_a_hard_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(opens_while_others_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_write_faster_than_it_opens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_may_have_one_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lock_file_of_another_lmdb_is_done_without, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
