/* Writing and reading back: shapes, several splits, replacing, refusing, giving up.
 * ctest: TIMEOUT=60 */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "tests/base/near.h"
#include "tests/storage/made_database.h"
#include "tests/storage/made_dataset.h"

#include <sys/stat.h>
#include <sys/wait.h>

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

static bpt_dataset *open_dataset(void) {
    bpt_dataset *dataset;
    const bpt_status status = bpt_dataset_open(place.dataset, &dataset);
    if (status != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(status, BPT_OK);
    return dataset;
}

static const bpt_split *find(const bpt_dataset *dataset, const char *name) {
    const bpt_split *split;
    assert_int_equal(bpt_dataset_find(dataset, name, &split), BPT_OK);
    return split;
}

static void expect_sound(uint64_t n_expected) {
    uint64_t n_records;
    const bpt_status status = bpt_dataset_verify(place.dataset, NULL, NULL, &n_records);
    if (status != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(status, BPT_OK);
    assert_int_equal(n_records, n_expected);
}

static void reads_back_what_was_written(void **state) {
    (void)state;
    const struct {
        uint32_t C, H, W, n;
    } cases[] = {{1, 1, 1, 1},     {1, 1, 1, 5000},   {1, 28, 28, 61},  {1, 28, 28, 31 * 31},
                 {3, 32, 32, 100}, {3, 100, 101, 20}, {3, 400, 500, 40}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[16];
        const bpt_writer_options o = made_options("train", cases[i].C, cases[i].H, cases[i].W);
        snprintf(name, sizeof name, "/case%zu", i);
        snprintf(place.dataset, sizeof place.dataset, "%s%s", place.directory, name);
        assert_int_equal(made_split(place.dataset, &o, (uint32_t)i, cases[i].n), BPT_OK);
        expect_sound(cases[i].n);
        bpt_dataset *dataset = open_dataset();
        const bpt_dataset_info *info = bpt_dataset_describe(dataset);
        assert_int_equal(info->C, cases[i].C);
        assert_int_equal(info->H, cases[i].H);
        assert_int_equal(info->W, cases[i].W);
        assert_int_equal(info->format, BPT_DATASET_FORMAT_RAW);
        assert_int_equal(info->n_splits, 1);
        const bpt_split *split = find(dataset, "train");
        assert_int_equal(split->count, cases[i].n);
        assert_int_equal(made_equal(dataset, split, (uint32_t)i), cases[i].n);
        const uint8_t *pixels;
        uint32_t label;
        assert_int_equal(bpt_dataset_get(dataset, split, cases[i].n, &pixels, &label), BPT_EUSAGE);
        bpt_dataset_close(dataset);
    }
}

static void takes_little_more_than_its_payload(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 3, 32, 32);
    enum { N = 4000 };
    assert_int_equal(made_split(place.dataset, &o, 1, N), BPT_OK);
    char file[128];
    struct stat info;
    snprintf(file, sizeof file, "%s/data.mdb", place.dataset);
    assert_int_equal(stat(file, &info), 0);
    print_message("%.4f of the payload\n", (double)info.st_size / (N * 3072.0));
    assert_true((double)info.st_size <= 1.05 * N * 3072);
}

static void describes_its_splits(void **state) {
    (void)state;
    const char *classes[] = {"cat", "d\xc3\xb6g", "\"bird\"\n"};
    const char *sources[] = {"a.gz", "\xff.gz"};
    bpt_writer_options o = made_options("train", 2, 2, 2);
    o.class_names = classes;
    o.sources = sources;
    o.n_sources = 2;
    o.seed = 77;
    const uint8_t images[3][8] = {{0, 0, 0, 0, 255, 255, 255, 255},
                                  {0, 0, 0, 0, 255, 255, 255, 255},
                                  {255, 255, 255, 255, 255, 255, 255, 255}};
    const uint32_t labels[] = {2, 0, 2};
    bpt_writer *writer;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(bpt_writer_append(writer, images[i], labels[i]), BPT_OK);
    assert_int_equal(bpt_writer_commit(writer), BPT_OK);
    bpt_writer_close(writer);
    bpt_dataset *dataset = open_dataset();
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    assert_int_equal(info->n_classes, 3);
    for (size_t i = 0; i < 3; i++) assert_string_equal(info->classes[i], classes[i]);
    const bpt_split *split = find(dataset, "train");
    assert_int_equal(split->per_class[0], 1);
    assert_int_equal(split->per_class[1], 0);
    assert_int_equal(split->per_class[2], 2);
    assert_near(split->mean[0], 1.0 / 3, 1e-12);
    assert_near(split->mean[1], 1.0, 1e-12);
    assert_near(split->std[0], 0.47140452079103, 1e-12);
    assert_near(split->std[1], 0.0, 1e-12);
    assert_string_equal(split->intakes->importer, "test");
    assert_string_equal(split->intakes->sources[0], "a.gz");
    assert_string_equal(split->intakes->sources[1], "?.gz");
    assert_int_equal(split->intakes->seed, 77);
    const bpt_split *none;
    assert_int_equal(bpt_dataset_find(dataset, "val", &none), BPT_ENOENT);
    assert_non_null(strstr(bpt_error_last()->hint, "train"));
    bpt_dataset_close(dataset);
    expect_sound(3);
}

static void keeps_splits_apart(void **state) {
    (void)state;
    const char *names[] = {"train", "val", "test", "test.1"};
    for (uint32_t s = 0; s < 4; s++) {
        const bpt_writer_options o = made_options(names[s], 1, 9, 9);
        assert_int_equal(made_split(place.dataset, &o, s, 100 + s), BPT_OK);
    }
    expect_sound(406);
    bpt_dataset *dataset = open_dataset();
    for (uint32_t s = 0; s < 4; s++)
        assert_int_equal(made_equal(dataset, find(dataset, names[s]), s), 100 + s);
    bpt_dataset_close(dataset);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    bpt_writer *writer;
    bpt_writer_options o = made_options("train", 1, 4, 4);
    assert_int_equal(made_split(place.dataset, &o, 1, 10), BPT_OK);
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_EEXIST);
    assert_non_null(strstr(bpt_error_last()->hint, "--force"));
    bpt_writer_options other = made_options("test", 1, 4, 5);
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_EDATA);
    other = made_options("test", 3, 4, 4);
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "the new ones are 3x4x4"));
    static const uint32_t shapes[][3] = {
        {0, 4, 4}, {1, 0, 4}, {1, 4, 0}, {1, 16385, 16384}, {1u << 31, 1u << 31, 4}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        other = made_options("test", shapes[i][0], shapes[i][1], shapes[i][2]);
        assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "cannot be stored"));
    }
    other = made_options("test", 1, 4, 4);
    other.n_classes = 4;
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_EDATA);
    const char *names[] = {"0", "1", "x"};
    other.n_classes = 3;
    other.class_names = names;
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_EDATA);
    const char *twice[] = {"a", "b", "a"};
    other.class_names = twice;
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_EUSAGE);
    const char *bad_names[] = {"", "a/b", "a b", "-x", ".x", "a@1"};
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        o.split = bad_names[i];
        assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_EUSAGE);
    }
    /* Fewer classes than the dataset has are those of the dataset; more labels are not. */
    other = made_options("test", 1, 4, 4);
    other.n_classes = 2;
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_OK);
    const uint8_t pixels[16] = {0};
    assert_int_equal(bpt_writer_append(writer, pixels, 2), BPT_OK);
    assert_int_equal(bpt_writer_append(writer, pixels, 3), BPT_EDATA);
    bpt_writer_close(writer);
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_OK);
    assert_int_equal(bpt_writer_commit(writer), BPT_EDATA); /* nothing in it */
    bpt_writer_close(writer);
    expect_sound(10);
}

