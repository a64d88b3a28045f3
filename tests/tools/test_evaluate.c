/* An evaluation whose loader cannot be made, of a network that lives on. */
#include "storage/loader.h"
#include "tools/evaluate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_answer *told; /* where the network would write */

bool __wrap_bpt_network_takes_images(const bpt_network *net);
void __wrap_bpt_network_tell_answers(bpt_network *net, bpt_answer *answers);
bpt_status __wrap_bpt_loader_create(const bpt_dataset *dataset, const bpt_split *split,
                                    const bpt_loader_options *options, bpt_loader **loader);

bool __wrap_bpt_network_takes_images(const bpt_network *net) {
    (void)net;
    return false;
}

void __wrap_bpt_network_tell_answers(bpt_network *net, bpt_answer *answers) {
    (void)net;
    told = answers;
}

bpt_status __wrap_bpt_loader_create(const bpt_dataset *dataset, const bpt_split *split,
                                    const bpt_loader_options *options, bpt_loader **loader) {
    (void)dataset;
    (void)split;
    (void)options;
    (void)loader;
    return bpt_fail(BPT_ENOMEM, "no loader");
}

static bpt_status take(void *arg, const bpt_batch_answers *answers) {
    (void)arg;
    (void)answers;
    return BPT_OK;
}

static void test_nothing_points_to_what_is_freed(void **state) {
    (void)state;
    const bpt_split split = {.count = 4};
    const bpt_evaluation e = {.normalise = &split, .count = 4, .batch = 2, .take = take};
    bpt_batch_result result;
    assert_int_equal(bpt_evaluate(NULL, &e, &result), BPT_ENOMEM);
    assert_null(told);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_points_to_what_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
