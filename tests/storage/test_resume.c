/* Going on with a split whose writer was stopped: the result is that of one that was not; with
 * other terms, or where what is there is damaged, it is refused and stays.
 * ctest: TIMEOUT=60 */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/storage/made_database.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_encoded.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Records of 256 KiB: a chunk holds 60 or so. */
enum { SALT = 4, H = 512, W = 512, STOP = 150, ALL = 200 };

/* The linker sends pthread_create() of the library here. */
static bool threads_fail;
static int n_failed_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg) {
    if (!threads_fail) return __real_pthread_create(thread, attr, body, arg);
    n_failed_threads++;
    return EAGAIN;
}

static made_place place;
static char whole[100]; /* a dataset beside it, of a writer that was not stopped */

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

static bpt_writer_options with_terms(const char *split, bool append) {
    bpt_writer_options o = made_options(split, 1, H, W);
    o.terms = "--this\n--that 3\n";
    o.origin = "file a\n200 images\n";
    o.append = append;
    return o;
}

/* Item i is a record; each tenth is noted instead if @p noting. */
static bpt_status take_items(bpt_writer *writer, const bpt_writer_options *o, bool noting,
                             uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        char line[32];
        snprintf(line, sizeof line, "item %u is bad", i);
        if (noting && i % 10 == 0)
            BPT_TRY(bpt_writer_note(writer, line));
        else
            BPT_TRY(made_append(writer, o, SALT, i, i + 1));
    }
    return BPT_OK;
}

/* A child writes to STOP and is killed. */
static void write_and_die(const bpt_writer_options *o, bool noting) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bpt_writer *writer;
        if (bpt_writer_open(place.dataset, o, &writer) != BPT_OK) _exit(1);
        if (take_items(writer, o, noting, 0, STOP) != BPT_OK) _exit(2);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static bpt_writer *resume(const bpt_writer_options *o) {
    bpt_writer *writer = NULL;
    const bpt_status status = bpt_writer_resume(place.dataset, o, &writer);
    if (status != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(status, BPT_OK);
    return writer;
}

/* Does the rest, and commits. */
static void finish(bpt_writer *writer, const bpt_writer_options *o, bool noting) {
    const uint32_t from = (uint32_t)bpt_writer_position(writer);
    assert_int_equal(take_items(writer, o, noting, from, ALL), BPT_OK);
    assert_int_equal(bpt_writer_commit(writer), BPT_OK);
    bpt_writer_close(writer);
}

/* Of a journal nothing is left then. */
static void write_whole(const bpt_writer_options *o, bool noting) {
    bpt_writer *writer;
    const size_t before = bpt_path_exists(whole) ? made_databases(whole) : 1;
    assert_int_equal(bpt_writer_open(whole, o, &writer), BPT_OK);
    finish(writer, o, noting);
    assert_int_equal(made_databases(whole), before + 1);
}

static void expect_equal_files(const bpt_dataset *a, const bpt_split *x, const bpt_dataset *b,
                               const bpt_split *y, uint32_t i) {
    bpt_record p, q;
    uint32_t label, other;
    assert_int_equal(bpt_dataset_get_record(a, x, i, &p, &label), BPT_OK);
    assert_int_equal(bpt_dataset_get_record(b, y, i, &q, &other), BPT_OK);
    assert_int_equal(label, other);
    assert_int_equal(p.size, q.size);
    assert_memory_equal(p.data, q.data, p.size);
}

/* Everything that describes the datasets, byte by byte, and all records. */
static void expect_equal_datasets(void) {
    uint64_t n_records;
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_OK);
    bpt_dataset *a, *b;
    char *text_a, *text_b;
    size_t size_a, size_b;
    assert_int_equal(bpt_dataset_open(place.dataset, &a), BPT_OK);
    assert_int_equal(bpt_dataset_open(whole, &b), BPT_OK);
    assert_int_equal(bpt_dataset_export(a, &text_a, &size_a), BPT_OK);
    assert_int_equal(bpt_dataset_export(b, &text_b, &size_b), BPT_OK);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(text_a, text_b, size_a);
    for (size_t s = 0; s < bpt_dataset_describe(a)->n_splits; s++) {
        const bpt_split *x = &bpt_dataset_describe(a)->splits[s],
                        *y = &bpt_dataset_describe(b)->splits[s];
        for (uint32_t i = 0; i < x->count; i++) {
            if (bpt_dataset_describe(a)->encoded) {
                expect_equal_files(a, x, b, y, i);
                continue;
            }
            const uint8_t *p, *q;
            uint32_t label, other;
            assert_int_equal(bpt_dataset_get(a, x, i, &p, &label), BPT_OK);
            assert_int_equal(bpt_dataset_get(b, y, i, &q, &other), BPT_OK);
            assert_int_equal(label, other);
            assert_memory_equal(p, q, (size_t)H * W);
        }
    }
    bpt_free(text_a);
    bpt_free(text_b);
    bpt_dataset_close(a);
    bpt_dataset_close(b);
}

