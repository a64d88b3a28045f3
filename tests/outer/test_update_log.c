/* Lines that one thread adds and another writes: all of them, whole and in order. */
#include "base/file.h"
#include "base/memory.h"
#include "outer/exchange/update_log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N_LINES = 20000 };

static char folder[] = "/tmp/bpt-update-log-XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    return bpt_dir_remove(folder) == BPT_OK ? 0 : -1;
}

/* @return a log in a file of its own, whatever tests before left */
static bpt__update_log *open_anew(void) {
    bpt__update_log *log;
    remove(path);
    assert_int_equal(bpt__update_log_open(path, &log), BPT_OK);
    return log;
}

/* @return the lines of the file, checked */
static uint64_t count_lines(void) {
    char *text;
    size_t size;
    uint64_t n = 0;
    assert_int_equal(bpt_file_read(path, 1 << 24, &text, &size), BPT_OK);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        char begin[64];
        snprintf(begin, sizeof begin, "{\"shard\": 2, \"version\": %llu,", (unsigned long long)++n);
        *end = '\0';
        assert_memory_equal(line, begin, strlen(begin));
        assert_int_equal(end[-1], '}');
    }
    assert_true(size == 0 || text[size] == '\0');
    bpt_free(text);
    return n;
}

/* Lines are added between steps of training, where nothing is allocated. */
static void test_first_lines_take_no_memory(void **state) {
    (void)state;
    bpt__update_log *log = open_anew();
    const uint64_t before = bpt_memory_allocations();
    const bpt__update widest = {UINT32_MAX, UINT32_MAX, UINT64_MAX,   UINT64_MAX,  UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, -1.0 / 3e200, -1.0 / 3e200};
    for (int i = 0; i < 100; i++) assert_int_equal(bpt__update_log_add(log, &widest), BPT_OK);
    assert_int_equal(bpt_memory_allocations(), before);
    assert_int_equal(bpt__update_log_close(log), BPT_OK);
}

static atomic_bool all_added;

static void *add_lines(void *log) {
    bpt__update update = {.shard = 2};
    for (update.version = 1; update.version <= N_LINES; update.version++)
        if (bpt__update_log_add(log, &update) != BPT_OK) return NULL;
    atomic_store(&all_added, true);
    return log;
}

static void test_two_threads(void **state) {
    (void)state;
    pthread_t thread;
    void *result;
    bpt__update_log *log = open_anew();
    assert_int_equal(pthread_create(&thread, NULL, add_lines, log), 0);
    while (!atomic_load(&all_added)) assert_int_equal(bpt__update_log_write(log, 4096), BPT_OK);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, log);
    assert_int_equal(bpt__update_log_write(log, 0), BPT_OK);
    assert_int_equal(count_lines(), N_LINES);
    assert_int_equal(bpt__update_log_close(log), BPT_OK);
    assert_int_equal(count_lines(), N_LINES);
}

static void test_few_lines_wait(void **state) {
    (void)state;
    bpt__update_log *log = open_anew();
    const bpt__update update = {.shard = 2, .version = 1};
    assert_int_equal(bpt__update_log_add(log, &update), BPT_OK);
    assert_int_equal(bpt__update_log_write(log, 4096), BPT_OK);
    assert_int_equal(count_lines(), 0);
    assert_int_equal(bpt__update_log_close(log), BPT_OK);
    assert_int_equal(count_lines(), 1);
}

/* @return how often the file holds a line, of which it is made */
static size_t count_lines_of(const char *line) {
    char *text;
    size_t size;
    assert_int_equal(bpt_file_read(path, 1 << 10, &text, &size), BPT_OK);
    for (size_t at = 0; at < size; at += strlen(line))
        assert_memory_equal(text + at, line, strlen(line));
    bpt_free(text);
    return size / strlen(line);
}

static void test_what_a_line_says(void **state) {
    (void)state;
    const bpt__update update = {.shard = 2,
                                .version = 9,
                                .worker = 1,
                                .seq = 4,
                                .base = 6,
                                .gamma = 0.375,
                                .quality = 1.25,
                                .staleness = 3,
                                .lead = 5};
    static const char line[] =
        "{\"shard\": 2, \"version\": 9, \"worker\": 1, \"seq\": 4, \"base\": 6, "
        "\"gamma\": 0.375, \"q\": 1.25, \"staleness\": 3, \"lead\": 5}\n";
    bpt__update_log *log = open_anew();
    assert_int_equal(bpt__update_log_add(log, &update), BPT_OK);
    assert_int_equal(bpt__update_log_close(log), BPT_OK);
    assert_int_equal(count_lines_of(line), 1);
    /* Lines that are as many as are waited for are handed on. */
    log = open_anew();
    assert_false(bpt__update_log_due(log, 1));
    assert_int_equal(bpt__update_log_add(log, &update), BPT_OK);
    assert_false(bpt__update_log_due(log, sizeof line));
    assert_true(bpt__update_log_due(log, sizeof line - 1));
    assert_int_equal(bpt__update_log_write(log, sizeof line), BPT_OK);
    assert_int_equal(count_lines_of(line), 0);
    assert_int_equal(bpt__update_log_write(log, sizeof line - 1), BPT_OK);
    assert_int_equal(count_lines_of(line), 1);
    assert_int_equal(bpt__update_log_close(log), BPT_OK);
}

static void test_nowhere_to_write(void **state) {
    (void)state;
    bpt__update_log *log = NULL;
    assert_int_equal(bpt__update_log_open("/nowhere/log", &log), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "/nowhere/log"));
    assert_int_equal(bpt__update_log_close(NULL), BPT_OK);
}

static void test_a_full_disk(void **state) {
    (void)state;
    bpt__update_log *log;
    assert_int_equal(bpt__update_log_open("/dev/full", &log), BPT_OK);
    assert_int_equal(bpt__update_log_add(log, &(bpt__update){.version = 1}), BPT_OK);
    assert_int_equal(bpt__update_log_write(log, 0), BPT_ENOSPC);
    assert_non_null(strstr(bpt_error_last()->text, "/dev/full"));
    bpt__update_log_close(log);
    assert_int_equal(bpt__update_log_open("/dev/full", &log), BPT_OK);
    assert_int_equal(bpt__update_log_add(log, &(bpt__update){.version = 1}), BPT_OK);
    assert_int_equal(bpt__update_log_close(log), BPT_ENOSPC);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_lines_take_no_memory),
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_few_lines_wait),
        cmocka_unit_test(test_what_a_line_says),
        cmocka_unit_test(test_nowhere_to_write),
        cmocka_unit_test(test_a_full_disk),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
