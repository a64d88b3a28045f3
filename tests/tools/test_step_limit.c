/* What --step-limit says: values that are right, and the limit of a run. */
#include "tools/train/options/step_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_values(void **state) {
    (void)state;
    static const char *const good[] = {"auto", "0", "0.02", "1", "1e-3", ".5", "1000000"};
    static const char *const bad[] = {"",     "Auto", "-1", "inf", "nan", "0x1",
                                      "0.1x", " 1",   "e",  "1e7", "--",  "0.1 "};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(bpt_step_limit_check(good[i]), BPT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (bpt_step_limit_check(bad[i]) != BPT_EUSAGE) fail_msg("\"%s\" is taken", bad[i]);
        assert_non_null(strstr(bpt_error_last()->text, "--step-limit"));
        assert_true(bpt_error_last()->hint[0] != '\0');
    }
}

static void test_auto_limits_scaled_rates(void **state) {
    (void)state;
    assert_true(bpt_step_limit("auto", 1) == 0.0);
    assert_true(bpt_step_limit("auto", 2) == 0.01);
    assert_true(bpt_step_limit("auto", 64) == 0.01);
}

static void test_what_is_given_holds_for_every_rate(void **state) {
    (void)state;
    assert_true(bpt_step_limit("0.5", 1) == 0.5);
    assert_true(bpt_step_limit("0.5", 8) == 0.5);
    assert_true(bpt_step_limit("0", 8) == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_auto_limits_scaled_rates),
        cmocka_unit_test(test_what_is_given_holds_for_every_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
