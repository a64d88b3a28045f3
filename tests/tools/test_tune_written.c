/* That bpt-tune writes what its search comes to, which is made up here: on most machines that run
 * the tests the default is the fastest. */
#include "base/file.h"
#include "base/memory.h"
#include "tools/tune/search.h"
#include "tools/tuned_file.h"

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

int bpt_tune_main(int argc, char **argv); /* of the program, by another name */

/* ---- a search that is over at once ---- */

static bpt_tuned_choices best; /* what is found */

bpt_status __wrap_bpt_search_run(bpt_search *s);

bpt_status __wrap_bpt_search_run(bpt_search *s) {
    s->standard = bpt_knob_defaults(&s->limits);
    s->best = best;
    s->standard_s = s->best_s = (bpt_spread){.n = 9, .median = 0.01};
    s->gain = (bpt_spread){.n = 9, .median = 0.8, .low = 0.7, .high = 0.9};
    s->lacks_costs = true;
    return BPT_OK;
}

/* ---- tests ---- */

static char folder[] = "/tmp/bpt-tune-written-XXXXXX", path[64];

/* @return what the program writes; to be freed */
static bpt_tuned *tune(void) {
    char *arguments[] = {"bpt-tune", "--model", "lenet", "--batch-size", "8", "--force",
                         "--out",    path,      NULL};
    assert_int_equal(bpt_tune_main(8, arguments), 0);
    bpt_tuned *tuned;
    char *text;
    size_t size;
    assert_int_equal(bpt_file_read(path, 1 << 20, &text, &size), BPT_OK);
    assert_int_equal(strncmp(text, "# Made by bpt-tune on ", 22), 0); /* for people */
    assert_non_null(strstr(text, "\n# lenet, 8 samples a step, fp32, "));
    bpt_free(text);
    assert_int_equal(bpt_tuned_read(path, &tuned), BPT_OK);
    assert_int_equal(unlink(path), 0);
    return tuned;
}

static void test_the_best_is_written(void **state) {
    (void)state;
    best =
        (bpt_tuned_choices){.threads = 57, .policy = "level", .loader_threads = 3, .prefetch = 9};
    bpt_tuned *t = tune();
    assert_int_equal(t->choices.threads, 57);
    assert_string_equal(t->choices.policy, "level");
    assert_int_equal(t->choices.loader_threads, 3);
    assert_int_equal(t->choices.prefetch, 9);
    assert_null(t->choices.cuts);
    assert_int_equal(t->n_costs, 0);
    assert_string_equal(t->key.value[BPT_TUNED_MODEL], "lenet");
    assert_string_equal(t->key.value[BPT_TUNED_BATCH], "8");
    assert_string_equal(t->key.value[BPT_TUNED_PRECISION], "fp32");
    bpt_tuned_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_is_written),
    };
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/lenet.yaml", folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed) unlink(path);
    return rmdir(folder) != 0 || failed;
}
