/* The run that a path of --resume belongs to. */
#include "base/memory.h"
#include "tests/tools/work_place.h"
#include "tools/train/job/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void assert_run(const char *resume, const char *expected) {
    char *run;
    assert_int_equal(bpt_checkpoint_run(resume, &run), BPT_OK);
    assert_string_equal(run, expected);
    bpt_free(run);
}

static void test_names(void **state) {
    (void)state;
    make_folder("runs/a/checkpoints/step-1");
    put_file("runs/a/checkpoints/step-1/DONE", "");
    assert_run("runs/a", "runs/a");
    assert_run("runs/none", "runs/none");
    assert_run("runs/a/checkpoints/step-1", "runs/a/checkpoints/step-1/../..");
    put_file("runs/a/config.yaml", "");
    assert_run("runs/a/checkpoints/step-1", "runs/a/.");
    assert_run("runs/a//checkpoints/step-1//", "runs/a//.");
    assert_run("runs/a/checkpoints/step-1/.", "runs/a/checkpoints/step-1/./../..");
    assert_run("runs/a/checkpoints/../checkpoints/step-1", "runs/a/checkpoints/../.");
    assert_int_equal(chdir("runs/a/checkpoints"), 0);
    assert_run("step-1", "step-1/../..");
    assert_int_equal(chdir(".."), 0);
    assert_run("checkpoints/step-1", ".");
    assert_int_equal(chdir(work_place()), 0);
}

/* Checkpoints on another disk belong to the run that they were named by, if it is one. */
static void test_links(void **state) {
    (void)state;
    make_folder("runs/a");
    make_folder("disk/other/step-1");
    put_file("disk/other/step-1/DONE", "");
    put_file("runs/a/config.yaml", "");
    assert_int_equal(symlink("../../disk/other", "runs/a/checkpoints"), 0);
    assert_run("runs/a/checkpoints/step-1", "runs/a/.");
    assert_run("runs/a/checkpoints/step-1/", "runs/a/.");
    assert_run("disk/other/step-1", "disk/other/step-1/../..");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_names, work_place_clear),
        cmocka_unit_test_setup(test_links, work_place_clear),
    };
    return cmocka_run_group_tests(tests, work_place_open, work_place_close);
}