static void like_one_that_was_not_stopped(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    write_and_die(&o, false);
    bpt_writer *writer = resume(&o);
    assert_non_null(writer);
    const uint64_t position = bpt_writer_position(writer);
    assert_true(position > 50 && position <= STOP);
    assert_int_equal(bpt_writer_kept(writer), position);
    uint32_t C, h, w;
    bpt_writer_shape(writer, &C, &h, &w);
    assert_int_equal(C, 1);
    assert_int_equal(h, H);
    assert_int_equal(w, W);
    finish(writer, &o, false);
    write_whole(&o, false);
    expect_equal_datasets();
    assert_null(resume(&o)); /* nothing is left to go on with */
}

/* Stopped again and again, at each chunk; by closing, as who fails does. */
static void stopped_often(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    bpt_writer *writer;
    uint64_t position = 0;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(take_items(writer, &o, false, (uint32_t)position, (uint32_t)position + 64),
                         BPT_OK);
        assert_true(bpt_writer_kept(writer) > position);
        bpt_writer_close(writer);
        writer = resume(&o);
        assert_non_null(writer);
        assert_true(bpt_writer_position(writer) > position);
        position = bpt_writer_position(writer);
    }
    finish(writer, &o, false);
    write_whole(&o, false);
    expect_equal_datasets();
}

static void appending(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false), more = with_terms("train", true);
    assert_int_equal(made_split(place.dataset, &o, SALT, 10), BPT_OK);
    assert_int_equal(made_split(whole, &o, SALT, 10), BPT_OK);
    write_and_die(&more, false);
    bpt_dataset *dataset;
    const bpt_split *split;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    assert_int_equal(made_equal(dataset, split, SALT), 10);
    bpt_dataset_close(dataset);
    bpt_writer *writer = resume(&more);
    assert_non_null(writer);
    assert_true(bpt_writer_position(writer) > 50);
    finish(writer, &more, false);
    write_whole(&more, false);
    expect_equal_datasets();
}

/* What notes say, in order. */
typedef struct notes {
    uint32_t n;
    bool right;
} notes;

static bpt_status take_note(void *arg, const char *line) {
    notes *seen = arg;
    char expected[32];
    snprintf(expected, sizeof expected, "item %u is bad", 10 * seen->n++);
    seen->right = seen->right && strcmp(line, expected) == 0;
    return BPT_OK;
}

static void notes_are_kept(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    write_and_die(&o, true);
    bpt_writer *writer = resume(&o);
    assert_non_null(writer);
    notes seen = {.right = true};
    assert_int_equal(bpt_writer_notes(writer, take_note, &seen), BPT_OK);
    const uint64_t position = bpt_writer_position(writer);
    assert_true(seen.right);
    assert_int_equal(position, bpt_writer_kept(writer) + seen.n);
    assert_int_equal(seen.n, (position + 9) / 10); /* those of items 0, 10, ... before it */
    finish(writer, &o, true);
    write_whole(&o, true);
    expect_equal_datasets();
}

static void other_terms_are_refused(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    write_and_die(&o, false);
    bpt_writer *writer = NULL;
    bpt_writer_options other = o;
    other.terms = "--this\n--that 4\n";
    assert_int_equal(bpt_writer_resume(place.dataset, &other, &writer), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "\"--that 3\", this one has \"--that 4\""));
    assert_non_null(strstr(bpt_error_last()->hint, "leave out --resume"));
    other.terms = "--this\n";
    assert_int_equal(bpt_writer_resume(place.dataset, &other, &writer), BPT_EUSAGE);
    other = o;
    other.origin = "file a\n201 images\n";
    assert_int_equal(bpt_writer_resume(place.dataset, &other, &writer), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "it was \"200 images\", now \"201 images\""));
    other = o;
    other.append = true; /* even if its terms do not say so */
    assert_int_equal(bpt_writer_resume(place.dataset, &other, &writer), BPT_ENOENT);
    assert_null(writer);
    writer = resume(&o); /* it is all still there */
    assert_non_null(writer);
    finish(writer, &o, false);
    write_whole(&o, false);
    expect_equal_datasets();
}

