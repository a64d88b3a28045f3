/* What --shared-momentum says: values that are right, and the gain of a run. */
#include "tools/train/options/momentum_gain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_values(void **state) {
    (void)state;
    const char *good[] = {"auto", "0", "0.0", "1", "2.5", "1e1", "100"};
    const char *bad[] = {"", "on", "0.5", "-2", "101", "inf", "nan", "0x2", "2 ", "autos"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(bpt_momentum_gain_check(good[i]), BPT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (bpt_momentum_gain_check(bad[i]) != BPT_EUSAGE) fail_msg("\"%s\" is taken", bad[i]);
        assert_non_null(strstr(bpt_error_last()->text, "--shared-momentum"));
        assert_true(bpt_error_last()->hint[0] != '\0');
    }
}

static void test_auto_is_the_root_of_scaled_rates(void **state) {
    (void)state;
    assert_true(bpt_momentum_gain("auto", 1) == 0);
    assert_true(bpt_momentum_gain("auto", 4) == 2);
    assert_true(bpt_momentum_gain("auto", 64) == 8);
}

static void test_what_is_given_holds_for_every_rate(void **state) {
    (void)state;
    assert_true(bpt_momentum_gain("1.5", 1) == 1.5);
    assert_true(bpt_momentum_gain("1.5", 8) == 1.5);
    assert_true(bpt_momentum_gain("0", 8) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_auto_is_the_root_of_scaled_rates),
        cmocka_unit_test(test_what_is_given_holds_for_every_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
