/* Records that are expected are read by the system, and no others where memory is short. On a disk:
 * in memory there is nothing to read ahead, and the test says so. */
#include "base/file.h"
#include "base/memory.h"
#include "storage/dataset/dataset.h"
#include "tests/storage/made_dataset.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Values of a record each, of nine pages. */
enum { N = 600, H = 191, W = 191, PAGE = 4096, RECORD_PAGES = H * W / PAGE + 1 };

typedef struct subject {
    char folder[64], path[80], file[100];
    size_t n_pages;
    uint8_t *map;      /* the file once more, to ask which pages are in memory */
    uint8_t *resident; /* shape [n_pages] */
    bpt_dataset *dataset;
    const bpt_split *split;
} subject;

/* Lets the system forget the file. */
static void forget(const subject *s) {
    const int fd = open(s->file, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
}

static size_t count_resident(subject *s) {
    size_t n = 0;
    assert_int_equal(mincore(s->map, s->n_pages * PAGE, s->resident), 0);
    for (size_t p = 0; p < s->n_pages; p++) n += s->resident[p] & 1;
    return n;
}

/* @return more than @p n, or how many there are after some seconds */
static size_t await_more_than(subject *s, size_t n) {
    size_t now = count_resident(s);
    for (int i = 0; i < 300 && now <= n; i++) {
        usleep(10000);
        now = count_resident(s);
    }
    return now;
}

static int set_up(void **state) {
    static subject s;
    struct stat info;
    s = (subject){.folder = "read-ahead-XXXXXX"};
    if (!mkdtemp(s.folder)) return 1;
    snprintf(s.path, sizeof s.path, "%s/data", s.folder);
    snprintf(s.file, sizeof s.file, "%s/data.mdb", s.path);
    const bpt_writer_options o = made_options("train", 1, H, W);
    if (made_split(s.path, &o, 1, N) != BPT_OK || stat(s.file, &info) != 0) return 1;
    s.n_pages = ((size_t)info.st_size + PAGE - 1) / PAGE;
    const int fd = open(s.file, O_RDONLY | O_CLOEXEC);
    s.map = mmap(NULL, s.n_pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (s.map == MAP_FAILED || BPT_NEW("resident pages", s.n_pages, &s.resident) != BPT_OK)
        return 1;
    forget(&s);
    if (bpt_dataset_open(s.path, &s.dataset) != BPT_OK ||
        bpt_dataset_find(s.dataset, "train", &s.split) != BPT_OK)
        return 1;
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    subject *s = *state;
    bpt_dataset_close(s->dataset);
    munmap(s->map, s->n_pages * PAGE);
    bpt_free(s->resident);
    return bpt_dir_remove(s->folder) == BPT_OK ? 0 : 1;
}

/* @return pages in memory at first, few of them */
static size_t begin(subject *s) {
    const size_t n = count_resident(s);
    if (sysconf(_SC_PAGESIZE) != PAGE || n > s->n_pages / 4) {
        printf("skipped: %zu of %zu pages stay in memory\n", n, s->n_pages);
        skip();
    }
    return n;
}

static void read_record(const subject *s, uint32_t i) {
    const uint8_t *pixels;
    uint32_t label;
    assert_int_equal(bpt_dataset_get(s->dataset, s->split, i, &pixels, &label), BPT_OK);
    assert_int_equal(pixels[5], made_pixel(1, i, 5));
}

/* Opening reads the pages between records, and what lies beside them stays on the disk. */
static void test_opened(void **state) {
    subject *s = *state;
    forget(s);
    if (count_resident(s) > s->n_pages / 4) skip(); /* a file system in memory */
    bpt_dataset *dataset;
    assert_int_equal(bpt_dataset_open(s->path, &dataset), BPT_OK);
    const size_t n = count_resident(s);
    bpt_dataset_close(dataset);
    printf("opening reads %zu of %zu pages\n", n, s->n_pages);
    assert_true(n < s->n_pages / 20);
}

static void test_expected(void **state) {
    subject *s = *state;
    static const uint32_t some[] = {500, 20, 333, 100, 20};
    const size_t before = begin(s);
    bpt_dataset_expect(s->dataset, s->split, some, 5);
    const size_t after = await_more_than(s, before + 4 * RECORD_PAGES - 1);
    printf("expected: %zu pages for 4 records of %d\n", after - before, RECORD_PAGES);
    assert_true(after >= before + 4 * RECORD_PAGES);
    assert_true(after <= before + 4 * (RECORD_PAGES + 2));
    for (int i = 0; i < 5; i++) read_record(s, some[i]);
    assert_int_equal(count_resident(s), after); /* reading them found all there */
}

/* Has the system take a record out of memory. */
static void push_out(const subject *s, uint32_t i) {
    const uint8_t *pixels;
    uint32_t label;
    assert_int_equal(bpt_dataset_get(s->dataset, s->split, i, &pixels, &label), BPT_OK);
    const uintptr_t from = (uintptr_t)pixels / PAGE * PAGE;
    (void)madvise((void *)from, (size_t)RECORD_PAGES * PAGE, MADV_PAGEOUT);
}

/* What was read is announced again only where it may be gone. */
static void test_read_again(void **state) {
    subject *s = *state;
    (void)begin(s);
    bpt_dataset_expect(s->dataset, s->split, (const uint32_t[]){300}, 1);
    read_record(s, 300);
    const size_t before = count_resident(s);
    push_out(s, 300);
    const size_t without = count_resident(s);
    if (without > before - RECORD_PAGES + 2) skip(); /* a system that does not push out */
    bpt_dataset_set_memory(s->dataset, (uint64_t)1 << 40);
    bpt_dataset_expect(s->dataset, s->split, (const uint32_t[]){300}, 1);
    usleep(50000);
    assert_int_equal(count_resident(s), without);
    bpt_dataset_set_memory(s->dataset, 1 << 20);
    bpt_dataset_expect(s->dataset, s->split, (const uint32_t[]){300}, 1);
    assert_int_equal(await_more_than(s, before - 1), before);
    read_record(s, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_read_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