static void nothing_to_go_on_with(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    assert_null(resume(&o));
    assert_false(bpt_path_exists(place.dataset));
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    assert_int_equal(take_items(writer, &o, false, 0, 5), BPT_OK); /* less than a chunk */
    assert_int_equal(bpt_writer_kept(writer), 0);
    bpt_writer_close(writer);
    assert_false(bpt_path_exists(place.dataset));
    const bpt_writer_options mute = made_options("train", 1, H, W);
    write_and_die(&mute, false); /* a writer without terms */
    assert_null(resume(&o));
    write_and_die(&o, false);
    assert_int_equal(made_split(place.dataset, &mute, SALT, 3), BPT_OK); /* drops it */
    assert_null(resume(&o));
    uint64_t n_records;
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_OK);
    assert_int_equal(n_records, 3);
}

/* A byte of a stored record changes while nobody writes. */
static void damage_is_seen(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    write_and_die(&o, false);
    char path[120], byte;
    snprintf(path, sizeof path, "%s/data.mdb", place.dataset);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 5 << 20, SEEK_SET), 0);
    assert_int_equal(fread(&byte, 1, 1, file), 1);
    byte ^= 1;
    assert_int_equal(fseek(file, 5 << 20, SEEK_SET), 0);
    assert_int_equal(fwrite(&byte, 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    bpt_writer *writer = NULL;
    assert_int_equal(bpt_writer_resume(place.dataset, &o, &writer), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->hint, "leave out --resume"));
    assert_null(writer);
    assert_int_equal(made_split(place.dataset, &o, SALT, 3), BPT_OK);
}

static struct rlimit file_limit; /* as it was */

static int set_up_limited(void **state) {
    signal(SIGXFSZ, SIG_IGN);
    return getrlimit(RLIMIT_FSIZE, &file_limit) == 0 ? set_up(state) : 1;
}

static int tear_down_limited(void **state) {
    signal(SIGXFSZ, SIG_DFL);
    return setrlimit(RLIMIT_FSIZE, &file_limit) == 0 ? tear_down(state) : 1;
}

