/* YAML trees: values, lines in errors, and what is refused. */
#include "base/memory.h"
#include "base/yaml.h"
#include "tests/base/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bpt_yaml *parse(const char *text) {
    bpt_yaml *doc;
    assert_int_equal(bpt_yaml_parse("m.yaml", text, strlen(text), &doc), BPT_OK);
    return doc;
}

static void assert_refused(const char *text, const char *where, const char *reason) {
    bpt_yaml *doc = NULL;
    assert_int_equal(bpt_yaml_parse("m.yaml", text, strlen(text), &doc), BPT_EUSAGE);
    assert_null(doc);
    const char *message = bpt_error_last()->text;
    if (strncmp(message, where, strlen(where)) != 0) assert_string_equal(message, where);
    assert_int_equal(message[strlen(where)], ':');
    if (reason && !strstr(message, reason)) assert_string_equal(message, reason);
}

static void test_a_tree_with_lines(void **state) {
    (void)state;
    bpt_yaml *doc = parse(
        "# model\n"
        "name: small\n"
        "layers:\n"
        "  - {type: conv, kernel: 3}\n"
        "  - type: relu\n"
        "shape: [3, 32, 32]\n"
        "text: \"a: b # c\\n\"\n"
        "none:\n");
    const bpt_yaml_node *root = bpt_yaml_root(doc);
    assert_string_equal(bpt_yaml_name(doc), "m.yaml");
    assert_int_equal(bpt_yaml_node_kind(root), BPT_YAML_MAP);
    assert_int_equal(bpt_yaml_size(root), 5);
    static const char *const keys[] = {"name", "layers", "shape", "text", "none"};
    static const int lines[] = {2, 4, 6, 7, 8};
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(bpt_yaml_key(root, i), keys[i]);
        assert_int_equal(bpt_yaml_line(bpt_yaml_at(root, i)), lines[i]);
        assert_ptr_equal(bpt_yaml_at(root, i), bpt_yaml_find(root, keys[i]));
    }
    const bpt_yaml_node *layers = bpt_yaml_find(root, "layers");
    assert_int_equal(bpt_yaml_node_kind(layers), BPT_YAML_LIST);
    assert_int_equal(bpt_yaml_size(layers), 2);
    assert_int_equal(bpt_yaml_line(bpt_yaml_at(layers, 1)), 5);
    assert_string_equal(bpt_yaml_text(bpt_yaml_find(bpt_yaml_at(layers, 0), "kernel")), "3");
    assert_string_equal(bpt_yaml_text(bpt_yaml_find(root, "text")), "a: b # c\n");
    assert_string_equal(bpt_yaml_text(bpt_yaml_find(root, "none")), "");
    assert_int_equal(bpt_yaml_size(bpt_yaml_find(root, "name")), 0);
    assert_null(bpt_yaml_text(layers));
    assert_null(bpt_yaml_find(root, "missing"));
    assert_null(bpt_yaml_find(layers, "type"));
    bpt_yaml_free(doc);
    bpt_yaml_free(NULL);
}

static void test_an_empty_file_is_an_empty_map(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# only a comment\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bpt_yaml *doc = parse(texts[i]);
        assert_int_equal(bpt_yaml_node_kind(bpt_yaml_root(doc)), BPT_YAML_MAP);
        assert_int_equal(bpt_yaml_size(bpt_yaml_root(doc)), 0);
        assert_int_equal(bpt_yaml_line(bpt_yaml_root(doc)), 1);
        bpt_yaml_free(doc);
    }
}

