/* The file of predictions where a signal comes while it is written. */
#include "tools/eval/predictions.h"

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

static bool stop_in_flush;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

/* A second signal would end the process. */
int __wrap_fsync(int fd) {
    if (stop_in_flush) (void)raise(SIGTERM);
    stop_in_flush = false;
    return __real_fsync(fd);
}

static char folder[] = "/tmp/bpt-predictions-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char remove[64];
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    return chdir("/") == 0 && system(remove) == 0 ? 0 : -1;
}

static void test_a_signal_leaves_the_whole_file(void **state) {
    (void)state;
    static const char *const names[] = {"cat", "dog"};
    static const int32_t label = 1;
    static const bpt_answer answer = {
        .predicted = 0, .probability = 0.75, .label_probability = 0.25};
    const bpt_batch_answers batch = {.first = 7, .n = 1, .labels = &label, .answers = &answer};
    bpt_predictions p = {.labels = names, .classes = names};
    assert_int_equal(bpt_predictions_add(&p, &batch), BPT_OK);
    stop_in_flush = true;
    assert_int_equal(bpt_predictions_write(&p, "told.jsonl"), BPT_OK);
    assert_false(stop_in_flush);
    bpt_predictions_free(&p);
    assert_int_equal(system("[ \"$(echo *)\" = told.jsonl ]"), 0);
    assert_int_equal(system("grep -q '\"sample\": *7, *\"label\": *\"dog\"' told.jsonl"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_leaves_the_whole_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