static void replaces_only_when_whole(void **state) {
    (void)state;
    bpt_writer *writer;
    bpt_writer_options o = made_options("train", 1, 8, 8);
    assert_int_equal(made_split(place.dataset, &o, 1, 50), BPT_OK);
    o.replace = true;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    assert_int_equal(made_append(writer, &o, 2, 0, 40), BPT_OK);
    bpt_writer_close(writer);
    bpt_dataset *dataset = open_dataset();
    assert_int_equal(made_equal(dataset, find(dataset, "train"), 1), 50);
    bpt_dataset_close(dataset);
    assert_int_equal(made_split(place.dataset, &o, 3, 60), BPT_OK);
    dataset = open_dataset();
    assert_int_equal(made_equal(dataset, find(dataset, "train"), 3), 60);
    bpt_dataset_close(dataset);
    /* The only split takes its shape along. */
    bpt_writer_options other = made_options("train", 3, 5, 5);
    other.replace = true;
    assert_int_equal(made_split(place.dataset, &other, 4, 7), BPT_OK);
    dataset = open_dataset();
    assert_int_equal(bpt_dataset_describe(dataset)->C, 3);
    assert_int_equal(made_equal(dataset, find(dataset, "train"), 4), 7);
    bpt_dataset_close(dataset);
    expect_sound(7);
}

