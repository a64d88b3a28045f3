/* A file that is cut short while it is mapped: an error that names it, on any thread, never the end
 * of the process and never a wrong record. ctest: TIMEOUT=60 */
#include "base/checksum.h"
#include "base/memory.h"
#include "base/thread.h"
#include "storage/dataset/parcel.h"
#include "storage/dataset/scratch.h"
#include "storage/loader/loader.h"
#include "tests/storage/made_dataset.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIDE = 24, RECORD = SIDE * SIDE, COUNT = 2000, PAGE = 4096, SALT = 5 };

typedef struct subject {
    made_place place;
    char file[120];
    uint8_t *content;
    off_t bytes;
    bpt_dataset *dataset;
    const bpt_split *split;
} subject;

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    const bpt_writer_options o = made_options("train", 1, SIDE, SIDE);
    if (made_split(s.place.dataset, &o, SALT, COUNT) != BPT_OK) return 1;
    snprintf(s.file, sizeof s.file, "%s/data.mdb", s.place.dataset);
    struct stat info;
    if (stat(s.file, &info) != 0) return 1;
    s.bytes = info.st_size;
    s.content = malloc((size_t)s.bytes);
    const int fd = open(s.file, O_RDONLY);
    const bool read_all = s.content && read(fd, s.content, (size_t)s.bytes) == s.bytes;
    close(fd);
    *state = &s;
    return read_all ? 0 : 1;
}

/* In the test itself: cmocka puts a handler of its own there when one begins. */
static subject *opened(void **state) {
    subject *s = *state;
    assert_int_equal(bpt_dataset_open(s->place.dataset, &s->dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(s->dataset, "train", &s->split), BPT_OK);
    return s;
}

static int tear_down(void **state) {
    subject *s = *state;
    bpt_dataset_close(s->dataset);
    s->dataset = NULL;
    free(s->content);
    made_place_remove(&s->place);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static void restore(const subject *s) {
    const int fd = open(s->file, O_WRONLY);
    assert_int_equal(write(fd, s->content, (size_t)s->bytes), s->bytes);
    close(fd);
}

static void cut(const char *file, off_t bytes) {
    assert_int_equal(truncate(file, bytes), 0);
}

static void expect_named(const char *file, const char *what) {
    const bpt_error *e = bpt_error_last();
    if (!strstr(e->text, file) || !strstr(e->text, what) || !e->hint[0])
        fail_msg("%s (hint: %s)", e->text, e->hint);
}

/* @return records that are right, up to the first that is none; they are never wrong */
static uint32_t count_right(const subject *s) {
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint8_t *pixels;
        uint32_t label;
        uint8_t copy[RECORD];
        const bpt_status status = bpt_dataset_get(s->dataset, s->split, i, &pixels, &label);
        if (status == BPT_OK) memcpy(copy, pixels, sizeof copy);
        if (status != BPT_OK || bpt_dataset_check(s->dataset) != BPT_OK) {
            assert_int_equal(bpt_error_last()->status, BPT_ECORRUPT);
            assert_int_equal(bpt_status_exit(status == BPT_OK ? BPT_ECORRUPT : status), 3);
            return i;
        }
        assert_int_equal(label, made_label(SALT, i, 3));
        for (size_t p = 0; p < RECORD; p++) assert_int_equal(copy[p], made_pixel(SALT, i, p));
    }
    return COUNT;
}

/* ---- readers ---- */

static void records_never_read_before(void **state) {
    const subject *s = opened(state);
    const uint8_t *pixels;
    uint32_t label;
    cut(s->file, s->bytes / 2);
    assert_int_equal(bpt_dataset_get(s->dataset, s->split, COUNT - 1, &pixels, &label),
                     BPT_ECORRUPT);
    expect_named(s->file, "was cut short while it was in use");
    /* And so for ever, also of records that can be read: what was handed out may be zeros. */
    restore(s);
    assert_int_equal(count_right(s), 0);
    expect_named(s->file, "could not be read while it was in use");
}

static void records_that_were_verified(void **state) {
    const subject *s = opened(state);
    assert_int_equal(count_right(s), COUNT);
    cut(s->file, 4 * PAGE);
    assert_true(count_right(s) < COUNT);
    expect_named(s->file, "was cut short while it was in use");
    restore(s);
}

/* The rest of the last page reads as zeros, without a signal. */
static void within_a_page(void **state) {
    const subject *s = opened(state);
    assert_int_equal(count_right(s), COUNT);
    cut(s->file, s->bytes - PAGE / 2);
    assert_int_equal(bpt_dataset_check(s->dataset), BPT_ECORRUPT);
    expect_named(s->file, "was cut short while it was in use");
    restore(s);
}

static void verification(void **state) {
    const subject *s = opened(state);
    for (off_t pages = s->bytes / PAGE - 1; pages > 0; pages -= 1 + pages / 4) {
        cut(s->file, pages * PAGE);
        uint64_t n_sound;
        assert_int_equal(bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_sound), BPT_ECORRUPT);
        restore(s);
    }
}

