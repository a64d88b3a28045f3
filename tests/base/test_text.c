/* Lists of names for messages, texts of others in them, and what is cut of both. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_list(void **state) {
    (void)state;
    char list[16] = "";
    bpt_list_add(list, sizeof list, "one");
    assert_string_equal(list, "one");
    bpt_list_add(list, sizeof list, "two");
    bpt_list_add(list, sizeof list, "three");
    assert_string_equal(list, "one, two, three");
    assert_int_equal(strlen(list), sizeof list - 1); /* full to the last byte */
}

static void test_list_that_is_cut(void **state) {
    (void)state;
    char list[17] = "";
    list[sizeof list - 1] = '!';
    bpt_list_add(list, sizeof list - 1, "one");
    bpt_list_add(list, sizeof list - 1, "two");
    bpt_list_add(list, sizeof list - 1, "three");
    bpt_list_add(list, sizeof list - 1, "four");
    assert_string_equal(list, "one, two, ...");
    bpt_list_add(list, sizeof list - 1, "5");
    assert_string_equal(list, "one, two, ..."); /* there would be room, and others are missing */
    assert_int_equal(list[sizeof list - 1], '!');
}

static void test_list_without_room(void **state) {
    (void)state;
    char list[6] = "";
    bpt_list_add(list, sizeof list, "four");
    bpt_list_add(list, sizeof list, "five");
    assert_string_equal(list, "...");
    char cut[8] = "";
    bpt_list_add(cut, sizeof cut, "too long");
    bpt_list_add(cut, sizeof cut, "5");
    assert_string_equal(cut, "..."); /* for good */
    char tiny[3] = "";
    bpt_list_add(tiny, sizeof tiny, "four");
    assert_string_equal(tiny, "");
}

static void assert_escaped(const char *text, size_t size, const char *expected) {
    char out[64];
    memset(out, '!', sizeof out);
    bpt_text_escape(text, out, size);
    assert_string_equal(out, expected);
    assert_int_equal(out[size], '!');
}

static void test_escape(void **state) {
    (void)state;
    assert_escaped("", 1, "");
    assert_escaped("cat 1", 20, "cat 1");
    assert_escaped("a\x1b[31mb\n\x7f", 40, "a\\x1b[31mb\\x0a\\x7f");
    assert_escaped("M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x90\x88", 40,
                   "M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x90\x88");
    assert_escaped(
        "\xc2\x9b"
        "31m \xc2\xa0",
        40,
        "\\u009b"
        "31m \xc2\xa0");
    assert_escaped(
        "a\xe2\x80\xa8\xef\xbf\xbe"
        "b\xe2\x80\xaa",
        40,
        "a\\u2028\\ufffe"
        "b\xe2\x80\xaa");
    assert_escaped("\xff\xc2", 40, "\xff\xc2"); /* no UTF-8: its bytes */
    assert_escaped("\n\x80", 40, "\\x0a\x80");
}

static void test_escape_that_is_cut(void **state) {
    (void)state;
    assert_escaped("abcdef", 4, "abc");
    assert_escaped("ab\n", 6, "ab"); /* not a part of an escape */
    assert_escaped("ab\n", 7, "ab\\x0a");
    assert_escaped("ab\xe2\x82\xac", 5, "ab"); /* nor of a character */
    assert_escaped("ab\xe2\x82\xac", 6, "ab\xe2\x82\xac");
}

static void test_quote(void **state) {
    (void)state;
    static const char *const of[][2] = {
        {"runs/a-1_b.c", "runs/a-1_b.c"},
        {"", "''"},
        {"my runs", "'my runs'"},
        {"it's", "'it'\\''s'"},
        {"$HOME", "'$HOME'"},
        {"Gr\303\266\303\237e", "Gr\303\266\303\237e"},
        {"~/a", "'~/a'"},
    };
    char out[32], small[6];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_true(bpt_text_quote(of[i][0], out, sizeof out));
        assert_string_equal(out, of[i][1]);
    }
    assert_true(bpt_text_quote("five5", small, sizeof small));
    assert_string_equal(small, "five5");
    assert_true(bpt_text_quote("a b", small, sizeof small));
    assert_string_equal(small, "'a b'");
}

/* A part of a word, or one with a question mark in it, would be another. */
static void test_quote_that_is_none(void **state) {
    (void)state;
    static const char *const of[] = {"longer than that", "a  b", "it's", "'", "sixsix"};
    static const char *const untypable[] = {"a\nb", "a\tb", "\x7f", "a\xc2\x85", "\xe2\x80\xa8"};
    char out[32], small[6], least[1];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_false(bpt_text_quote(of[i], small, sizeof small));
        assert_string_equal(small, "");
        assert_false(bpt_text_quote(of[i], least, sizeof least));
    }
    for (size_t i = 0; i < sizeof untypable / sizeof *untypable; i++) {
        assert_false(bpt_text_quote(untypable[i], out, sizeof out));
        assert_string_equal(out, "");
    }
}

static void test_time_left(void **state) {
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } of[] = {{0, "00:00"},      {59.9, "00:59"},     {61, "01:01"},        {3599, "59:59"},
              {3600, "1:00:00"}, {45296, "12:34:56"}, {3.6e6, "972:13:20"}, {1e300, "972:13:20"}};
    char text[BPT_TIME_LEFT_SIZE];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        bpt_text_time_left(of[i].seconds, text);
        assert_string_equal(text, of[i].text);
    }
    bpt_text_time_left(0.0 / 0.0, text);
    assert_string_equal(text, "972:13:20");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_that_is_cut),
        cmocka_unit_test(test_list_without_room),
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_escape_that_is_cut),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_quote_that_is_none),
        cmocka_unit_test(test_time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