static void limit_files(rlim_t bytes) {
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = file_limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Storing fails while the next chunk is filled: the writer says so at the end of that one, and
 * counts what was stored before. */
static void a_chunk_that_cannot_be_stored(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    assert_int_equal(take_items(writer, &o, false, 0, 70), BPT_OK); /* one chunk and more */
    const uint64_t n_kept = bpt_writer_kept(writer);
    assert_true(n_kept > 50 && n_kept <= 70);
    limit_files(20 << 20);
    assert_int_equal(take_items(writer, &o, false, 70, ALL), BPT_EIO);
    assert_true(bpt_writer_position(writer) > 2 * n_kept + n_kept / 2); /* the third is full */
    assert_non_null(strstr(bpt_error_last()->text, place.dataset));
    assert_non_null(strstr(bpt_error_last()->hint, "ulimit -f"));
    assert_int_equal(bpt_writer_commit(writer), BPT_EIO); /* nothing gets over it */
    assert_int_equal(bpt_writer_kept(writer), n_kept);
    bpt_writer_close(writer);
    limit_files(file_limit.rlim_cur);
    writer = resume(&o);
    assert_non_null(writer);
    assert_int_equal(bpt_writer_position(writer), n_kept);
    finish(writer, &o, false);
    write_whole(&o, false);
    expect_equal_datasets();
}

/* The source was read for a while before there was a writer: what changes meanwhile is not what was
 * stored. */
static void the_source_was_read_before(void **state) {
    (void)state;
    enum { AGO = 1000, SECOND = 1000000000 };
    bpt_writer_options o = with_terms("train", false);
    o.reading_ns = bpt_clock_ns() - (uint64_t)AGO * SECOND;
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    const struct timespec begun = bpt_writer_begun(writer);
    const time_t now = time(NULL);
    assert_true(begun.tv_sec <= now - AGO + 1 && begun.tv_sec > now - 2 * AGO);
    assert_true(begun.tv_nsec >= 0 && begun.tv_nsec < SECOND);
    bpt_writer_close(writer);
}

/* As who may write the folder, and does not own what is in it. */
static bool is_owner = true;
int __real_futimens(int fd, const struct timespec times[2]);
int __wrap_futimens(int fd, const struct timespec times[2]);
int __wrap_futimens(int fd, const struct timespec times[2]) {
    if (is_owner) return __real_futimens(fd, times);
    errno = EPERM;
    return -1;
}

static void another_owns_the_lock_file(void **state) {
    (void)state;
    bpt_writer_options o = with_terms("train", false);
    o.reading_ns = bpt_clock_ns() - 1;
    is_owner = false;
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    assert_true(bpt_writer_begun(writer).tv_sec > time(NULL) - 1000);
    bpt_writer_close(writer);
    is_owner = true;
}

/* Without a thread chunks are stored all the same. */
static void no_thread_to_store(void **state) {
    (void)state;
    const bpt_writer_options o = with_terms("train", false);
    n_failed_threads = 0;
    threads_fail = true;
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    assert_int_equal(take_items(writer, &o, false, 0, STOP), BPT_OK);
    const uint64_t n_kept = bpt_writer_kept(writer);
    assert_true(n_kept > STOP / 2);
    bpt_writer_close(writer);
    writer = resume(&o);
    assert_non_null(writer);
    assert_int_equal(bpt_writer_position(writer), n_kept);
    finish(writer, &o, false);
    threads_fail = false;
    assert_true(n_failed_threads >= 4); /* as many chunks */
    write_whole(&o, false);
    expect_equal_datasets();
}

/* One that is larger than a chunk: the next chunk is none the larger for it. */
static void a_record_larger_than_a_chunk(void **state) {
    (void)state;
    enum { LARGE = 20 << 20, SMALL = 100 << 10, N_BEFORE = 3, N_BEHIND = 400 };
    bpt_writer_options o = made_encoded_options("train", 3);
    o.terms = "a\n";
    o.origin = "b\n";
    uint8_t *bytes = calloc(1, LARGE);
    assert_non_null(bytes);
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    uint64_t before = 0, most = 0; /* records that a chunk adds to those that are kept */
    for (uint32_t i = 0; i < N_BEFORE + 1 + N_BEHIND; i++) {
        const bpt_record record = {
            .H = 8, .W = 8, .data = bytes, .size = i == N_BEFORE ? LARGE : SMALL};
        assert_int_equal(bpt_writer_append_record(writer, &record, i % 3), BPT_OK);
        const uint64_t n_kept = bpt_writer_kept(writer);
        if (n_kept - before > most) most = n_kept - before;
        before = n_kept;
    }
    assert_true(most > 100 && most <= (16 << 20) / SMALL);
    assert_int_equal(bpt_writer_commit(writer), BPT_OK);
    bpt_writer_close(writer);
    free(bytes);
    bpt_dataset *dataset;
    const bpt_split *split;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    assert_int_equal(split->count, N_BEFORE + 1 + N_BEHIND);
    bpt_record record;
    uint32_t label;
    assert_int_equal(bpt_dataset_get_record(dataset, split, N_BEFORE, &record, &label), BPT_OK);
    assert_int_equal(record.size, LARGE);
    bpt_dataset_close(dataset);
}

static void encoded_ones(void **state) {
    (void)state;
    enum {
        FIRST = 4200,
        LAST = 4300
    }; /* each takes pages of its own: two of them a chunk's worth */
    bpt_writer_options o = made_encoded_options("train", 3);
    o.terms = "a\n";
    o.origin = "b\n";
    bpt_image_file file = {0};
    const bpt_record record = made_encoded_record(7, 3, &file);
    bpt_writer *writer;
    for (int turn = 0; turn < 2; turn++) {
        bool stopped = turn == 1; /* once, or not at all */
        assert_int_equal(bpt_writer_open(turn ? whole : place.dataset, &o, &writer), BPT_OK);
        for (uint32_t i = 0; i < LAST; i++) {
            if (i == FIRST && !stopped) {
                stopped = true;
                assert_true(bpt_writer_kept(writer) > 0);
                bpt_writer_close(writer);
                writer = resume(&o);
                assert_non_null(writer);
                i = (uint32_t)bpt_writer_position(writer);
                assert_true(i > 0 && i <= FIRST);
            }
            assert_int_equal(bpt_writer_append_record(writer, &record, i % 3), BPT_OK);
        }
        assert_int_equal(bpt_writer_commit(writer), BPT_OK);
        bpt_writer_close(writer);
    }
    expect_equal_datasets();
    bpt_free(file.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(like_one_that_was_not_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stopped_often, set_up, tear_down),
        cmocka_unit_test_setup_teardown(appending, set_up, tear_down),
        cmocka_unit_test_setup_teardown(notes_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_terms_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_to_go_on_with, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_chunk_that_cannot_be_stored, set_up_limited,
                                        tear_down_limited),
        cmocka_unit_test_setup_teardown(no_thread_to_store, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_source_was_read_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_owns_the_lock_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_record_larger_than_a_chunk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(encoded_ones, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
