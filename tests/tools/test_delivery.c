/* Samples on their way from rank 0 to a rank that has another dataset: neither rank reads what its
 * dataset does not have. */
#include "base/memory.h"
#include "outer/comm.h"
#include "tests/storage/made_dataset.h"
#include "tools/train/data/delivery.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { COUNT = 60, BATCH = 5, H = 4, W = 4 };

static bpt_comm *comm;

/* The feed has one; no sample is drawn here. */
bpt_augment bpt_train_augment(const bpt_train_options *o) {
    (void)o;
    return (bpt_augment){0};
}

static bpt_dataset *make_dataset(const made_place *place, uint32_t rank) {
    const bpt_writer_options train = made_options("train", 1, H, W);
    const bpt_writer_options test = made_options("test", 1, H, W);
    bpt_dataset *dataset = NULL;
    assert_int_equal(made_split(place->dataset, &train, 1, COUNT), BPT_OK);
    if (rank != 0) assert_int_equal(made_split(place->dataset, &test, 2, COUNT), BPT_OK);
    assert_int_equal(bpt_dataset_open(place->dataset, &dataset), BPT_OK);
    return dataset;
}

static bpt_scratch *open_scratch(const made_place *place, const bpt_dataset *dataset) {
    char path[100], *description = NULL;
    size_t size = 0;
    bpt_scratch *scratch = NULL;
    snprintf(path, sizeof path, "%s/scratch", place->directory);
    assert_int_equal(bpt_dataset_export(dataset, &description, &size), BPT_OK);
    assert_int_equal(bpt_scratch_open(path, description, size, &scratch), BPT_OK);
    bpt_free(description);
    return scratch;
}

/* "train" is the second split of rank 1's dataset, and rank 0's has one. */
static void test_split_that_rank_0_lacks(void **state) {
    (void)state;
    const uint32_t rank = bpt_comm_rank(comm);
    const made_place place = made_place_create();
    bpt_dataset *dataset = make_dataset(&place, rank);
    bpt_scratch *scratch = rank == 0 ? NULL : open_scratch(&place, dataset);
    bpt_delivery_options options = {
        .rank = rank,
        .dataset = scratch ? bpt_scratch_dataset(scratch) : dataset,
        .record_bytes = (size_t)H * W,
        .scratch = scratch,
        .batch_all = BATCH,
        .steps = 1,
        .batch = BATCH,
        .prefetch = 1,
    };
    bpt_delivery *d = NULL;
    assert_int_equal(bpt_dataset_find(options.dataset, "train", &options.train), BPT_OK);
    options.test = options.train;
    assert_int_equal(bpt_delivery_open(comm, &options, &d), BPT_OK);
    if (rank != 0) {
        uint64_t n_kept = 0;
        bool here = false;
        assert_int_equal(bpt_delivery_await_first(d, INFINITY, &n_kept, &here), BPT_ECOMM);
        assert_int_equal(bpt_scratch_has(scratch, options.train, 0), false);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    assert_int_equal(bpt_delivery_advance(d, NULL), BPT_ECOMM);
    assert_string_equal(bpt_error_last()->text,
                        "samples of split 1 (from 0) are asked for, and the dataset has 1");
    bpt_delivery_close(d);
    bpt_scratch_close(scratch);
    bpt_dataset_close(dataset);
    made_place_remove(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_that_rank_0_lacks),
    };
    if (bpt_comm_start(&comm) != BPT_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed) bpt_comm_abort(comm, 1);
    bpt_comm_stop(comm);
    return bpt_memory_live() == 0 ? 0 : 1;
}
