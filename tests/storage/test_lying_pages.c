/* Pages that lie of others: lists of free ones, by which LMDB writes, so that nobody may write and
 * a look at all of a dataset finds them; and two values that are said to be on the same pages. */
#include "base/memory.h"
#include "tests/storage/made_dataset.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* LMDB's file: words of a head, and where it has what of a page (storage/environment/page_walk.c).
 */
enum { PAGE = 4096, HEADER = 16, WORDS = 17, FREE_ROOT = 8, MAIN_ROOT = 14, LAST = 15, TXN = 16 };
enum { LOWER = 12, NODE = 8, BIG = 1, TREE_ROOT = 40, MAX_LIST = 500 };

static made_place place;
static int file;
static uint64_t head[WORDS];               /* the newer one */
static off_t list_at;                      /* where a list is */
static uint64_t list[1 + MAX_LIST], count; /* its number of pages and the first of them; pages */

static void get(void *to, size_t size, off_t at) {
    assert_int_equal(pread(file, to, size, at), size);
}

static void put(const void *from, size_t size, off_t at) {
    assert_int_equal(pwrite(file, from, size, at), size);
}

static void find_head(void) {
    uint64_t heads[2][WORDS];
    for (int h = 0; h < 2; h++) get(heads[h], sizeof heads[h], h * PAGE + HEADER);
    memcpy(head, heads[heads[1][TXN] > heads[0][TXN]], sizeof head);
}

static uint16_t count_entries(off_t leaf) {
    uint16_t lower;
    get(&lower, sizeof lower, leaf + LOWER);
    return (uint16_t)((lower - HEADER) / 2);
}

/* @param[out] is_big whether the value is on pages of its own, and here their number
 * @return where the value of entry number @p i of a leaf is */
static off_t find_value(off_t leaf, uint16_t i, bool *is_big) {
    uint16_t offset, node[4]; /* low and high half of its size, flags, bytes of the key */
    get(&offset, sizeof offset, leaf + HEADER + 2 * i);
    get(node, sizeof node, leaf + offset);
    *is_big = node[2] == BIG;
    return leaf + offset + NODE + node[3];
}

/* @return whether entry number @p i of the leaf has a list of several pages, which is read then */
static bool read_list(off_t leaf, uint16_t i) {
    bool is_big;
    list_at = find_value(leaf, i, &is_big);
    if (is_big) {
        uint64_t page;
        get(&page, sizeof page, list_at);
        list_at = (off_t)page * PAGE + HEADER;
    }
    get(&count, sizeof count, list_at);
    if (count < 3 || count > MAX_LIST) return false;
    get(list, (1 + count) * sizeof *list, list_at);
    return true;
}

static int set_up(void **state) {
    (void)state;
    char name[120];
    place = made_place_create();
    bpt_writer_options o = made_options("train", 1, 80, 80);
    for (uint32_t salt = 1; salt < 4; salt++, o.replace = true)
        assert_int_equal(made_split(place.dataset, &o, salt, 60), BPT_OK);
    snprintf(name, sizeof name, "%s/data.mdb", place.dataset);
    file = open(name, O_RDWR);
    find_head();
    const off_t leaf = (off_t)head[FREE_ROOT] * PAGE;
    bool found = false;
    for (uint16_t i = 0, n = count_entries(leaf); i < n && !found; i++) found = read_list(leaf, i);
    return found ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    close(file);
    made_place_remove(&place);
    return bpt_memory_live() == 0 ? 0 : 1;
}

/* Then all is as it was. @param n words that are others; shape [n] */
static void refuse(const uint64_t *words, size_t n, const char *says) {
    uint64_t n_records;
    bpt_writer_options o = made_options("train", 1, 80, 80);
    o.replace = true;
    put(words, n * sizeof *words, list_at);
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_ECORRUPT);
    if (!strstr(bpt_error_last()->text, says)) fail_msg("%s: %s", says, bpt_error_last()->text);
    assert_int_equal(made_split(place.dataset, &o, 5, 60), BPT_ECORRUPT);
    if (!strstr(bpt_error_last()->text, says)) fail_msg("%s: %s", says, bpt_error_last()->text);
    put(list, (1 + count) * sizeof *list, list_at);
    assert_int_equal(bpt_dataset_verify(place.dataset, NULL, NULL, &n_records), BPT_OK);
}

static void pages_that_cannot_be(void **state) {
    (void)state;
    static const char says[] = "a free page that cannot be";
    uint64_t lie[1 + MAX_LIST];
    const size_t n = 1 + count;
    memcpy(lie, list, n * sizeof *lie);
    lie[1] = list[2];
    lie[2] = list[1];
    refuse(lie, n, says); /* out of order */
    lie[1] = list[2];
    lie[2] = list[2];
    refuse(lie, n, says); /* twice */
    lie[2] = list[2];
    lie[1] = head[LAST] + 1;
    refuse(lie, n, says);
    lie[1] = list[1];
    lie[count] = 1; /* a head */
    refuse(lie, n, says);
}

static void pages_that_are_in_use(void **state) {
    (void)state;
    refuse((const uint64_t[]){1, head[MAIN_ROOT]}, 2, "used and free");
}

static void lists_that_are_cut(void **state) {
    (void)state;
    refuse((const uint64_t[]){UINT64_MAX}, 1, "a list of free pages is cut");
    refuse((const uint64_t[]){(uint64_t)1 << 61}, 1, "a list of free pages is cut");
    refuse((const uint64_t[]){count + 1}, 1, "a list of free pages is cut");
}

/* Of the records, the only database that has such. @return where in its leaf they are */
static off_t find_records(void) {
    const off_t databases = (off_t)head[MAIN_ROOT] * PAGE;
    bool is_big = false;
    off_t leaf = 0;
    for (uint16_t i = 0, n = count_entries(databases); i < n && !is_big; i++) {
        uint64_t root;
        get(&root, sizeof root, find_value(databases, i, &is_big) + TREE_ROOT);
        leaf = (off_t)root * PAGE;
        (void)find_value(leaf, 0, &is_big);
    }
    assert_true(is_big);
    return leaf;
}

/* Whoever replaced them would free these pages twice. */
static void values_on_the_same_pages(void **state) {
    (void)state;
    bool is_big;
    uint64_t page;
    bpt_dataset *dataset;
    bpt_writer_options o = made_options("test", 1, 80, 80);
    const off_t leaf = find_records();
    get(&page, sizeof page, find_value(leaf, 0, &is_big));
    put(&page, sizeof page, find_value(leaf, 1, &is_big));
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "used twice"));
    assert_int_equal(made_split(place.dataset, &o, 5, 60), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "used twice"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(pages_that_cannot_be),
        TEST(pages_that_are_in_use),
        TEST(lists_that_are_cut),
        TEST(values_on_the_same_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
