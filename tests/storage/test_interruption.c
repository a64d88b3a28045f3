/* An ingestion that is killed, or that the disk fails, at any of its writes: the dataset is whole,
 * with or without the whole new split. This program's own pwrite, writev, fdatasync and fsync stand
 * before libc's, also for liblmdb, and count down to the failure. ctest: slow TIMEOUT=240 */
#include "storage/dataset/dataset.h"
#include "storage/writer/writer.h"
#include "tests/storage/made_dataset.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the failing disk ---- */

typedef enum disk_fault {
    DISK_SOUND,
    DISK_KILLS_BEFORE, /* SIGKILL before the call */
    DISK_KILLS_AFTER,
    DISK_IS_FULL,      /* this call and all after it fail with ENOSPC */
    DISK_CUTS_WRITES,  /* a write is done by half, later ones fail: a file system filling up */
    DISK_CANNOT_FLUSH, /* flushing fails with EIO */
} disk_fault;

static disk_fault fault;
static int calls_left; /* calls that still go well */
static int n_calls;    /* made since inject() */

static void inject(disk_fault f, int after) {
    fault = f;
    calls_left = after;
    n_calls = 0;
}

static bool is_due(void) {
    n_calls++;
    return fault != DISK_SOUND && calls_left-- <= 0;
}

static ssize_t write_through(int fd, const struct iovec *parts, int n, off_t at, bool has_place) {
    const bool due = is_due();
    if (due && fault == DISK_KILLS_BEFORE) raise(SIGKILL);
    if (due && fault == DISK_IS_FULL) {
        errno = ENOSPC;
        return -1;
    }
    struct iovec half;
    if (due && fault == DISK_CUTS_WRITES) {
        half = (struct iovec){parts[0].iov_base, parts[0].iov_len / 2};
        parts = &half;
        n = 1;
        fault = DISK_IS_FULL;
    }
    ssize_t done;
    if (has_place)
        done = syscall(SYS_pwrite64, fd, parts[0].iov_base, parts[0].iov_len, at);
    else
        done = syscall(SYS_writev, fd, parts, n);
    if (due && fault == DISK_KILLS_AFTER) raise(SIGKILL);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    const struct iovec part = {(void *)(uintptr_t)data, size};
    return write_through(fd, &part, 1, at, true);
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    return write_through(fd, parts, n, 0, false);
}

static int flush(long number, int fd) {
    const bool due = is_due();
    if (due && fault == DISK_KILLS_BEFORE) raise(SIGKILL);
    if (due && fault == DISK_CANNOT_FLUSH) {
        errno = EIO;
        return -1;
    }
    const int result = (int)syscall(number, fd);
    if (due && fault == DISK_KILLS_AFTER) raise(SIGKILL);
    return result;
}

int fdatasync(int fd) {
    return flush(SYS_fdatasync, fd);
}

int fsync(int fd) {
    return flush(SYS_fsync, fd);
}

/* ---- the ingestions ---- */

/* Records of 256 KiB, so that OLD and NEW of them take several transactions. */
enum { SIDE = 512, OLD = 3, NEW = 70, OLD_SALT = 1, NEW_SALT = 2 };

typedef enum scene { NEW_DATASET, NEW_SPLIT, REPLACED_SPLIT, EXTENDED_SPLIT, N_SCENES } scene;

static made_place place;

static bpt_writer_options options_of(scene s) {
    bpt_writer_options o = made_options(s == NEW_SPLIT ? "test" : "train", 1, SIDE, SIDE);
    o.replace = s == REPLACED_SPLIT;
    o.append = s == EXTENDED_SPLIT;
    return o;
}

/* A record is all one byte: quick to make and to check, since there are hundreds of ingestions. */
static uint8_t shade(uint32_t salt, uint32_t i) {
    return (uint8_t)(salt * 100 + i);
}

/* Where the split is extended, the first records are there. */
static uint32_t first_record(const bpt_writer_options *o) {
    return o->append ? OLD : 0;
}

static bpt_status write_split(const bpt_writer_options *o, uint32_t salt, uint32_t n) {
    static uint8_t pixels[SIDE * SIDE];
    bpt_writer *writer;
    BPT_TRY(bpt_writer_open(place.dataset, o, &writer));
    bpt_status status = BPT_OK;
    for (uint32_t i = first_record(o); i < n && status == BPT_OK; i++) {
        memset(pixels, shade(salt, i), sizeof pixels);
        status = bpt_writer_append(writer, pixels, i % 3);
    }
    if (status == BPT_OK) status = bpt_writer_commit(writer);
    bpt_writer_close(writer);
    return status;
}

static bool holds(const bpt_dataset *dataset, const char *name, uint32_t salt, uint32_t n) {
    const bpt_split *split;
    if (bpt_dataset_find(dataset, name, &split) != BPT_OK || split->count != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *pixels;
        uint32_t label;
        if (bpt_dataset_get(dataset, split, i, &pixels, &label) != BPT_OK) return false;
        if (label != i % 3 || pixels[0] != shade(salt, i)) return false;
        if (memcmp(pixels, pixels + 1, SIDE * SIDE - 1) != 0) return false;
    }
    return true;
}

/* What is extended begins as it goes on. */
static uint32_t old_salt(scene s) {
    return s == EXTENDED_SPLIT ? NEW_SALT : OLD_SALT;
}