static void gives_up_without_a_trace(void **state) {
    (void)state;
    bpt_writer *writer;
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    assert_int_equal(made_append(writer, &o, 1, 0, 40), BPT_OK);
    bpt_writer_close(writer);
    assert_false(bpt_path_exists(place.dataset));
    bpt_dataset *dataset;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_ENOENT);
    assert_true(bpt_error_last()->hint[0]);
    /* A directory that was there stays, empty of data. */
    assert_int_equal(bpt_dir_create(place.dataset, true), BPT_OK);
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_ENOENT);
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    bpt_writer_close(writer);
    assert_true(bpt_path_exists(place.dataset));
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_ENOENT);
    assert_int_equal(made_split(place.dataset, &o, 1, 5), BPT_OK);
    expect_sound(5);
}

static void takes_parents_back_that_it_made(void **state) {
    (void)state;
    char path[128];
    bpt_writer *writer;
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    assert_int_equal(bpt_dir_create(place.dataset, true), BPT_OK);
    snprintf(path, sizeof path, "%s/a/b/c", place.dataset);
    assert_int_equal(bpt_writer_open(path, &o, &writer), BPT_OK);
    assert_int_equal(made_append(writer, &o, 1, 0, 40), BPT_OK);
    bpt_writer_close(writer);
    snprintf(path, sizeof path, "%s/a", place.dataset);
    assert_false(bpt_path_exists(path));
    assert_true(bpt_path_exists(place.dataset));
}

static void leaves_other_folders_alone(void **state) {
    (void)state;
    char file[128];
    assert_int_equal(bpt_dir_create(place.dataset, true), BPT_OK);
    snprintf(file, sizeof file, "%s/photo.jpg", place.dataset);
    assert_int_equal(bpt_file_write(file, "x", 1), BPT_OK);
    bpt_writer *writer;
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_EEXIST);
    assert_non_null(strstr(bpt_error_last()->text, "photo.jpg"));
    assert_true(bpt_path_exists(file));
}

/* Runs a child that writes a part of a split and is killed. Large records, so that a chunk is
 * committed before, and another one on its way. */
static void write_and_die(const bpt_writer_options *o) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bpt_writer *writer;
        if (bpt_writer_open(place.dataset, o, &writer) != BPT_OK) _exit(1);
        if (made_append(writer, o, 5, 0, 150) != BPT_OK) _exit(1);
        raise(SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static void cleans_up_after_the_killed(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 3, 300, 300);
    const bpt_writer_options test = made_options("test", 3, 300, 300);
    write_and_die(&o);
    uint64_t n_records;
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_ENOENT);
    assert_non_null(strstr(bpt_error_last()->text, "no split"));
    bpt_dataset *dataset;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_ENOENT);
    assert_int_equal(made_split(place.dataset, &o, 1, 10), BPT_OK);
    assert_int_equal(made_databases(place.dataset), 2);
    write_and_die(&test);
    expect_sound(10);
    assert_int_equal(made_databases(place.dataset), 3);
    dataset = open_dataset();
    assert_int_equal(bpt_dataset_describe(dataset)->n_splits, 1);
    bpt_dataset_close(dataset);
    bpt_writer_options again = o;
    again.replace = true;
    assert_int_equal(made_split(place.dataset, &again, 2, 12), BPT_OK);
    assert_int_equal(made_databases(place.dataset), 2);
    expect_sound(12);
}

