/* Commands of bpt-ingest record by record: they count what is done, and one that a signal comes to
 * in the middle, or whose dataset is damaged meanwhile, leaves nothing. */
#include "storage/dataset/dataset.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/ingest_progress.h"

#include <sys/wait.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static struct {
    const char *verb; /* of the work under way */
    uint64_t done, total;
    bool miscounts;
    const char *stop_verb; /* NULL: no signal comes */
    uint64_t stop_at;
} told;

static bool is_whole(void) {
    return !told.miscounts && told.done > 0 && told.done == told.total;
}

void __wrap_bpt_ingest_progress_show(bpt_ingest_progress *p, uint64_t done, uint64_t total);

void __wrap_bpt_ingest_progress_show(bpt_ingest_progress *p, uint64_t done, uint64_t total) {
    if (!told.verb || strcmp(told.verb, p->verb) != 0) {
        told.miscounts = told.miscounts || (told.verb && told.done != told.total);
        told.verb = p->verb;
        told.done = 0;
    }
    told.miscounts = told.miscounts || done != told.done + 1;
    told.done = done;
    told.total = total;
    if (told.stop_verb && strstr(p->verb, told.stop_verb) && done == told.stop_at)
        (void)raise(SIGTERM);
}

static bool cut_short; /* the file that is read */

bpt_status __real_bpt_dataset_check(const bpt_dataset *dataset);
bpt_status __wrap_bpt_dataset_check(const bpt_dataset *dataset);

bpt_status __wrap_bpt_dataset_check(const bpt_dataset *dataset) {
    return cut_short ? bpt_fail(BPT_ECORRUPT, "cut short") : __real_bpt_dataset_check(dataset);
}

static bool stop_in_flush; /* of the next file */

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd) {
    if (stop_in_flush) (void)raise(SIGTERM);
    stop_in_flush = false;
    return __real_fsync(fd);
}

enum { MOST = 16 }; /* words of a command */

typedef enum outcome { WHOLE, STOPPED, DAMAGED, WRONG } outcome;

/* A signal is remembered for as long as a process lives: each command has one.
 * @param line words of the command, a blank between two */
static outcome run(const bpt_ingest_command *command, const char *line) {
    char words[256], *argv[MOST] = {NULL}, *rest = words;
    int argc = 0, status;
    snprintf(words, sizeof words, "%s", line);
    for (char *word; argc + 1 < MOST && (word = strsep(&rest, " "));) argv[argc++] = word;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bpt_status result = command->run(argc, argv);
        _exit(result == BPT_OK && is_whole() ? WHOLE
              : result == BPT_ECANCELED      ? STOPPED
              : result == BPT_ECORRUPT       ? DAMAGED
                                             : WRONG);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (outcome)WEXITSTATUS(status);
}

static const struct {
    const bpt_ingest_command *command;
    const char *line, *made;
    const char *verbs[2]; /* of what it does one after the other; NULL: no more */
} cases[] = {
    {&bpt_ingest_glyphs, "glyphs --out new --split s --count 40", "new", {"stored", NULL}},
    {&bpt_ingest_export, "export a --split s --to png", "png", {"written", NULL}},
    {&bpt_ingest_export, "export a --split s --to idx --format idx", "idx", {"written", NULL}},
    {&bpt_ingest_merge, "merge a b --split s --out both", "both", {"merged", NULL}},
    {&bpt_ingest_split, "split a --from s --share 0.5 --out two", "two", {"looked at", "stored"}},
};

static void test_what_is_done_is_counted(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char remove[64];
        told.stop_verb = NULL;
        assert_int_equal(run(cases[i].command, cases[i].line), WHOLE);
        assert_int_equal(access(cases[i].made, F_OK), 0);
        snprintf(remove, sizeof remove, "rm -r %s", cases[i].made);
        assert_int_equal(system(remove), 0);
    }
}

static void test_a_signal_in_the_middle(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int verb = 0; verb < 2 && cases[i].verbs[verb]; verb++) {
            told.stop_verb = cases[i].verbs[verb];
            told.stop_at = 7;
            assert_int_equal(run(cases[i].command, cases[i].line), STOPPED);
            assert_int_not_equal(access(cases[i].made, F_OK), 0);
        }
    told.stop_verb = NULL;
}

/* The sheet is written at once: it is there then, and no part of it beside. */
static void test_a_signal_while_a_sheet_is_written(void **state) {
    (void)state;
    stop_in_flush = true;
    (void)run(&bpt_ingest_montage, "montage a --split s --to sheet.png");
    stop_in_flush = false;
    assert_int_equal(system("[ \"$(echo sheet*)\" = sheet.png ]"), 0);
    assert_int_equal(unlink("sheet.png"), 0);
}

/* Zeros that were read in place of images are not passed on. */
static void test_a_file_that_is_cut_short(void **state) {
    (void)state;
    cut_short = true;
    for (size_t i = 1; i < sizeof cases / sizeof *cases; i++) { /* the first reads none */
        assert_int_equal(run(cases[i].command, cases[i].line), DAMAGED);
        assert_int_not_equal(access(cases[i].made, F_OK), 0);
    }
    assert_int_equal(run(&bpt_ingest_montage, "montage a --split s --to sheet.png"), DAMAGED);
    assert_int_not_equal(access("sheet.png", F_OK), 0);
    cut_short = false;
}

static char folder[] = "/tmp/bpt-ingest-stopped-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
    return run(&bpt_ingest_glyphs, "glyphs --out a --split s --count 40 --seed 1") == WHOLE &&
                   run(&bpt_ingest_glyphs, "glyphs --out b --split s --count 40 --seed 2") == WHOLE
               ? 0
               : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char remove[64];
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    return chdir("/") == 0 && system(remove) == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_done_is_counted),
        cmocka_unit_test(test_a_signal_in_the_middle),
        cmocka_unit_test(test_a_signal_while_a_sheet_is_written),
        cmocka_unit_test(test_a_file_that_is_cut_short),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
