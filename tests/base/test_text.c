/* Lists of names for messages, and what is cut of them. */
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
    bpt_list_add(list, sizeof list, "four"); /* full to the last byte */
    assert_string_equal(list, "one, two, three");
}

static void test_list_that_is_cut(void **state) {
    (void)state;
    char list[8] = "";
    bpt_list_add(list, sizeof list - 1, "four");
    bpt_list_add(list, sizeof list - 1, "five");
    assert_string_equal(list, "four, ");
    assert_int_equal(list[sizeof list - 1], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_that_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
