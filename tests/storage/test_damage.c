/* Any byte of the data file may change: then verify says so, or what is read is still exactly
 * right; nothing crashes, nothing hangs. ctest: TIMEOUT=60 */
#include "base/random.h"
#include "base/status.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_entry.h"
#include "tests/storage/made_group.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <lmdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TRAIN = 300, TEST = 70, H = 20, W = 30, PAGE = 4096 };

typedef struct subject {
    made_place place;
    char file[100];
    int fd;
    uint64_t bytes;
} subject;

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    const bpt_writer_options train = made_options("train", 1, H, W);
    const bpt_writer_options test = made_options("test", 1, H, W);
    if (made_split(s.place.dataset, &train, 9, TRAIN) != BPT_OK) return 1;
    /* Replaced once, so that there are free pages too. */
    bpt_writer_options again = train;
    again.replace = true;
    if (made_split(s.place.dataset, &again, 1, TRAIN) != BPT_OK) return 1;
    if (made_split(s.place.dataset, &test, 2, TEST) != BPT_OK) return 1;
    snprintf(s.file, sizeof s.file, "%s/data.mdb", s.place.dataset);
    s.fd = open(s.file, O_RDWR);
    struct stat info;
    if (s.fd < 0 || fstat(s.fd, &info) != 0) return 1;
    s.bytes = (uint64_t)info.st_size;
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    const subject *s = *state;
    close(s->fd);
    made_place_remove(&s->place);
    return 0;
}

static uint8_t change(const subject *s, uint64_t at, uint8_t mask) {
    uint8_t byte;
    assert_int_equal(pread(s->fd, &byte, 1, (off_t)at), 1);
    const uint8_t changed = byte ^ mask;
    assert_int_equal(pwrite(s->fd, &changed, 1, (off_t)at), 1);
    return byte;
}

static void restore(const subject *s, uint64_t at, uint8_t byte) {
    assert_int_equal(pwrite(s->fd, &byte, 1, (off_t)at), 1);
}

static bool reads_right(const subject *s) {
    bpt_dataset *dataset;
    if (bpt_dataset_open(s->place.dataset, &dataset) != BPT_OK) return false;
    const bpt_split *train, *test;
    const bool right = bpt_dataset_find(dataset, "train", &train) == BPT_OK &&
                       bpt_dataset_find(dataset, "test", &test) == BPT_OK &&
                       train->count == TRAIN && test->count == TEST &&
                       made_equal(dataset, train, 1) == TRAIN &&
                       made_equal(dataset, test, 2) == TEST;
    bpt_dataset_close(dataset);
    return right;
}

/* @return whether the change was reported */
static bool try_change(const subject *s, uint64_t at, uint8_t mask) {
    const uint8_t byte = change(s, at, mask);
    uint64_t n_records;
    const bpt_status status = bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_records);
    bool reported = status != BPT_OK;
    if (reported && bpt_status_exit(status) != 3) {
        print_error("byte %llu ^ %02x: %s: %s\n", (unsigned long long)at, mask,
                    bpt_status_name(status), bpt_error_last()->text);
        restore(s, at, byte);
        fail();
    }
    if (!reported && !reads_right(s)) {
        print_error("byte %llu ^ %02x: verified, but reads wrong\n", (unsigned long long)at, mask);
        restore(s, at, byte);
        fail();
    }
    restore(s, at, byte);
    return reported;
}

static uint16_t page_flags(const subject *s, uint64_t page) {
    uint16_t flags;
    assert_int_equal(pread(s->fd, &flags, sizeof flags, (off_t)(page * PAGE + 10)), sizeof flags);
    return flags;
}

/* Every byte of every page that is not part of a large value, each with a few bits. */
static void survives_changes_in_the_tree(void **state) {
    const subject *s = *state;
    uint64_t tried = 0, reported = 0;
    for (uint64_t page = 0; page < s->bytes / PAGE; page++) {
        const uint16_t flags = page_flags(s, page);
        if (page > 1 && flags != 1 && flags != 2) continue;
        for (uint64_t at = 0; at < PAGE; at += at < 160 ? 1 : 11) {
            tried++;
            reported += try_change(s, page * PAGE + at, (uint8_t)(1 << (at + page) % 8));
            if (at < 100 && at % 3 == 0) try_change(s, page * PAGE + at, 0xFF);
        }
    }
    print_message("%llu of %llu changes in tree pages are reported, the others do no harm\n",
                  (unsigned long long)reported, (unsigned long long)tried);
    assert_true(reported > 300);
}

