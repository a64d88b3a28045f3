/* What a rank has done, to a checkpoint and back, also to that of a version which counted less. */
#include "tools/train/job/counters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Each with a value of its own. */
static const bpt_counters all = {
    .seconds = 12.5,
    .progress = 1,
    .steps = 2,
    .samples = 3,
    .compute_ns = 900,
    .step_ns = 800,
    .path_ns = 600,
    .work_ns = 700,
    .wait_ns = 8,
    .data_wait_ns = 90,
    .eval_ns = 10,
    .quality_ns = 11,
    .comm_cpu_ns = 12,
    .submissions = 13,
    .payload_sent_bytes = 14,
    .payload_received_bytes = 15,
    .header_sent_bytes = 16,
    .header_received_bytes = 17,
    .border_sent_bytes = 18,
    .border_received_bytes = 19,
    .peak_rss_bytes = 20,
};

/* Writes counters without those of which the keys are in a list, ended by NULL, and reads that. */
static bpt_status there_and_back(const bpt_counters *c, const char *const *without,
                                 bpt_counters *out) {
    bpt_json_writer w = {0};
    bpt_json_doc *doc = NULL;
    char text[2048];
    const char *written;
    size_t length;
    bpt_json_open_object(&w, NULL);
    bpt_counters_put(c, &w);
    bpt_json_close_object(&w);
    assert_int_equal(bpt_json_end_text(&w, &written, &length), BPT_OK);
    assert_true(length < sizeof text);
    memcpy(text, written, length);
    text[length] = 0;
    for (; *without; without++) { /* another key does not matter */
        char *const key = strstr(text, *without);
        assert_non_null(key);
        *key = '-';
    }
    assert_int_equal(bpt_json_parse("counters", text, length, &doc), BPT_OK);
    const bpt_status status = bpt_counters_get(doc, bpt_json_root(doc), out);
    bpt_json_doc_free(doc);
    bpt_json_free(&w);
    return status;
}

static void assert_equal(const bpt_counters *a, const bpt_counters *b) {
    assert_memory_equal(a, b, sizeof *a); /* which has no padding: 8 bytes each */
}

static const char *const no_times[] = {"step_ns", "path_ns", "work_ns", NULL};

static void test_all(void **state) {
    (void)state;
    static const char *const none[] = {NULL};
    bpt_counters c;
    assert_int_equal(there_and_back(&all, none, &c), BPT_OK);
    assert_equal(&c, &all);
}

/* What was not told apart is work: of no path anything is known. */
static void test_without_times_of_steps(void **state) {
    (void)state;
    bpt_counters c, wanted = all;
    wanted.step_ns = wanted.work_ns = 900 - 90;
    wanted.path_ns = 0;
    assert_int_equal(there_and_back(&all, no_times, &c), BPT_OK);
    assert_equal(&c, &wanted);

    bpt_counters waited = all; /* figures that contradict each other */
    waited.data_wait_ns = 1000;
    wanted = waited;
    wanted.step_ns = wanted.path_ns = wanted.work_ns = 0;
    assert_int_equal(there_and_back(&waited, no_times, &c), BPT_OK);
    assert_equal(&c, &wanted);
}

static void test_what_may_be_missing(void **state) {
    (void)state;
    static const char *const later[] = {"quality_ns", "border_sent_bytes", "border_received_bytes",
                                        NULL};
    static const char *const first[] = {"samples", NULL};
    bpt_counters c, wanted = all;
    wanted.quality_ns = wanted.border_sent_bytes = wanted.border_received_bytes = 0;
    assert_int_equal(there_and_back(&all, later, &c), BPT_OK);
    assert_equal(&c, &wanted);
    assert_int_equal(there_and_back(&all, first, &c), BPT_EDATA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_without_times_of_steps),
        cmocka_unit_test(test_what_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