static void test_syntax_errors_name_file_and_line(void **state) {
    (void)state;
    assert_refused("a: 1\nb: [1, 2\nc: 3\n", "m.yaml:3", NULL);
    assert_refused("a: 1\n\tb: 2\n", "m.yaml:2", "a tab at the beginning of the line");
    assert_refused("a:\n  b: 1\n  \tc: 2\n", "m.yaml:3", "a tab at the beginning of the line");
    bpt_yaml_free(parse("a: {b: 1,\n\t\tc: 2}\n")); /* within brackets tabs are allowed */
    assert_refused("a: {b: 1,\n\t\tc: ]}\n", "m.yaml:2", "did not find expected node content");
    assert_refused("a: 1\nb: \"open\n", "m.yaml:3", NULL);
    assert_refused("a: 1\nb: 2\nc: \xFF\n", "m.yaml:3", NULL); /* not UTF-8 */
    assert_refused("a: 1\n\x01: 2\n", "m.yaml:2", "control characters");
}

static void test_duplicate_keys_are_refused(void **state) {
    (void)state;
    assert_refused("a: 1\nb: 2\na: 3\n", "m.yaml:3", "\"a\" is given twice");
    assert_refused("x:\n  a: 1\n  \"a\": 2\n", "m.yaml:3", "\"a\" is given twice");
    bpt_yaml_free(parse("x: {a: 1}\ny: {a: 2}\na: 3\n"));
}

static void test_anchors_and_aliases_are_refused(void **state) {
    (void)state;
    assert_refused("a: &x 1\nb: 2\n", "m.yaml:1", "anchors");
    assert_refused("a: 1\nb: &x [1]\n", "m.yaml:2", "anchors");
    assert_refused("a: 1\n\nb: &x {c: 1}\n", "m.yaml:3", "anchors");
    assert_refused("&x a: 1\n", "m.yaml:1", "anchors");
    assert_refused("a: 1\nb: *x\n", "m.yaml:2", "aliases");
}

static void test_other_surprises_are_refused(void **state) {
    (void)state;
    assert_refused("? [a, b]\n: 1\n", "m.yaml:1", "a key must be");
    assert_refused("a: 1\n---\nb: 2\n", "m.yaml:2", "second document");
    assert_refused("---\n---\nb: 2\n", "m.yaml:2", "second document");
    assert_refused("a: \"x\\0y\"\n", "m.yaml:1", NULL); /* would end a C string early */
    assert_refused("b: 1\n\"a\\0\": 1\n", "m.yaml:2", NULL);
}

static void test_depth_is_bounded(void **state) {
    (void)state;
    enum { LIMIT = 32 };
    for (int depth = LIMIT; depth <= LIMIT + 1; depth++) {
        char text[200] = "";
        for (int i = 0; i < depth; i++) strcat(text, "[");
        for (int i = 0; i < depth; i++) strcat(text, "]");
        if (depth == LIMIT)
            bpt_yaml_free(parse(text));
        else
            assert_refused(text, "m.yaml:1", "nested too deeply");
    }
    char deep[50001];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_refused(deep, "m.yaml:1", "nested too deeply");
}

static void test_number_of_values_is_bounded(void **state) {
    (void)state;
    enum { TOO_MANY = 1000001 };
    char *text = calloc(1, 2 * TOO_MANY + 2);
    assert_non_null(text);
    char *p = text;
    *p++ = '[';
    for (int i = 0; i < TOO_MANY; i++) {
        *p++ = '1';
        *p++ = i + 1 < TOO_MANY ? ',' : ']';
    }
    assert_refused(text, "m.yaml:1", "too many values");
    free(text);
}

static void test_number_of_keys_is_bounded(void **state) {
    (void)state;
    enum { MOST = 1000, SIZE = 16 * (MOST + 1) };
    char text[SIZE + 1];
    size_t length = 0;
    for (int i = 0; i <= MOST; i++) {
        if (i == MOST) { /* so many are taken */
            bpt_yaml *doc;
            assert_int_equal(bpt_yaml_parse("m.yaml", text, length, &doc), BPT_OK);
            bpt_yaml_free(doc);
        }
        length += (size_t)snprintf(text + length, SIZE - length, "key%d: 1\n", i);
    }
    assert_refused(text, "m.yaml:1001", "more than 1000 keys");
}