/* A database that is no longer marked as one is damage, and no other program's record. */
static void tells_a_lost_mark_from_a_record(void **state) {
    const subject *s = *state;
    static uint8_t content[4 << 20];
    static const uint8_t entry[] = {48, 0, 0, 0, 2, 0, 4, 0, 'm', 'e', 't', 'a'};
    unsigned told = 0;
    assert_int_equal(pread(s->fd, content, s->bytes, 0), (ssize_t)s->bytes);
    for (const uint8_t *at = content;; at++) {
        at = memmem(at, s->bytes - (size_t)(at - content), entry, sizeof entry);
        if (!at) break;
        for (uint8_t mask = 2; mask <= 3; mask++) { /* no flag at all; that of a large value */
            const uint64_t flags = (uint64_t)(at - content) + 4;
            const uint8_t byte = change(s, flags, mask);
            bpt_dataset *dataset;
            const bpt_status status = bpt_dataset_open(s->place.dataset, &dataset);
            if (status == BPT_OK) bpt_dataset_close(dataset); /* of a page that is free by now */
            restore(s, flags, byte);
            if (status == BPT_OK) continue;
            assert_int_equal(status, BPT_ECORRUPT);
            assert_null(strstr(bpt_error_last()->text, "another program"));
            told++;
        }
    }
    assert_int_equal(told, 2);
}

/* The pixels, labels and headers of records: each change is reported, with split and records. */
static void reports_changes_in_records(void **state) {
    const subject *s = *state;
    bpt_dataset *dataset;
    assert_int_equal(bpt_dataset_open(s->place.dataset, &dataset), BPT_OK);
    const bpt_split *train;
    const uint8_t *first, *pixels;
    uint32_t label;
    assert_int_equal(bpt_dataset_find(dataset, "train", &train), BPT_OK);
    assert_int_equal(bpt_dataset_get(dataset, train, 0, &first, &label), BPT_OK);
    /* Finds where in the file record 0 is, by its bytes. */
    static uint8_t content[4 << 20];
    assert_true(s->bytes <= sizeof content);
    assert_int_equal(pread(s->fd, content, s->bytes, 0), (ssize_t)s->bytes);
    const uint8_t *found = memmem(content, s->bytes, first, H * W);
    assert_non_null(found);
    const uint64_t base = (uint64_t)(found - content);
    bpt_random r = bpt_random_stream(7, BPT_PURPOSE_TEST, 0);
    uint64_t offsets[60];
    uint32_t records[60];
    for (size_t i = 0; i < 60; i++) {
        records[i] = bpt_random_below(&r, TRAIN);
        assert_int_equal(bpt_dataset_get(dataset, train, records[i], &pixels, &label), BPT_OK);
        offsets[i] = (uint64_t)((int64_t)base + (pixels - first)) + bpt_random_below(&r, H * W);
    }
    bpt_dataset_close(dataset);
    for (size_t i = 0; i < 60; i++) {
        const uint8_t byte = change(s, offsets[i], (uint8_t)(1 << i % 8));
        uint64_t n_sound;
        assert_int_equal(bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_sound), BPT_ECORRUPT);
        assert_true(n_sound < TRAIN + TEST);
        unsigned from, to;
        const char *text = strstr(bpt_error_last()->text, "split train, records ");
        assert_non_null(text);
        assert_int_equal(sscanf(text, "split train, records %u to %u", &from, &to), 2);
        assert_in_range(records[i], from, to);
        /* A reader meets it when it reads that record, and not before. */
        assert_int_equal(bpt_dataset_open(s->place.dataset, &dataset), BPT_OK);
        assert_int_equal(bpt_dataset_find(dataset, "train", &train), BPT_OK);
        assert_int_equal(bpt_dataset_get(dataset, train, records[i], &pixels, &label),
                         BPT_ECORRUPT);
        const uint32_t elsewhere = from > 0 ? 0 : to + 1;
        assert_int_equal(bpt_dataset_get(dataset, train, elsewhere, &pixels, &label), BPT_OK);
        bpt_dataset_close(dataset);
        restore(s, offsets[i], byte);
    }
}

static void survives_changes_anywhere(void **state) {
    const subject *s = *state;
    const uint64_t seed = 20;
    bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, 1);
    for (int i = 0; i < 600; i++) {
        const uint64_t at = bpt_random_below(&r, (uint32_t)s->bytes);
        try_change(s, at, (uint8_t)(1 + bpt_random_below(&r, 255)));
    }
}

static void survives_a_cut(void **state) {
    const subject *s = *state;
    static uint8_t content[4 << 20];
    assert_int_equal(pread(s->fd, content, s->bytes, 0), (ssize_t)s->bytes);
    for (uint64_t pages = 0; pages < s->bytes / PAGE; pages += 1 + pages / 8) {
        const uint64_t size = pages * PAGE + (pages % 3) * 100;
        assert_int_equal(ftruncate(s->fd, (off_t)size), 0);
        uint64_t n_records;
        const bpt_status status = bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_records);
        assert_int_equal(bpt_status_exit(status), 3);
        assert_int_equal(pwrite(s->fd, content, s->bytes, 0), (ssize_t)s->bytes);
    }
    assert_true(reads_right(s));
}

static void counts_several_places(void **state) {
    const subject *s = *state;
    uint64_t at[64], n = 0;
    for (uint64_t page = 2; page < s->bytes / PAGE && n < 64; page++)
        if (page_flags(s, page) == 4) at[n++] = page * PAGE + 2000;
    assert_true(n >= 2);
    for (uint64_t i = 0; i < n; i++) change(s, at[i], 1);
    uint64_t n_sound;
    assert_int_equal(bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_sound), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "more such places"));
    assert_true(bpt_error_last()->hint[0]);
    for (uint64_t i = 0; i < n; i++) change(s, at[i], 1);
    assert_int_equal(bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_sound), BPT_OK);
    assert_int_equal(n_sound, TRAIN + TEST);
}

