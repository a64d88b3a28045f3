/* Q of a rank's weights, by hand; which records it is taken from, where the network is the test's
 * own; and what a checkpoint keeps of it. */
#include "tests/base/near.h"
#include "tests/storage/made_dataset.h"
#include "tools/train/exchange/quality.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* 7 of 8 right: 8/10; then none of 8: 1/10, which counts a quarter. */
static void test_note(void **state) {
    (void)state;
    bpt_quality_state s = {0};
    bpt_quality_note(&s, 7, 8);
    assert_near(s.mean, 0.8, 1e-12);
    bpt_quality_note(&s, 0, 8);
    assert_near(s.mean, 0.625, 1e-12);
    assert_int_equal(s.taken, 2);
}

/* Whatever comes, it stays between 0 and 1, and is neither. */
static void test_bounds(void **state) {
    (void)state;
    bpt_quality_state best = {0}, worst = {0};
    for (int i = 0; i < 1000; i++) {
        bpt_quality_note(&best, 64, 64);
        bpt_quality_note(&worst, 0, 64);
        assert_true(best.mean < 1 && best.mean > 0.98);
        assert_true(worst.mean > 0 && worst.mean < 0.02);
    }
}

static void test_saved(void **state) {
    (void)state;
    const bpt_quality_state saved = {.taken = 7, .mean = 1.0 / 3};
    bpt_quality_state loaded = {0};
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    bpt_json_doc *doc;
    bpt_json_open_object(&w, NULL);
    bpt_quality_put(saved, &w, "quality");
    bpt_json_close_object(&w);
    assert_int_equal(bpt_json_end_text(&w, &text, &length), BPT_OK);
    assert_int_equal(bpt_json_parse("state", text, length, &doc), BPT_OK);
    assert_int_equal(bpt_quality_get(doc, bpt_json_root(doc), "quality", &loaded), BPT_OK);
    assert_true(loaded.taken == 7 && loaded.mean == saved.mean);
    bpt_json_doc_free(doc);
    bpt_json_free(&w);
    static const char wrong[] = "{\"quality\": {\"taken\": 1, \"mean\": 1.5}}";
    assert_int_equal(bpt_json_parse("state", wrong, sizeof wrong - 1, &doc), BPT_OK);
    assert_int_equal(bpt_quality_get(doc, bpt_json_root(doc), "quality", &loaded), BPT_EDATA);
    bpt_json_doc_free(doc);
}

enum { SALT = 1, SIDE = 4, N_RECORDS = 20, HELD = 5, BATCH = 2 };

static const uint32_t held[HELD] = {3, 1, 4, 15, 9};
static const bpt_split *split;
static uint32_t next; /* of the records held out, which come round and round */
static bpt_status answer;

bpt_status bpt_network_evaluate(bpt_network *net, const void *input, const int32_t *labels,
                                bpt_batch_result *result) {
    const float *pixel = input;
    (void)net;
    for (int i = 0; i < BATCH; i++, next++) {
        const uint32_t record = held[next % HELD];
        assert_int_equal(labels[i], made_label(SALT, record, 3));
        for (size_t p = 0; p < SIDE * SIDE; p++)
            assert_near(*pixel++,
                        (made_pixel(SALT, record, p) / 255.0 - split->mean[0]) / split->std[0],
                        1e-5);
    }
    *result = (bpt_batch_result){.n_correct = 1, .n_samples = BATCH};
    return answer;
}

/* One batch each time, the next ones; and who goes on goes on there. */
static void test_records_come_round(void **state) {
    (void)state;
    const made_place place = made_place_create();
    const bpt_writer_options options = made_options("train", 1, SIDE, SIDE);
    bpt_dataset *dataset = NULL;
    bpt_quality *q = NULL;
    assert_int_equal(made_split(place.dataset, &options, SALT, N_RECORDS), BPT_OK);
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    bpt_quality_state at = {0}, expected = {0};
    for (int part = 0; part < 2; part++) {
        assert_int_equal(bpt_quality_create(dataset, split, held, HELD, BATCH, false, at, &q),
                         BPT_OK);
        for (int i = 0; i < 7; i++) {
            assert_int_equal(bpt_quality_measure(q, NULL), BPT_OK);
            bpt_quality_note(&expected, 1, BATCH);
        }
        at = bpt_quality_state_get(q);
        assert_int_equal(at.taken, expected.taken);
        assert_true(at.mean == expected.mean);
        assert_int_equal(next, at.taken * BATCH);
        if (part == 1) { /* weights that are no numbers have no quality */
            answer = BPT_ENUMERIC;
            assert_int_equal(bpt_quality_measure(q, NULL), BPT_ENUMERIC);
            assert_int_equal(bpt_quality_state_get(q).taken, at.taken);
        }
        bpt_quality_free(q);
    }
    bpt_dataset_close(dataset);
    made_place_remove(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_note),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_records_come_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