static void test_files(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    bpt_yaml *doc = NULL;
    support_write(path, "ok.yaml", "a: 1\n", 5);
    assert_int_equal(bpt_yaml_load(path, &doc), BPT_OK);
    assert_string_equal(bpt_yaml_name(doc), path);
    bpt_yaml_free(doc);
    doc = NULL;
    assert_int_equal(bpt_yaml_load(support_path(path, "none.yaml"), &doc), BPT_EUSAGE);
    assert_int_equal(bpt_yaml_load(support_scratch(), &doc), BPT_EUSAGE);
    const size_t size = 5 << 20;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, '\n', size);
    support_write(path, "large.yaml", large, size);
    assert_int_equal(bpt_yaml_load(path, &doc), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_null(doc);
    free(large);
}

static void test_unknown_keys_are_named_with_the_nearest(void **state) {
    (void)state;
    static const char *const known[] = {"type", "kernel", "stride"};
    bpt_yaml *doc = parse("type: conv\nstride: 1\nkernal: 3\n");
    assert_int_equal(bpt_yaml_check_keys(doc, bpt_yaml_root(doc), "layer c1", known, 3),
                     BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "m.yaml:3: layer c1 has no field \"kernal\"");
    assert_string_equal(bpt_error_last()->hint, "did you mean \"kernel\"?");
    assert_int_equal(
        bpt_yaml_check_keys(doc, bpt_yaml_find(bpt_yaml_root(doc), "type"), "layer c1", known, 3),
        BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "m.yaml:1: layer c1 must be a map (name: value)");
    bpt_yaml_free(doc);

    doc = parse("type: conv\nqqqqqq:\n  - 1\n"); /* the line of the key, not of its value */
    assert_int_equal(bpt_yaml_check_keys(doc, bpt_yaml_root(doc), "layer", known, 3), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "m.yaml:2: layer has no field \"qqqqqq\"");
    assert_string_equal(bpt_error_last()->hint, "known here: type, kernel, stride");
    bpt_yaml_free(doc);

    doc = parse("stride: 1\ntype: conv\n");
    assert_int_equal(bpt_yaml_check_keys(doc, bpt_yaml_root(doc), "layer", known, 3), BPT_OK);
    bpt_yaml_free(doc);
}