/* However the file is reached, and whatever is done to its name since it was opened. */
static void by_other_names(void **state) {
    subject *s = *state;
    char link[140], folder[120], file[140];
    snprintf(folder, sizeof folder, "%s/line\nend \\012 (deleted)", s->place.directory);
    snprintf(link, sizeof link, "%s/data.mdb", folder);
    snprintf(file, sizeof file, "%s/elsewhere", s->place.directory);
    assert_int_equal(rename(s->file, file), 0);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(symlink(file, link), 0);
    assert_int_equal(bpt_dataset_open(folder, &s->dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(s->dataset, "train", &s->split), BPT_OK);
    cut(file, 4 * PAGE);
    assert_true(count_right(s) < COUNT);
    expect_named("/data.mdb", "was cut short while it was in use");
    bpt_dataset_close(s->dataset);

    assert_int_equal(rename(file, s->file), 0);
    restore(s);
    opened(state);
    snprintf(file, sizeof file, "%s.moved", s->place.dataset);
    assert_int_equal(rename(s->place.dataset, file), 0);
    strcat(file, "/data.mdb");
    cut(file, 4 * PAGE);
    assert_true(count_right(s) < COUNT);
    expect_named(s->file, "was cut short while it was in use");
}

/* Nothing of value is in it: what was read is sound, and a reader that needs it says what is wrong.
 */
static void the_lock_file(void **state) {
    subject *s = opened(state);
    char lock[120];
    snprintf(lock, sizeof lock, "%s/lock.mdb", s->place.dataset);
    cut(lock, 0);
    assert_int_equal(count_right(s), COUNT);
    bpt_dataset_close(s->dataset); /* it gives back its place there */
    opened(state);
    assert_int_equal(count_right(s), COUNT);

    enum { MORE = 40000 }; /* more than a chunk, which another writer can go on behind */
    bpt_writer_options o = made_options("more", 1, SIDE, SIDE);
    bpt_writer *writer;
    o.terms = o.origin = "more\n";
    assert_int_equal(bpt_writer_open(s->place.dataset, &o, &writer), BPT_OK);
    assert_int_equal(made_append(writer, &o, 2, 0, MORE), BPT_OK);
    const uint64_t n_kept = bpt_writer_kept(writer); /* waits: nothing is being stored */
    assert_true(n_kept > 0);
    cut(lock, 0);
    assert_int_equal(bpt_writer_commit(writer), BPT_EIO);
    expect_named(lock, "was cut short while it was in use");
    assert_int_equal(bpt_writer_kept(writer), n_kept);
    bpt_writer_close(writer);
    assert_int_equal(bpt_writer_resume(s->place.dataset, &o, &writer), BPT_OK);
    assert_non_null(writer);
    assert_int_equal(bpt_writer_position(writer), n_kept);
    bpt_writer_close(writer);
    bpt_dataset_close(s->dataset); /* as above, and not under cmocka's handler of a fixture */
    s->dataset = NULL;
}

static void cut_now(void *file, uint64_t n_records, uint64_t n_total) {
    (void)n_total;
    if (n_records < COUNT / 2) cut(file, 8 * PAGE);
}

static void verification_under_way(void **state) {
    subject *s = opened(state);
    uint64_t n_sound;
    assert_int_equal(bpt_dataset_verify(s->place.dataset, cut_now, s->file, &n_sound),
                     BPT_ECORRUPT);
    expect_named(s->file, "was cut short while it was in use");
    assert_true(n_sound < COUNT);
    restore(s);
}

static void run_loader(const subject *s, uint32_t n_threads) {
    enum { BATCH = 50, DEPTH = 6, CUT_AFTER = 12 };
    const bpt_loader_options o = {.batch = BATCH, .n_threads = n_threads, .depth = DEPTH};
    bpt_loader *loader;
    assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_OK);
    uint32_t requested = 0, taken = 0, n_lost = 0;
    while (taken < 2 * COUNT / BATCH) {
        uint32_t indices[BATCH];
        while (requested < 2 * COUNT / BATCH && bpt_loader_room(loader) > 0) {
            for (uint32_t i = 0; i < BATCH; i++) indices[i] = (requested * BATCH + i) % COUNT;
            assert_int_equal(bpt_loader_request(loader, indices, NULL, BATCH), BPT_OK);
            requested++;
        }
        if (taken == CUT_AFTER) cut(s->file, 4 * PAGE);
        bpt_batch batch;
        const bpt_status status = bpt_loader_next(loader, &batch);
        const uint32_t first = taken++ * BATCH;
        if (status != BPT_OK) {
            assert_int_equal(status, BPT_ECORRUPT);
            expect_named(s->file, "while it was in use");
            n_lost++;
            continue;
        }
        for (uint32_t i = 0; i < BATCH; i++) {
            const uint32_t record = (first + i) % COUNT;
            assert_int_equal(batch.labels[i], made_label(SALT, record, 3));
            for (size_t p = 0; p < RECORD; p++) {
                const float scale = (float)(1.0 / 255), pixel = made_pixel(SALT, record, p);
                assert_true(batch.pixels[i * RECORD + p] == pixel * scale);
            }
        }
        bpt_loader_release(loader, &batch);
    }
    assert_in_range(n_lost, 2 * COUNT / BATCH - CUT_AFTER - DEPTH, 2 * COUNT / BATCH - CUT_AFTER);
    bpt_loader_destroy(loader);
    restore(s);
}