/* Two processes: the child holds the writer (or the reader) until it is told to end. */
static void one_writer_many_readers(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    bpt_writer_options again = o;
    again.replace = true;
    assert_int_equal(made_split(place.dataset, &o, 1, 2000), BPT_OK);
    int ready[2], end[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        bpt_writer *writer;
        if (bpt_writer_open(place.dataset, &again, &writer) != BPT_OK) _exit(1);
        if (write(ready[1], "w", 1) != 1 || read(end[0], &byte, 1) != 1) _exit(2);
        bpt_writer_close(writer);
        bpt_dataset *dataset;
        const bpt_split *split;
        if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) _exit(3);
        if (bpt_dataset_find(dataset, "train", &split) != BPT_OK) _exit(4);
        if (write(ready[1], "r", 1) != 1 || read(end[0], &byte, 1) != 1) _exit(5);
        /* Replaced several times meanwhile, but this reader still has its own state. */
        if (made_equal(dataset, split, 1) != 2000) _exit(6);
        bpt_dataset_close(dataset);
        _exit(0);
    }
    char byte;
    bpt_writer *writer;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(bpt_writer_open(place.dataset, &again, &writer), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "another process"));
    assert_int_equal(write(end[1], "x", 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (uint32_t salt = 2; salt < 6; salt++)
        assert_int_equal(made_split(place.dataset, &again, salt, 2000), BPT_OK);
    assert_int_equal(write(end[1], "x", 1), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    expect_sound(2000);
    for (size_t i = 0; i < 2; i++) {
        close(ready[i]);
        close(end[i]);
    }
}

static void reads_a_read_only_directory(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    assert_int_equal(made_split(place.dataset, &o, 1, 20), BPT_OK);
    char file[128];
    snprintf(file, sizeof file, "%s/lock.mdb", place.dataset);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(chmod(place.dataset, 0555), 0);
    /* Root may write anyway; then a child without privileges does the reading. */
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (geteuid() == 0 && (chmod(place.directory, 0755) != 0 || setuid(65534) != 0)) _exit(1);
        bpt_dataset *dataset;
        const bpt_split *split;
        if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) _exit(2);
        if (bpt_dataset_find(dataset, "train", &split) != BPT_OK) _exit(3);
        _exit(made_equal(dataset, split, 1) == 20 ? 0 : 4);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(chmod(place.dataset, 0755), 0);
}

/* What it leads to is not LMDB's to write to. */
static void follows_no_lock_file_that_is_a_link(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 1, 8, 8);
    assert_int_equal(made_split(place.dataset, &o, 1, 20), BPT_OK);
    char lock[128], victim[128], *text;
    size_t size;
    snprintf(lock, sizeof lock, "%s/lock.mdb", place.dataset);
    snprintf(victim, sizeof victim, "%s/victim", place.directory);
    assert_int_equal(bpt_file_write(victim, "mine", 4), BPT_OK);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(symlink(victim, lock), 0);
    expect_sound(20); /* as of a folder of links: it is for reading */
    assert_int_equal(made_split(place.dataset, &o, 2, 20), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "lock.mdb is a link"));
    assert_int_equal(bpt_file_read(victim, 100, &text, &size), BPT_OK);
    assert_int_equal(size, 4);
    assert_memory_equal(text, "mine", 4);
    bpt_free(text);
    assert_int_equal(unlink(lock), 0);
    expect_sound(20);
}

/* As another user, who may not write the lock file. */
static void become_somebody_else(void) {
    if (geteuid() != 0) return;
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(20);
}

