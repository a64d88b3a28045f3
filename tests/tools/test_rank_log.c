/* Logs of a rank: what is printed is there, later lines come behind earlier ones, and a disk that
 * is full is heard of. */
#include "base/file.h"
#include "base/memory.h"
#include "tools/train/run/rank_log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static char folder[] = "/tmp/bpt-rank-log-XXXXXX";

/* In the place of a run's folder. */
bpt_status bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out) {
    (void)run;
    BPT_TRY(BPT_NEW("path", sizeof folder + strlen(name) + 2, out));
    sprintf(*out, "%s/%s", folder, strrchr(name, '/') + 1);
    assert_memory_equal(name, "exchange/", strlen("exchange/"));
    return BPT_OK;
}

static void path_of(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
}

static void test_lines_are_appended(void **state) {
    (void)state;
    bpt_rank_log log;
    char path[128], *text = NULL;
    size_t size;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bpt_rank_log_open(NULL, "steps", 3, &log), BPT_OK);
        assert_int_equal(bpt_rank_log_print(&log, "{\"step\": %d}\n", i), BPT_OK);
        assert_int_equal(bpt_rank_log_close(&log), BPT_OK);
        assert_int_equal(bpt_rank_log_close(&log), BPT_OK); /* closed already */
    }
    path_of("steps.rank-3.jsonl", path);
    assert_int_equal(bpt_file_read(path, 1000, &text, &size), BPT_OK);
    assert_string_equal(text, "{\"step\": 0}\n{\"step\": 1}\n");
    bpt_free(text);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A buffer goes to the file when it is full, wherever a line is then; behind it came a kill. */
static void test_half_a_line_is_cut(void **state) {
    (void)state;
    bpt_rank_log log;
    char path[128], *text = NULL;
    size_t size;
    path_of("steps.rank-4.jsonl", path);
    write_file(path, "{\"step\": 0}\n{\"st");
    assert_int_equal(bpt_rank_log_open(NULL, "steps", 4, &log), BPT_OK);
    assert_int_equal(bpt_rank_log_print(&log, "{\"step\": 1}\n"), BPT_OK);
    assert_int_equal(bpt_rank_log_close(&log), BPT_OK);
    assert_int_equal(bpt_file_read(path, 1000, &text, &size), BPT_OK);
    assert_string_equal(text, "{\"step\": 0}\n{\"step\": 1}\n");
    bpt_free(text);
}

static void test_a_full_disk(void **state) {
    (void)state;
    bpt_rank_log log;
    char path[128], said[160];
    path_of("border.rank-0.jsonl", path);
    snprintf(said, sizeof said, "cannot write %s: ", path);
    assert_int_equal(symlink("/dev/full", path), 0);
    /* Few lines stay in the buffer until the close, many do not. */
    assert_int_equal(bpt_rank_log_open(NULL, "border", 0, &log), BPT_OK);
    assert_int_equal(bpt_rank_log_print(&log, "{}\n"), BPT_OK);
    assert_int_equal(bpt_rank_log_close(&log), BPT_ENOSPC);
    assert_non_null(strstr(bpt_error_last()->text, said));
    assert_int_equal(bpt_rank_log_open(NULL, "border", 0, &log), BPT_OK);
    bpt_status status = BPT_OK;
    for (int i = 0; i < 100000 && status == BPT_OK; i++) status = bpt_rank_log_print(&log, "{}\n");
    assert_int_equal(status, BPT_ENOSPC);
    errno = EINTR;                                          /* of something in between */
    assert_int_equal(bpt_rank_log_close(&log), BPT_ENOSPC); /* lines are lost */
}

static void test_no_place(void **state) {
    (void)state;
    bpt_rank_log log;
    char path[128];
    path_of("steps.rank-7.jsonl", path);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    assert_int_equal(bpt_rank_log_open(NULL, "steps", 7, &log), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_int_equal(bpt_rank_log_close(&log), BPT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_appended),
        cmocka_unit_test(test_half_a_line_is_cut),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_no_place),
    };
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return bpt_dir_remove(folder) == BPT_OK && bpt_memory_live() == 0 ? failed : 1;
}
