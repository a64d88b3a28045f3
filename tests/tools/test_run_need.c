/* How much room a run takes in its folder. */
#include "tools/train/job/run_need.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { WEIGHTS = 100, CHECKPOINT = 300 };

/* A run of 1000 samples from its start on. */
static const bpt_run_writes fresh = {
    .weights = WEIGHTS, .checkpoint = CHECKPOINT, .total = 1000, .keep = 3};

static void assert_need(bpt_run_writes run, uint64_t least, uint64_t most) {
    const bpt_run_need need = bpt_run_need_of(&run);
    assert_int_equal(need.least, least + BPT_RUN_NEED_OTHERS);
    assert_int_equal(need.most, most + BPT_RUN_NEED_OTHERS);
}

static void test_new_run(void **state) {
    (void)state;
    bpt_run_writes run = fresh;
    assert_need(run, WEIGHTS, WEIGHTS);
    run.every = 1000; /* which would be at the end */
    assert_need(run, WEIGHTS, WEIGHTS);
    run.every = 999;
    assert_need(run, CHECKPOINT + WEIGHTS, CHECKPOINT + WEIGHTS);
    run.every = 300;
    assert_need(run, CHECKPOINT + WEIGHTS, 3 * CHECKPOINT + WEIGHTS);
    run.every = 200; /* the fourth is whole before the first goes */
    assert_need(run, CHECKPOINT + WEIGHTS, 4 * CHECKPOINT);
}

static void test_going_on(void **state) {
    (void)state;
    static const uint64_t there[9] = {CHECKPOINT, CHECKPOINT, CHECKPOINT, CHECKPOINT, CHECKPOINT,
                                      CHECKPOINT, CHECKPOINT, CHECKPOINT, CHECKPOINT};
    bpt_run_writes run = fresh;
    run.every = 200;
    run.progress = 700; /* off a multiple: 800 is due */
    run.there = there;
    run.n_there = 1;
    assert_need(run, CHECKPOINT + WEIGHTS, CHECKPOINT + WEIGHTS);
    run.n_there = 3; /* one goes as it comes */
    assert_need(run, CHECKPOINT, CHECKPOINT);
    run.n_there = 9; /* with another --checkpoint-keep */
    assert_need(run, CHECKPOINT, CHECKPOINT);
    run.progress = 800;
    assert_need(run, WEIGHTS, WEIGHTS);
    run.progress = 5000; /* nothing is left */
    assert_need(run, WEIGHTS, WEIGHTS);
}

/* Those of a job with fewer vectors of state make less room than the new ones take. */
static void test_other_sizes(void **state) {
    (void)state;
    static const uint64_t there[3] = {100, 120, 150};
    bpt_run_writes run = fresh;
    run.every = 100;
    run.there = there;
    run.n_there = 3;
    run.progress = 800;
    assert_need(run, CHECKPOINT, CHECKPOINT);
    run.progress = 600; /* three: 300, 300 - 150 + 300, 600 - 270 + 300, then 900 - 370 + 100 */
    assert_need(run, CHECKPOINT, 630);
}

/* One that waits for an exchange may never come. */
static void test_late(void **state) {
    (void)state;
    bpt_run_writes run = fresh;
    run.every = 600;
    run.late = 399;
    assert_need(run, CHECKPOINT + WEIGHTS, CHECKPOINT + WEIGHTS);
    assert_int_equal(bpt_run_need_of(&run).checkpoints, 1);
    run.late = 400;
    assert_need(run, WEIGHTS, CHECKPOINT + WEIGHTS);
    assert_int_equal(bpt_run_need_of(&run).checkpoints, 0);
    assert_true(bpt_run_need_of(&run).fewer);
    run.keep = 1;
    assert_false(bpt_run_need_of(&run).fewer);
}

/* One that the clock asks for, however much is due otherwise, or nothing. */
static void test_one(void **state) {
    (void)state;
    static const uint64_t there[3] = {CHECKPOINT, CHECKPOINT, CHECKPOINT};
    bpt_run_writes run = fresh;
    const uint64_t every[] = {0, 100, 600};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        run.every = every[i];
        run.n_there = 0;
        assert_int_equal(bpt_run_need_of_one(&run), CHECKPOINT + WEIGHTS + BPT_RUN_NEED_OTHERS);
        run.there = there;
        run.n_there = 3; /* one goes as it comes */
        assert_int_equal(bpt_run_need_of_one(&run), CHECKPOINT + BPT_RUN_NEED_OTHERS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_run),     cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_other_sizes), cmocka_unit_test(test_late),
        cmocka_unit_test(test_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
