/* JSON: what the writer writes the reader reads, and what the reader refuses. */
#include "base/json.h"
#include "base/memory.h"
#include "tests/base/support.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bpt_json_doc *parse(const char *text) {
    bpt_json_doc *doc;
    assert_int_equal(bpt_json_parse("test.json", text, strlen(text), &doc), BPT_OK);
    return doc;
}

static void assert_refused(const char *text, const char *reason) {
    bpt_json_doc *doc = NULL;
    assert_int_equal(bpt_json_parse("test.json", text, strlen(text), &doc), BPT_EDATA);
    assert_null(doc);
    assert_non_null(strstr(bpt_error_last()->text, "test.json"));
    if (reason) assert_non_null(strstr(bpt_error_last()->text, reason));
}

static const char *end_text(bpt_json_writer *w) {
    const char *text;
    size_t length;
    assert_int_equal(bpt_json_end_text(w, &text, &length), BPT_OK);
    assert_int_equal(strlen(text), length);
    return text;
}

static void write_sample(bpt_json_writer *w) {
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "event", "eval");
    bpt_json_put_u64(w, "step", 120);
    bpt_json_put_i64(w, "delta", -3);
    bpt_json_put_real(w, "loss", 1.25);
    bpt_json_put_bool(w, "last", true);
    bpt_json_put_bool(w, "first", false);
    bpt_json_put_null(w, "plan");
    bpt_json_open_array(w, "ranks");
    bpt_json_put_u64(w, NULL, 0);
    bpt_json_open_object(w, NULL);
    bpt_json_close_object(w);
    bpt_json_open_array(w, NULL);
    bpt_json_close_array(w);
    bpt_json_put_text(w, NULL, "x");
    bpt_json_close_array(w);
    bpt_json_put_u64(w, "after", 1);
    bpt_json_close_object(w);
}

static void test_writer_spells_a_line(void **state) {
    (void)state;
    bpt_json_writer w = {0};
    write_sample(&w);
    assert_string_equal(end_text(&w),
                        "{\"event\": \"eval\", \"step\": 120, \"delta\": -3, \"loss\": 1.25, "
                        "\"last\": true, \"first\": false, \"plan\": null, "
                        "\"ranks\": [0, {}, [], \"x\"], \"after\": 1}");
    bpt_json_free(&w);
}

static void test_reset_starts_a_new_text_in_the_same_memory(void **state) {
    (void)state;
    bpt_json_writer w = {0};
    assert_string_equal(end_text(&w), "");
    write_sample(&w);
    const uint64_t made = bpt_memory_allocations();
    for (int i = 0; i < 3; i++) {
        bpt_json_reset(&w);
        assert_string_equal(end_text(&w), "");
        bpt_json_open_array(&w, NULL); /* left open: reset must forget it */
        bpt_json_put_u64(&w, NULL, 5);
        assert_string_equal(end_text(&w), "[5");
    }
    assert_int_equal(bpt_memory_allocations(), made);
    bpt_json_free(&w);
}

static void test_texts_round_trip(void **state) {
    (void)state;
    char all[128];
    for (int i = 1; i < 128; i++) all[i - 1] = (char)i;
    all[127] = '\0';
    const char *const texts[] = {
        "", all, "\"quoted\" \\ back", "Grüße, 猫 \xF0\x9F\x90\x88", "a\nb\tc\r", "\x7f",
        /* the first and the last of each length, and beside the surrogates */
        "\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF "
        "\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bpt_json_writer w = {0};
        bpt_json_open_object(&w, NULL);
        bpt_json_put_text(&w, "value", texts[i]);
        bpt_json_put_text(&w, *texts[i] ? texts[i] : "key", "as key");
        bpt_json_close_object(&w);
        bpt_json_doc *doc = parse(end_text(&w));
        const char *value;
        assert_int_equal(bpt_json_get_text(doc, bpt_json_root(doc), "value", &value), BPT_OK);
        assert_string_equal(value, texts[i]);
        const char *key;
        assert_non_null(bpt_json_member(bpt_json_root(doc), 1, &key));
        assert_string_equal(key, *texts[i] ? texts[i] : "key");
        bpt_json_doc_free(doc);
        bpt_json_free(&w);
    }
}