static void test_whole_numbers(void **state) {
    (void)state;
    bpt_yaml *doc = parse(
        "[7, -7, \"8\", 7x, 7.0, 1e3, 0x10, '', 9223372036854775807,"
        " 9223372036854775808, [7], 10]");
    const bpt_yaml_node *root = bpt_yaml_root(doc);
    static const struct {
        bool ok;
        int64_t value;
    } rows[] = {{true, 7},  {true, -7}, {true, 8},         {false, 0}, {false, 0}, {false, 0},
                {false, 0}, {false, 0}, {true, INT64_MAX}, {false, 0}, {false, 0}, {true, 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value = 42;
        const bpt_status status =
            bpt_yaml_get_int(doc, bpt_yaml_at(root, i), "size", INT64_MIN, INT64_MAX, &value);
        assert_int_equal(status, rows[i].ok ? BPT_OK : BPT_EUSAGE);
        assert_true(value == (rows[i].ok ? rows[i].value : 42));
    }
    int64_t value = 42;
    assert_int_equal(bpt_yaml_get_int(doc, bpt_yaml_at(root, 0), "size", 8, 9, &value), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "m.yaml:1: size is 7, outside of 8 to 9");
    assert_int_equal(bpt_yaml_get_int(doc, bpt_yaml_at(root, 11), "size", 8, 9, &value),
                     BPT_EUSAGE);
    assert_int_equal(value, 42);
    bpt_yaml_free(doc);
}

static void test_other_types(void **state) {
    (void)state;
    bpt_yaml *doc = parse(
        "half: 0.5\nsmall: 1e-3\nnan: .nan\nnan2: nan\ninf: inf\nword: a b\n"
        "yes: true\nno: false\nmaybe: True\nlist: [1]\n");
    const bpt_yaml_node *root = bpt_yaml_root(doc);
#define NODE(key) bpt_yaml_find(root, key)
    double r = 42;
    assert_int_equal(bpt_yaml_get_real(doc, NODE("half"), "r", 0, 1, &r), BPT_OK);
    assert_true(r == 0.5);
    assert_int_equal(bpt_yaml_get_real(doc, NODE("small"), "r", 1e-3, 1, &r), BPT_OK);
    assert_true(r == 1e-3);
    assert_int_equal(bpt_yaml_get_real(doc, NODE("half"), "r", 0, 0.25, &r), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "m.yaml:1: r is 0.5, outside of 0 to 0.25");
    static const char *const no_numbers[] = {"nan", "nan2", "inf", "word", "list"};
    for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++)
        assert_int_equal(bpt_yaml_get_real(doc, NODE(no_numbers[i]), "r", -1e300, 1e300, &r),
                         BPT_EUSAGE);
    assert_true(r == 1e-3);

    bool b = false;
    assert_int_equal(bpt_yaml_get_bool(doc, NODE("yes"), "b", &b), BPT_OK);
    assert_true(b);
    assert_int_equal(bpt_yaml_get_bool(doc, NODE("maybe"), "b", &b), BPT_EUSAGE);
    assert_true(b);
    assert_string_equal(bpt_error_last()->text, "m.yaml:9: b must be true or false");
    assert_int_equal(bpt_yaml_get_bool(doc, NODE("no"), "b", &b), BPT_OK);
    assert_false(b);

    const char *text = NULL;
    assert_int_equal(bpt_yaml_get_text(doc, NODE("list"), "t", &text), BPT_EUSAGE);
    assert_null(text);
    assert_int_equal(bpt_yaml_get_text(doc, NODE("word"), "t", &text), BPT_OK);
    assert_string_equal(text, "a b");
#undef NODE
    bpt_yaml_free(doc);
}

static bpt_status parse_once(void *arg) {
    const char *text = arg;
    bpt_yaml *doc;
    BPT_TRY(bpt_yaml_parse("m.yaml", text, strlen(text), &doc));
    bpt_yaml_free(doc);
    return BPT_OK;
}

static bpt_status load_once(void *arg) {
    bpt_yaml *doc;
    BPT_TRY(bpt_yaml_load(arg, &doc));
    bpt_yaml_free(doc);
    return BPT_OK;
}

static void test_allocation_failures_are_reported(void **state) {
    (void)state;
    support_fail_each_allocation(parse_once, (void *)"");
    support_fail_each_allocation(
        parse_once, (void *)"a: {b: [1, 2, [3]], c: x}\nd: [1,2,3,4,5,6,7,8,9,10]\n"
                            "e1: 1\ne2: 1\ne3: 1\ne4: 1\ne5: 1\ne6: 1\ne7: 1\ne8: 1\n");
    char path[SUPPORT_PATH_SIZE];
    support_write(path, "load.yaml", "a: [1, {b: 2}]\n", 15);
    support_fail_each_allocation(load_once, path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tree_with_lines),
        cmocka_unit_test(test_an_empty_file_is_an_empty_map),
        cmocka_unit_test(test_syntax_errors_name_file_and_line),
        cmocka_unit_test(test_duplicate_keys_are_refused),
        cmocka_unit_test(test_anchors_and_aliases_are_refused),
        cmocka_unit_test(test_other_surprises_are_refused),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_number_of_values_is_bounded),
        cmocka_unit_test(test_number_of_keys_is_bounded),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_unknown_keys_are_named_with_the_nearest),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_allocation_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, support_make_scratch, support_remove_scratch);
}