static void prepare(scene s) {
    inject(DISK_SOUND, 0);
    place = made_place_create();
    if (s == NEW_DATASET) return;
    const bpt_writer_options o = made_options("train", 1, SIDE, SIDE);
    assert_int_equal(write_split(&o, old_salt(s), OLD), BPT_OK);
}

/* @return whether the new split is there; fails the test if anything is neither old nor new */
static bool inspect(scene s) {
    uint64_t n_records;
    const bpt_status verified = bpt_dataset_verify(place.dataset, NULL, NULL, &n_records);
    bpt_dataset *dataset;
    const bpt_status opened = bpt_dataset_open(place.dataset, &dataset);
    if (s == NEW_DATASET && opened == BPT_ENOENT) {
        assert_int_equal(verified, BPT_ENOENT);
        assert_int_equal(n_records, 0);
        return false;
    }
    if (verified != BPT_OK || opened != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(verified, BPT_OK);
    assert_int_equal(opened, BPT_OK);
    const bool is_new = holds(dataset, options_of(s).split, NEW_SALT, NEW);
    const size_t n_splits = bpt_dataset_describe(dataset)->n_splits;
    if (s == NEW_SPLIT || !is_new) assert_true(holds(dataset, "train", old_salt(s), OLD));
    assert_int_equal(n_splits, s == NEW_SPLIT && is_new ? 2 : 1);
    bpt_dataset_close(dataset);
    return is_new;
}

/* What comes after an interruption goes well, and leaves nothing of it. */
static void ingest_again(scene s) {
    bpt_writer_options o = options_of(s);
    bpt_dataset *dataset;
    bool is_extended = s == EXTENDED_SPLIT && bpt_dataset_open(place.dataset, &dataset) == BPT_OK;
    if (is_extended) {
        is_extended = holds(dataset, "train", NEW_SALT, NEW);
        bpt_dataset_close(dataset);
    }
    if (is_extended) o.append = false;
    o.replace = !o.append;
    assert_int_equal(write_split(&o, NEW_SALT, NEW), BPT_OK);
    assert_true(inspect(s));
}

/* Sanitizers, which look for other faults and are slow, see every third write. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 3 };
#else
enum { STRIDE = 1 };
#endif

static void survives_being_killed(scene s) {
    int n_with = 0, n_without = 0;
    for (int after = 0, ended = 0; !ended; after += STRIDE) {
        for (disk_fault f = DISK_KILLS_BEFORE; f <= DISK_KILLS_AFTER; f++) {
            prepare(s);
            const pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                const bpt_writer_options o = options_of(s);
                inject(f, after);
                _exit(write_split(&o, NEW_SALT, NEW) == BPT_OK ? 0 : 1);
            }
            int status;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            ended = WIFEXITED(status);
            if (ended) assert_int_equal(WEXITSTATUS(status), 0);
            const bool is_new = inspect(s);
            if (ended) assert_true(is_new);
            *(is_new ? &n_with : &n_without) += 1;
            if (after / STRIDE % 4 == 1 && !ended) ingest_again(s);
            made_place_remove(&place);
        }
        assert_true(after < 500);
    }
    print_message("killed %d times: %d without the new split, %d with all of it\n",
                  n_with + n_without - 2, n_without, n_with - 2);
    assert_true(n_without > 6 / STRIDE && n_with >= 2);
}

static void survives_a_failing_disk(scene s, disk_fault f) {
    bpt_status status = BPT_EIO;
    for (int after = 0; status != BPT_OK; after += STRIDE) {
        prepare(s);
        const bpt_writer_options o = options_of(s);
        inject(f, after);
        status = write_split(&o, NEW_SALT, NEW);
        inject(DISK_SOUND, 0);
        if (f == DISK_IS_FULL) assert_true(status == BPT_OK || status == BPT_ENOSPC);
        if (f != DISK_IS_FULL) assert_true(status == BPT_OK || bpt_status_exit(status) == 1);
        const bool is_new = inspect(s);
        if (status == BPT_OK) assert_true(is_new);
        if (after / STRIDE % 3 == 1) ingest_again(s);
        made_place_remove(&place);
        assert_true(after < 500);
    }
}

static void killed_making_a_dataset(void **state) {
    (void)state;
    survives_being_killed(NEW_DATASET);
}

static void killed_adding_a_split(void **state) {
    (void)state;
    survives_being_killed(NEW_SPLIT);
}

static void killed_replacing_a_split(void **state) {
    (void)state;
    survives_being_killed(REPLACED_SPLIT);
}

static void killed_extending_a_split(void **state) {
    (void)state;
    survives_being_killed(EXTENDED_SPLIT);
}

static void full_disk(void **state) {
    (void)state;
    for (scene s = 0; s < N_SCENES; s++) survives_a_failing_disk(s, DISK_IS_FULL);
}

static void filling_disk(void **state) {
    (void)state;
    for (scene s = 0; s < N_SCENES; s++) survives_a_failing_disk(s, DISK_CUTS_WRITES);
}

static void disk_that_cannot_flush(void **state) {
    (void)state;
    for (scene s = 0; s < N_SCENES; s++) survives_a_failing_disk(s, DISK_CANNOT_FLUSH);
}

int main(void) {
#ifdef __SANITIZE_THREAD__
    print_message("skipped: one thread only, and very slow under the thread sanitizer\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_making_a_dataset),
        cmocka_unit_test(killed_adding_a_split),
        cmocka_unit_test(killed_replacing_a_split),
        cmocka_unit_test(killed_extending_a_split),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(filling_disk),
        cmocka_unit_test(disk_that_cannot_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