static void batches_of_one_thread(void **state) {
    run_loader(opened(state), 1);
}

static void batches_of_several_threads(void **state) {
    run_loader(opened(state), 4);
}

/* ---- threads that take no signals ---- */

static void *read_all(void *arg) {
    const subject *s = arg;
    const uint8_t *pixels;
    uint32_t label;
    static _Thread_local bpt_status status;
    for (uint32_t i = 0; i < COUNT && status == BPT_OK; i++)
        status = bpt_dataset_get(s->dataset, s->split, i, &pixels, &label);
    return status == BPT_ECORRUPT ? NULL : arg;
}

static void threads_without_signals(void **state) {
    subject *s = opened(state);
    enum { N = 4 };
    pthread_t threads[N];
    cut(s->file, s->bytes / 3);
    for (int i = 0; i < N; i++) assert_int_equal(bpt_thread_start(&threads[i], read_all, s), 0);
    for (int i = 0; i < N; i++) {
        void *sound;
        pthread_join(threads[i], &sound);
        assert_null(sound);
    }
    restore(s);
}

typedef struct meeting {
    const subject *s;
    pthread_barrier_t barrier;
} meeting;

static void *read_together(void *arg) {
    meeting *m = arg;
    const uint8_t *pixels;
    uint32_t label;
    for (uint32_t i = 0; i < COUNT; i += PAGE / RECORD) {
        pthread_barrier_wait(&m->barrier);
        (void)bpt_dataset_get(m->s->dataset, m->s->split, i, &pixels, &label);
    }
    return NULL;
}

/* Who comes second finds a page that another thread has replaced. */
static void the_same_page_at_once(void **state) {
    enum { N = 8, ROUNDS = 5 };
#ifdef __SANITIZE_THREAD__
    (void)state;
    skip(); /* it takes a page that is replaced for one that is written to while others read it */
#endif
    for (int round = 0; round < ROUNDS; round++) {
        subject *s = opened(state);
        meeting m = {.s = s};
        pthread_t threads[N];
        pthread_barrier_init(&m.barrier, NULL, N);
        cut(s->file, 4 * PAGE);
        for (int i = 0; i < N; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, read_together, &m), 0);
        for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&m.barrier);
        assert_int_equal(bpt_dataset_check(s->dataset), BPT_ECORRUPT);
        bpt_dataset_close(s->dataset);
        s->dataset = NULL;
        restore(s);
    }
}

/* ---- writers, parcels and scratch ---- */

static void a_writer(void **state) {
    const subject *s = opened(state);
    for (off_t pages = 0; pages < 6; pages++) {
        const bpt_writer_options o = made_options("more", 1, SIDE, SIDE);
        bpt_writer *writer;
        assert_int_equal(bpt_writer_open(s->place.dataset, &o, &writer), BPT_OK);
        assert_int_equal(made_append(writer, &o, 2, 0, 300), BPT_OK);
        cut(s->file, pages * PAGE);
        assert_int_equal(bpt_writer_commit(writer), BPT_ECORRUPT);
        expect_named(s->file, "while it was in use");
        bpt_writer_close(writer);
        cut(s->file, s->bytes);
        restore(s);
    }
}

