/* Images of two channels, which are neither grey nor in colour: no command writes them as a
 * picture, or names another that would. */
#include "base/file.h"
#include "tests/storage/made_dataset.h"
#include "tests/tools/work_place.h"
#include "tools/ingest/ingest_commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MOST = 16 }; /* words of a command */

/* @param line words of the command, a blank between two; it would make "new" */
static void assert_refused(const bpt_ingest_command *command, const char *line, const char *says) {
    char words[256], *argv[MOST] = {NULL}, *rest = words;
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word; argc + 1 < MOST && (word = strsep(&rest, " "));) argv[argc++] = word;
    assert_int_equal(command->run(argc, argv), BPT_EDATA);
    assert_string_equal(bpt_error_last()->text, says);
    assert_string_equal(bpt_error_last()->hint, "");
    assert_false(bpt_path_exists("new"));
}

static void test_two_channels(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("s", 2, 6, 6);
    assert_int_equal(made_split("two", &o, 1, 9), BPT_OK);
    assert_refused(&bpt_ingest_montage, "montage two --split s --to new",
                   "images of 2 channels cannot be drawn (1 or 3)");
    assert_refused(&bpt_ingest_export, "export two --split s --to new",
                   "images of 2 channels cannot be written as PNG (1 or 3)");
    assert_refused(&bpt_ingest_export, "export two --split s --to new --format idx",
                   "images of 2 channels cannot be written as IDX (1)");
}

static void test_three_channels(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("s", 3, 6, 6);
    char *argv[] = {"export", "three", "--split", "s", "--to", "new", "--format", "idx", NULL};
    assert_int_equal(made_split("three", &o, 1, 9), BPT_OK);
    assert_int_equal(bpt_ingest_export.run(8, argv), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "and these are in colour"));
    assert_string_equal(bpt_error_last()->hint, "--format png writes them all");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_channels),
        cmocka_unit_test(test_three_channels),
    };
    return cmocka_run_group_tests(tests, work_place_open, work_place_close);
}