/* Host and file names need not be UTF-8, but the file must stay readable. */
static void test_bytes_that_are_no_utf8_are_replaced(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *text;
    } rows[] = {
        {"caf\xE9", "caf\uFFFD"},         {"\xE9t\xE9", "\uFFFDt\uFFFD"},
        {"\xC0\x80", "\uFFFD\uFFFD"},     {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
        {"x\xE7\x8C", "x\uFFFD\uFFFD"},   {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
        {"\x80猫\xFF", "\uFFFD猫\uFFFD"}, {"\xE0\x9F\xBF", "\uFFFD\uFFFD\uFFFD"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bpt_json_writer w = {0};
        bpt_json_put_text(&w, NULL, rows[i].bytes);
        bpt_json_doc *doc = parse(end_text(&w));
        const char *value;
        assert_int_equal(bpt_json_get_text(doc, bpt_json_root(doc), NULL, &value), BPT_OK);
        assert_string_equal(value, rows[i].text);
        bpt_json_doc_free(doc);
        bpt_json_free(&w);
    }
}

static double real_round_trip(double value) {
    bpt_json_writer w = {0};
    bpt_json_put_real(&w, NULL, value);
    bpt_json_doc *doc = parse(end_text(&w));
    double back;
    assert_int_equal(bpt_json_get_real(doc, bpt_json_root(doc), NULL, &back), BPT_OK);
    bpt_json_doc_free(doc);
    bpt_json_free(&w);
    return back;
}

static void test_reals_round_trip(void **state) {
    (void)state;
    static const double values[] = {
        0,          1,       -1.5,    0.1,           1.0 / 3, 1e22,
        1e300,      DBL_MAX, DBL_MIN, DBL_TRUE_MIN,  -1e-300, 123456789012.0,
        0x1p53 + 2, 0x1p63,  0x1p64,  3.4028235e38f, 0.1f};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(real_round_trip(values[i]) == values[i]);
    float f = 1.17e-38f;
    for (; f < 1e38f; f *= 1.7f) assert_true((float)real_round_trip(f) == f);
}

static void test_reals_are_written_short(void **state) {
    (void)state;
    bpt_json_writer w = {0};
    bpt_json_open_array(&w, NULL);
    bpt_json_put_real(&w, NULL, 0.1);
    bpt_json_put_real(&w, NULL, 2);
    bpt_json_put_real(&w, NULL, NAN);
    bpt_json_put_real(&w, NULL, INFINITY);
    bpt_json_put_real(&w, NULL, -INFINITY);
    bpt_json_close_array(&w);
    assert_string_equal(end_text(&w), "[0.1, 2, null, null, null]");
    bpt_json_free(&w);
}

static void test_whole_numbers_round_trip(void **state) {
    (void)state;
    static const uint64_t values[] = {0, 1, 1u << 31, (uint64_t)1 << 53, INT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        bpt_json_writer w = {0};
        bpt_json_put_u64(&w, NULL, values[i]);
        bpt_json_doc *doc = parse(end_text(&w));
        uint64_t back;
        assert_int_equal(bpt_json_get_u64(doc, bpt_json_root(doc), NULL, 0, UINT64_MAX, &back),
                         BPT_OK);
        assert_true(back == values[i]);
        bpt_json_doc_free(doc);
        bpt_json_free(&w);
    }
    bpt_json_writer w = {0};
    bpt_json_put_u64(&w, NULL, UINT64_MAX);
    assert_string_equal(end_text(&w), "18446744073709551615");
    assert_refused(end_text(&w), "too big integer"); /* the reader goes up to 2^63-1 */
    bpt_json_reset(&w);
    bpt_json_put_i64(&w, NULL, INT64_MIN);
    assert_string_equal(end_text(&w), "-9223372036854775808");
    bpt_json_free(&w);
}

static void test_writer_depth_is_bounded(void **state) {
    (void)state;
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    for (int i = 0; i < BPT_JSON_DEPTH; i++) bpt_json_open_array(&w, NULL);
    for (int i = 0; i < BPT_JSON_DEPTH; i++) bpt_json_close_array(&w);
    bpt_json_doc_free(parse(end_text(&w)));
    bpt_json_reset(&w);
    for (int i = 0; i < 3 * BPT_JSON_DEPTH; i++) bpt_json_open_object(&w, "k");
    for (int i = 0; i < 4 * BPT_JSON_DEPTH; i++) bpt_json_close_object(&w);
    assert_int_equal(w.depth, 0);
    assert_int_equal(bpt_json_end_text(&w, &text, &length), BPT_EFULL);
    bpt_json_free(&w);
}

static bpt_status write_all(void *arg) {
    (void)arg;
    bpt_json_writer w = {0};
    write_sample(&w);
    const char *text;
    size_t length;
    const bpt_status status = bpt_json_end_text(&w, &text, &length);
    bpt_json_free(&w);
    return status;
}

static bpt_status parse_once(void *arg) {
    const char *text = arg;
    bpt_json_doc *doc;
    BPT_TRY(bpt_json_parse("test.json", text, strlen(text), &doc));
    bpt_json_doc_free(doc);
    return BPT_OK;
}

static void test_allocation_failures_are_reported(void **state) {
    (void)state;
    support_fail_each_allocation(write_all, NULL);
    support_fail_each_allocation(parse_once, (void *)"{\"a\": [1, 2.5, \"x\"], \"b\": {}}");
}

static void test_malformed_texts_name_their_line(void **state) {
    (void)state;
    assert_refused("{\n\"a\": 1,\n\"b\": }\n", "line 3");
    assert_refused("{\"a\": 1, \"a\": 2}", "duplicate");
    assert_refused("{\"a\": {\"b\": 1, \"b\": 2}}", "duplicate");
    assert_refused("{} {}", "line 1");
    assert_refused("[1, 2", NULL);
    assert_refused("", NULL);
    assert_refused("[1e999]", NULL);
    assert_refused("[9223372036854775808]", NULL);
    assert_refused("[\"\\u0000\"]", NULL); /* would end a C string early */
    assert_refused("[\"\xE9\"]", NULL);
    assert_refused("[nan]", NULL);
}

static void test_reader_depth_is_bounded(void **state) {
    (void)state;
    char deep[200001];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_refused(deep, NULL);
}

static void test_walking_a_document(void **state) {
    (void)state;
    bpt_json_doc *doc = parse("{\"z\": [10, 20], \"a\": {\"x\": null}, \"m\": 3}");
    const bpt_json *root = bpt_json_root(doc), *list = bpt_json_find(root, "z");
    assert_true(bpt_json_is_object(root));
    assert_true(bpt_json_is_array(list));
    assert_false(bpt_json_is_array(root) || bpt_json_is_object(list));
    assert_int_equal(bpt_json_size(root), 3);
    assert_int_equal(bpt_json_size(list), 2);
    assert_int_equal(bpt_json_size(bpt_json_find(root, "m")), 0);
    static const char *const keys[] = {"z", "a", "m"}; /* the order of the text */
    for (size_t i = 0; i < 3; i++) {
        const char *key;
        assert_ptr_equal(bpt_json_member(root, i, &key), bpt_json_find(root, keys[i]));
        assert_string_equal(key, keys[i]);
    }
    const char *key;
    assert_null(bpt_json_member(root, 3, &key));
    assert_null(bpt_json_at(list, 2));
    assert_null(bpt_json_find(root, "none"));
    assert_null(bpt_json_find(list, "z"));
    uint64_t value;
    assert_int_equal(bpt_json_get_u64(doc, bpt_json_at(list, 1), NULL, 0, 99, &value), BPT_OK);
    assert_int_equal(value, 20);
    bpt_json_doc_free(doc);
    bpt_json_doc_free(NULL);
}

static void test_typed_access_checks_type_and_range(void **state) {
    (void)state;
    bpt_json_doc *doc = parse(
        "{\"n\": 7, \"neg\": -1, \"r\": 0.5, \"t\": \"x\", \"b\": true, "
        "\"o\": {}, \"l\": []}");
    const bpt_json *root = bpt_json_root(doc), *part = NULL;
    uint64_t n = 42;
    double r = 42;
    bool b = false;
    const char *t = NULL;
    assert_int_equal(bpt_json_get_u64(doc, root, "n", 7, 7, &n), BPT_OK);
    assert_int_equal(n, 7);
    n = 42;
    assert_int_equal(bpt_json_get_u64(doc, root, "n", 8, 9, &n), BPT_EDATA);
    assert_string_equal(bpt_error_last()->text, "test.json: \"n\" is 7, outside of 8 to 9");
    assert_int_equal(bpt_json_get_u64(doc, root, "n", 0, 6, &n), BPT_EDATA);
    assert_int_equal(bpt_json_get_u64(doc, root, "neg", 0, UINT64_MAX, &n), BPT_EDATA);
    assert_int_equal(bpt_json_get_u64(doc, root, "r", 0, 9, &n), BPT_EDATA);
    assert_int_equal(bpt_json_get_u64(doc, root, "none", 0, 9, &n), BPT_EDATA);
    assert_string_equal(bpt_error_last()->text, "test.json: \"none\" is missing");
    assert_int_equal(bpt_json_get_u64(doc, NULL, NULL, 0, 9, &n), BPT_EDATA);
    assert_int_equal(n, 42);

    assert_int_equal(bpt_json_get_real(doc, root, "t", &r), BPT_EDATA);
    assert_true(r == 42);
    assert_int_equal(bpt_json_get_real(doc, root, "n", &r), BPT_OK);
    assert_true(r == 7);
    assert_int_equal(bpt_json_get_real(doc, root, "r", &r), BPT_OK);
    assert_true(r == 0.5);

    assert_int_equal(bpt_json_get_text(doc, root, "n", &t), BPT_EDATA);
    assert_int_equal(bpt_json_get_text(doc, root, "t", &t), BPT_OK);
    assert_string_equal(t, "x");
    assert_int_equal(bpt_json_get_bool(doc, root, "n", &b), BPT_EDATA);
    assert_int_equal(bpt_json_get_bool(doc, root, "b", &b), BPT_OK);
    assert_true(b);
    assert_int_equal(bpt_json_get_object(doc, root, "l", &part), BPT_EDATA);
    assert_int_equal(bpt_json_get_array(doc, root, "o", &part), BPT_EDATA);
    assert_null(part);
    assert_int_equal(bpt_json_get_object(doc, root, "o", &part), BPT_OK);
    assert_true(bpt_json_is_object(part));
    assert_int_equal(bpt_json_get_array(doc, root, "l", &part), BPT_OK);
    assert_true(bpt_json_is_array(part));
    bpt_json_doc_free(doc);
}

static bpt_status load_file(void *path) {
    bpt_json_doc *doc;
    BPT_TRY(bpt_json_load(path, 16, &doc));
    assert_true(bpt_json_is_array(bpt_json_root(doc)));
    bpt_json_doc_free(doc);
    return BPT_OK;
}

static void test_files_are_loaded(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_path(path, "none.json");
    assert_int_equal(load_file(path), BPT_ENOENT);
    support_write(path, "long.json", "[1, 2, 3, 4, 5, 6]", 18);
    assert_int_equal(load_file(path), BPT_EDATA);
    support_write(path, "cut.json", "[1, 2", 5);
    assert_int_equal(load_file(path), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, path));
    support_write(path, "whole.json", "[1, 2]", 6);
    support_fail_each_allocation(load_file, path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_loaded),
        cmocka_unit_test(test_writer_spells_a_line),
        cmocka_unit_test(test_reset_starts_a_new_text_in_the_same_memory),
        cmocka_unit_test(test_texts_round_trip),
        cmocka_unit_test(test_bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test(test_reals_round_trip),
        cmocka_unit_test(test_reals_are_written_short),
        cmocka_unit_test(test_whole_numbers_round_trip),
        cmocka_unit_test(test_writer_depth_is_bounded),
        cmocka_unit_test(test_allocation_failures_are_reported),
        cmocka_unit_test(test_malformed_texts_name_their_line),
        cmocka_unit_test(test_reader_depth_is_bounded),
        cmocka_unit_test(test_walking_a_document),
        cmocka_unit_test(test_typed_access_checks_type_and_range),
    };
    return cmocka_run_group_tests(tests, support_make_scratch, support_remove_scratch);
}
