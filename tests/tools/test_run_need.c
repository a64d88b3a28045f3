/* How much room a run takes in its folder. */
#include "tools/train/run_need.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { WEIGHTS = 100, CHECKPOINT = 300 };

/* A run of 1000 samples from its start on. */
static const bpt_run_writes fresh = {.weights = WEIGHTS, .vectors = 3, .total = 1000, .keep = 3};

static void assert_need(bpt_run_writes run, uint64_t least, uint64_t most) {
    const bpt_run_need need = bpt_run_need_of(&run);
    assert_int_equal(need.least, least);
    assert_int_equal(need.most, most);
}

/* Checkpoints over time against a folder that is filled and emptied one by one. */
static uint64_t most_by_hand(const bpt_run_writes *run) {
    uint64_t n = run->there, most = 0;
    for (uint64_t at = run->every; run->every > 0 && at < run->total; at += run->every) {
        if (at <= run->progress) continue;
        n++;
        if (n * CHECKPOINT > most) most = n * CHECKPOINT;
        if (n > run->keep) n = run->keep;
    }
    if (n * CHECKPOINT + WEIGHTS > most) most = n * CHECKPOINT + WEIGHTS;
    return most - run->there * CHECKPOINT;
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
    bpt_run_writes run = fresh;
    run.every = 200;
    run.progress = 700; /* off a multiple: 800 is due */
    run.there = 1;
    assert_need(run, CHECKPOINT + WEIGHTS, CHECKPOINT + WEIGHTS);
    run.there = 3; /* one goes as it comes */
    assert_need(run, CHECKPOINT, CHECKPOINT);
    run.there = 9; /* with another --checkpoint-keep */
    assert_need(run, CHECKPOINT, CHECKPOINT);
    run.progress = 800;
    assert_need(run, WEIGHTS, WEIGHTS);
    run.progress = 5000; /* nothing is left */
    assert_need(run, WEIGHTS, WEIGHTS);
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
}

static void test_all_by_hand(void **state) {
    (void)state;
    for (uint64_t keep = 1; keep <= 4; keep++)
        for (uint64_t there = 0; there <= keep; there++)
            for (uint64_t every = 0; every <= 1100; every += 50)
                for (uint64_t progress = 0; progress < 1000; progress += 70) {
                    bpt_run_writes run = fresh;
                    run.keep = keep;
                    run.there = there;
                    run.every = every;
                    run.progress = progress;
                    assert_int_equal(bpt_run_need_of(&run).most, most_by_hand(&run));
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_run),
        cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_all_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
