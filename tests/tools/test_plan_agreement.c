/* Ranks that were told other things are not to measure together: the one that differs from rank 0
 * says in what, the others hear of it. */
#include "tools/plan/plan_agreement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_comm *comm;
static bpt_model *lenet, *resnet20;

static bpt_probe_subject subject_of_all(void) {
    return (bpt_probe_subject){
        .model = lenet,
        .batch = 8,
        .precision = BPT_PRECISION_FP32,
        .learning = {.optimizer = bpt_optimizer_at(0)},
        .device = "cpu",
        .threads = 1,
        .seconds = 1,
    };
}

/* @param mine what the last rank measures, the others what all do
 * @param says what it differs in; NULL: in nothing that counts */
static void compare(const bpt_probe_subject *mine, const char *says) {
    const bool differs = bpt_comm_rank(comm) + 1 == bpt_comm_size(comm);
    const bpt_probe_subject all = subject_of_all();
    const bpt_status status = bpt_plan_agree(comm, differs ? mine : &all);
    if (!says) {
        assert_int_equal(status, BPT_OK);
        return;
    }
    assert_int_equal(status, differs ? BPT_EUSAGE : BPT_EPEER);
    if (differs && strncmp(bpt_error_last()->text, says, strlen(says)) != 0)
        fail_msg("%s: %s", says, bpt_error_last()->text);
}

static void test_agreement(void **state) {
    (void)state;
    const bpt_dataset *somewhere = (const bpt_dataset *)&comm; /* not looked into */
    bpt_probe_subject s = subject_of_all();
    compare(&s, NULL);
    s.device = "auto";
    s.threads = 2;
    compare(&s, NULL);
    s = subject_of_all();
    s.model = resnet20;
    compare(&s, "the model or its shape is not as rank 0 has it");
    s = subject_of_all();
    s.dataset = somewhere;
    compare(&s, "--data");
    s = subject_of_all();
    s.batch = 4;
    compare(&s, "--batch-size");
    s = subject_of_all();
    s.precision = BPT_PRECISION_BF16;
    compare(&s, "--precision");
    s = subject_of_all();
    s.learning.optimizer = bpt_optimizer_at(1);
    compare(&s, "--optimizer");
    s = subject_of_all();
    s.seconds = 2;
    compare(&s, "--seconds");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agreement)};
    if (bpt_comm_start(&comm) != BPT_OK) return 1;
    if (bpt_model_load("lenet", NULL, &lenet) != BPT_OK ||
        bpt_model_load("resnet20", NULL, &resnet20) != BPT_OK)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bpt_model_free(resnet20);
    bpt_model_free(lenet);
    bpt_comm_stop(comm);
    return failed;
}
