/* How much room scratch takes. */
#include "tools/train/data/scratch_need.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Samples of 1000 bytes: 994 pixels, label and index. */
static bpt_scratch_job job_of(bpt_update_choice update, bpt_partition_choice partition) {
    return (bpt_scratch_job){.update = update,
                             .partition = partition,
                             .n_ranks = 4,
                             .epochs = 8,
                             .train = 100000,
                             .test = 20000,
                             .record_bytes = 994};
}

/* A hundredth more than the samples, and a MiB. */
static void assert_about(uint64_t bytes, double samples) {
    const double expected = samples * 1010 + (1 << 20);
    assert_true((double)bytes > expected - 2000 && (double)bytes < expected + 2000);
}

static void test_shares(void **state) {
    (void)state;
    for (int u = BPT_UPDATE_AGWU; u <= BPT_UPDATE_SGWU; u++) {
        const bpt_scratch_job even = job_of((bpt_update_choice)u, BPT_PARTITION_EVEN);
        assert_about(bpt_scratch_need_of(&even).even, 25000 + 5000);
        assert_true(bpt_scratch_need_of(&even).most == bpt_scratch_need_of(&even).even);
        const bpt_scratch_job idpa = job_of((bpt_update_choice)u, BPT_PARTITION_IDPA);
        assert_about(bpt_scratch_need_of(&idpa).even, 25000 + 5000);
        assert_about(bpt_scratch_need_of(&idpa).most, 100000 + 5000);
    }
}

/* One order for all: another quarter in every epoch. */
static void test_one_order(void **state) {
    (void)state;
    bpt_scratch_job job = job_of(BPT_UPDATE_ALLREDUCE, BPT_PARTITION_EVEN);
    assert_about(bpt_scratch_need_of(&job).most, 100000 * (1 - 0.1001129150390625) + 5000);
    job.epochs = 1;
    assert_about(bpt_scratch_need_of(&job).most, 25000 + 5000);
    job.epochs = 0.25;
    assert_about(bpt_scratch_need_of(&job).even, 25000 + 5000);
    job.epochs = 1e6;
    assert_about(bpt_scratch_need_of(&job).even, 100000 + 5000);
    job.partition = BPT_PARTITION_IDPA;
    assert_about(bpt_scratch_need_of(&job).most, 100000 + 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
