/* Q of a rank's weights, by hand; and what a checkpoint keeps of it. */
#include "tests/base/near.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_note),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
