/* The images that a model is fitted to: opened, and whole, or nothing is left open. */
#include "base/memory.h"
#include "tests/storage/made_dataset.h"
#include "tools/shaped_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { COUNT = 7 };

/* What the dataset is told, at the linker's bidding; and how often. */
static uint64_t told_bytes;
static int n_told;

void __wrap_bpt_dataset_set_memory(bpt_dataset *dataset, uint64_t memory_bytes);
void __wrap_bpt_dataset_set_memory(bpt_dataset *dataset, uint64_t memory_bytes) {
    assert_non_null(dataset);
    told_bytes = memory_bytes;
    n_told++;
}

static made_place place;

static int set_up(void **state) {
    (void)state;
    place = made_place_create();
    const bpt_writer_options options = made_options("train", 1, 4, 6);
    n_told = 0;
    return made_split(place.dataset, &options, 1, COUNT) == BPT_OK ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    made_place_remove(&place);
    return 0;
}

static bpt_shaped_model wanted(const int64_t *input_size) {
    return (bpt_shaped_model){.model = "lenet", .data = place.dataset, .input_size = input_size};
}

static void test_open(void **state) {
    (void)state;
    const bpt_shaped_model w = wanted(NULL);
    bpt_dataset *dataset = NULL;
    const bpt_split *split = NULL;
    assert_int_equal(bpt_shaped_model_open_data(&w, "train", &dataset, &split), BPT_OK);
    assert_string_equal(split->name, "train");
    assert_int_equal(split->count, COUNT);
    assert_int_equal(n_told, 1); /* what does not fit into memory is read ahead in every pass */
    assert_int_equal(told_bytes, bpt_memory_of_machine());
    assert_int_equal(made_equal(dataset, split, 1), COUNT);
    bpt_dataset_close(dataset);
}

static void assert_refused(bpt_status status, const char *split_name, const int64_t *input_size) {
    const bpt_shaped_model w = wanted(input_size);
    const size_t before = bpt_memory_live();
    bpt_dataset *dataset = NULL;
    const bpt_split *split = NULL;
    assert_int_equal(bpt_shaped_model_open_data(&w, split_name, &dataset, &split), status);
    assert_null(dataset);
    assert_null(split);
    assert_int_equal(bpt_memory_live(), before);
}

static void test_refused(void **state) {
    (void)state;
    assert_refused(BPT_ENOENT, "nosuch", NULL);
    assert_non_null(strstr(bpt_error_last()->hint, "--train-split names one of them"));
    assert_refused(BPT_EUSAGE, "train", (const int64_t[]){8, 8}); /* raw images have their size */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