static void wrong_statistics_hide_nothing(void **state) {
    const subject *s = *state;
    uint64_t n_sound;
    uint8_t *right = malloc(s->bytes);
    assert_non_null(right);
    assert_int_equal(pread(s->fd, right, s->bytes, 0), s->bytes);
    assert_true(
        made_entry_alter(s->place.dataset, "split/test", "\"mean\": [0.", "\"mean\": [0.0"));
    assert_int_equal(bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_sound), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "split test: wrong mean"));
    assert_null(strstr(bpt_error_last()->text, "more such places"));
    assert_int_equal(n_sound, TRAIN + TEST);
    assert_true(
        made_entry_alter(s->place.dataset, "split/train", "\"mean\": [0.", "\"mean\": [0.0"));
    assert_int_equal(bpt_dataset_verify(s->place.dataset, NULL, NULL, &n_sound), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "(and 1 more such places)"));
    assert_int_equal(pwrite(s->fd, right, s->bytes, 0), s->bytes);
    free(right);
}

/* Who takes what he does not know for a leftover would drop it, or never come to an end. */
static void writers_leave_damaged_names(void **state) {
    const subject *s = *state;
    const struct {
        char to[2];
        size_t at;
    } names[] = {{"c", 2}, {"", 5}}; /* "trcin@", "train\0" */
    const bpt_writer_options more = made_options("more", 1, H, W);
    uint8_t *content = malloc(s->bytes);
    assert_non_null(content);
    assert_int_equal(pread(s->fd, content, s->bytes, 0), s->bytes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int n_changed = 0;
        for (const uint8_t *at = content;
             (at = memmem(at, s->bytes - (size_t)(at - content), "train@", 6)); at++) {
            n_changed++;
            assert_int_equal(pwrite(s->fd, names[i].to, 1, at - content + (off_t)names[i].at), 1);
        }
        assert_true(n_changed > 0);
        assert_int_equal(made_split(s->place.dataset, &more, 1, 3), BPT_ECORRUPT);
        assert_int_equal(pwrite(s->fd, content, s->bytes, 0), s->bytes);
        assert_true(reads_right(s));
    }
    free(content);
}

/* A writer may begin anew where nothing was stored yet, and nowhere else. */
static void writers_leave_what_is_short(void **state) {
    const subject *s = *state;
    static const uint64_t sizes[] = {100, 200, 1000, PAGE, PAGE + 1, 8000};
    const bpt_writer_options more = made_options("more", 1, H, W);
    made_place place = made_place_create();
    char file[120], command[400];
    snprintf(file, sizeof file, "%s/data.mdb", place.dataset);
    for (size_t i = 0; i <= 2 * (sizeof sizes / sizeof *sizes); i++) {
        const bool noise = i % 2 == 1;
        const uint64_t size = i / 2 < sizeof sizes / sizeof *sizes ? sizes[i / 2] : 0;
        snprintf(command, sizeof command, "mkdir -p %s && head -c %llu %s >%s", place.dataset,
                 (unsigned long long)size, noise ? "/dev/urandom" : s->file, file);
        assert_int_equal(system(command), 0);
        const bpt_status status = made_split(place.dataset, &more, 1, 3);
        struct stat info;
        assert_int_equal(stat(file, &info), 0);
        if (size == 0) {
            assert_int_equal(status, BPT_OK);
            continue;
        }
        if (noise && size >= PAGE) assert_int_equal(status, BPT_EDATA);
        assert_int_equal(bpt_status_exit(status), 3);
        assert_int_equal(info.st_size, size);
        assert_int_equal(unlink(file), 0);
    }
    made_place_remove(&place);
}

/* The two pages that LMDB begins with, of which only a part was written. */
static void writers_begin_stumps_anew(void **state) {
    (void)state;
    made_place place = made_place_create();
    char file[120];
    MDB_env *env;
    snprintf(file, sizeof file, "%s/data.mdb", place.dataset);
    assert_int_equal(mkdir(place.dataset, 0777), 0);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, place.dataset, 0, 0666), 0);
    mdb_env_close(env);
    assert_int_equal(truncate(file, PAGE + 100), 0);
    const bpt_writer_options more = made_options("more", 1, H, W);
    assert_int_equal(made_split(place.dataset, &more, 1, 3), BPT_OK);
    made_place_remove(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_changes_in_the_tree),
        cmocka_unit_test(tells_a_lost_mark_from_a_record),
        cmocka_unit_test(reports_changes_in_records),
        cmocka_unit_test(survives_changes_anywhere),
        cmocka_unit_test(survives_a_cut),
        cmocka_unit_test(counts_several_places),
        cmocka_unit_test(wrong_statistics_hide_nothing),
        cmocka_unit_test(writers_leave_damaged_names),
        cmocka_unit_test(writers_leave_what_is_short),
        cmocka_unit_test(writers_begin_stumps_anew),
    };
    return made_run_group(tests, set_up, tear_down);
}