static void parcels_and_scratch(void **state) {
    subject *s = opened(state);
    enum { N = 1000 };
    static uint32_t indices[N];
    char *description, path[100], file[120];
    size_t size;
    const bpt_split *split;
    for (uint32_t i = 0; i < N; i++) indices[i] = i;
    assert_int_equal(bpt_dataset_export(s->dataset, &description, &size), BPT_OK);
    const uint64_t identity = bpt_checksum(description, size);
    uint8_t *parcel = malloc(bpt_parcel_bytes(RECORD, N));
    assert_int_equal(bpt_parcel_make(s->dataset, s->split, identity, indices, N, parcel), BPT_OK);

    bpt_scratch *scratch;
    snprintf(path, sizeof path, "%s/scratch", s->place.directory);
    assert_int_equal(bpt_scratch_open(path, description, size, &scratch), BPT_OK);
    assert_int_equal(bpt_dataset_find(bpt_scratch_dataset(scratch), "train", &split), BPT_OK);
    assert_int_equal(bpt_scratch_add(scratch, split, indices, N, parcel), BPT_OK);
    snprintf(file, sizeof file, "%s/samples.mdb", path);
    cut(file, 3 * PAGE);
    const subject kept = {.dataset = (bpt_dataset *)(uintptr_t)bpt_scratch_dataset(scratch),
                          .split = split};
    assert_true(count_right(&kept) < N);
    expect_named(file, "while it was in use");
    assert_non_null(strstr(bpt_error_last()->hint, "is sent again"));
    for (uint32_t i = 0; i < N; i++) indices[i] = N + i;
    assert_int_not_equal(bpt_scratch_add(scratch, split, indices, N, parcel), BPT_OK);
    bpt_scratch_close(scratch);

    cut(s->file, 4 * PAGE);
    assert_int_equal(bpt_parcel_make(s->dataset, s->split, identity, indices, N, parcel),
                     BPT_ECORRUPT);
    expect_named(s->file, "while it was in use");
    restore(s);
    free(parcel);
    bpt_free(description);
}

/* ---- what is none of it ---- */

typedef void (*deed)(const subject *s);

/* Whether a child that does it is ended by SIGBUS, or by a sanitizer's handler of it. */
static void expect_ended(const subject *s, deed does) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bpt_dataset *dataset;
        signal(SIGBUS, SIG_DFL); /* instead of cmocka's */
        if (freopen("/dev/null", "w", stderr) &&
            bpt_dataset_open(s->place.dataset, &dataset) == BPT_OK)
            does(s);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    assert_int_not_equal(status, 0);
#else
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
#endif
}

static void read_other_file(const subject *s) {
    char file[100];
    snprintf(file, sizeof file, "%s/other", s->place.directory);
    const int fd = open(file, O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, PAGE) != 0) return;
    const volatile uint8_t *map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (ftruncate(fd, 0) == 0) (void)map[0];
}

static void send_it(const subject *s) {
    (void)s;
    raise(SIGBUS);
}

static void other_bus_errors_end_the_process(void **state) {
    const subject *s = *state;
    expect_ended(s, read_other_file);
    expect_ended(s, send_it);
}

static sigjmp_buf back;

static void jump_back(int number) {
    (void)number;
    siglongjmp(back, 1);
}

/* A handler that was there before gets what is not ours, again and again. */
static void other_handlers_stay(void **state) {
    subject *s = *state;
    struct sigaction before, jump = {.sa_handler = jump_back};
    assert_int_equal(sigaction(SIGBUS, &jump, &before), 0);
    opened(state);
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) {
            read_other_file(s);
            fail();
        }
    }
    cut(s->file, 4 * PAGE);
    assert_true(count_right(s) < COUNT);
    expect_named(s->file, "was cut short while it was in use");
    restore(s);
    assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(records_never_read_before),
        TEST(records_that_were_verified),
        TEST(within_a_page),
        TEST(verification),
        TEST(by_other_names),
        TEST(the_lock_file),
        TEST(verification_under_way),
        TEST(batches_of_one_thread),
        TEST(batches_of_several_threads),
        TEST(threads_without_signals),
        TEST(the_same_page_at_once),
        TEST(a_writer),
        TEST(parcels_and_scratch),
        TEST(other_bus_errors_end_the_process),
        TEST(other_handlers_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