/* @return records that are right; any other one must be an error that says why */
static uint32_t count_right(const bpt_dataset *dataset, const bpt_split *split) {
    const size_t size = 64 * 64;
    uint32_t n = 0;
    for (uint32_t i = 0; i < split->count; i++) {
        const uint8_t *pixels;
        uint32_t label;
        const bpt_status status = bpt_dataset_get(dataset, split, i, &pixels, &label);
        if (status != BPT_OK) {
            if (status != BPT_EIO || !strstr(bpt_error_last()->text, "writers could not see"))
                _exit(21);
            continue;
        }
        if (label != made_label(1, i, 3)) _exit(22);
        for (size_t p = 0; p < size; p++)
            if (pixels[p] != made_pixel(1, i, p)) _exit(23);
        n++;
    }
    return n;
}

/* @param other written in the meantime
 * @return 0: all records of the reader were right then as well; 1: some; 2: none */
static int read_unseen(const bpt_writer_options *other) {
    enum { N = 500 };
    const bpt_writer_options o = made_options("train", 1, 64, 64);
    int go[2], done[2], status;
    char byte = 0;
    bpt_dir_remove(place.dataset);
    assert_int_equal(made_split(place.dataset, &o, 1, N), BPT_OK);
    char lock[120];
    snprintf(lock, sizeof lock, "%s/lock.mdb", place.dataset);
    assert_int_equal(chmod(lock, 0444), 0);
    assert_int_equal(chmod(place.directory, 0711), 0);
    assert_true(pipe(go) == 0 && pipe(done) == 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bpt_dataset *dataset;
        const bpt_split *split;
        become_somebody_else();
        if (bpt_dataset_open(place.dataset, &dataset) != BPT_OK) _exit(24);
        if (bpt_dataset_find(dataset, "train", &split) != BPT_OK) _exit(25);
        if (count_right(dataset, split) != N) _exit(26);
        if (write(done[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(27);
        const uint32_t n = count_right(dataset, split);
        _exit(n == N ? 0 : n == 0 ? 2 : 1);
    }
    assert_int_equal(read(done[0], &byte, 1), 1);
    assert_int_equal(chmod(lock, 0644), 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(made_split(place.dataset, other, 2 + i, N), BPT_OK);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < 2; i++) close(go[i]), close(done[i]);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) > 2) fail_msg("the reader ended with %d", WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

/* Writers do not see such a reader; it sees that its records are gone. */
static void readers_without_a_lock_file(void **state) {
    (void)state;
    bpt_writer_options same = made_options("train", 1, 64, 64);
    bpt_writer_options other = made_options("other", 1, 64, 64);
    same.replace = other.replace = true;
    assert_int_equal(read_unseen(&other), 0); /* all are right: only another split was replaced */
    assert_int_not_equal(read_unseen(&same), 0);
}

static bpt_status write_and_read(void) {
    bpt_writer_options o = made_options("train", 1, 6, 6);
    o.replace = true;
    BPT_TRY(made_split(place.dataset, &o, 1, 9));
    bpt_dataset *dataset;
    BPT_TRY(bpt_dataset_open(place.dataset, &dataset));
    bpt_dataset_close(dataset);
    uint64_t n_records;
    return bpt_dataset_verify(place.dataset, NULL, NULL, &n_records);
}

static void survives_any_failed_allocation(void **state) {
    (void)state;
    int64_t n = 0;
    for (bpt_status status = BPT_ENOMEM; status != BPT_OK; n++) {
        bpt_memory_fail_at(n);
        status = write_and_read();
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), 0);
        assert_true(n < 1000);
    }
    print_message("%d allocations\n", (int)n);
    assert_true(n > 30);
    expect_sound(9);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(reads_back_what_was_written),
        TEST(takes_little_more_than_its_payload),
        TEST(describes_its_splits),
        TEST(keeps_splits_apart),
        TEST(refuses_what_does_not_fit),
        TEST(replaces_only_when_whole),
        TEST(gives_up_without_a_trace),
        TEST(takes_parents_back_that_it_made),
        TEST(leaves_other_folders_alone),
        TEST(cleans_up_after_the_killed),
        TEST(one_writer_many_readers),
        TEST(reads_a_read_only_directory),
        TEST(readers_without_a_lock_file),
        TEST(survives_any_failed_allocation),
        TEST(follows_no_lock_file_that_is_a_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
