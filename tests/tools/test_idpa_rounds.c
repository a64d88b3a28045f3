/* What --idpa-rounds says: values that are right, and the rounds of a run. */
#include "tools/train/options/idpa_rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_values(void **state) {
    (void)state;
    static const char *const good[] = {"auto", "1", "2", "64"};
    static const char *const bad[] = {"",    "Auto", "-1", "0",  "65", "1.5", "inf",
                                      "nan", "0x4",  "4x", " 4", "--", "4 "};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(bpt_idpa_rounds_check(good[i]), BPT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (bpt_idpa_rounds_check(bad[i]) != BPT_EUSAGE) fail_msg("\"%s\" is taken", bad[i]);
        assert_non_null(strstr(bpt_error_last()->text, "--idpa-rounds"));
        assert_true(bpt_error_last()->hint[0] != '\0');
    }
}

/* A run of few epochs sees all data for most of its time. */
static void test_auto_follows_the_epochs(void **state) {
    (void)state;
    static const struct {
        double epochs;
        uint32_t rounds;
    } cases[] = {{0.01, 1}, {1, 1}, {1.99, 1}, {2, 2}, {3.9, 2}, {4, 3}, {6, 4}, {8, 4}, {1e6, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t rounds = bpt_idpa_rounds("auto", cases[i].epochs, 2);
        assert_int_equal(rounds, cases[i].rounds);
        assert_true((rounds - 1) / 2.0 <= cases[i].epochs / 4);
    }
    assert_int_equal(bpt_idpa_rounds("auto", 8, 64), 4);
    assert_int_equal(bpt_idpa_rounds("auto", 8, 1), 1);
}

static void test_what_is_given_holds_for_every_run(void **state) {
    (void)state;
    assert_int_equal(bpt_idpa_rounds("4", 1, 2), 4);
    assert_int_equal(bpt_idpa_rounds("64", 8, 1), 64);
    assert_int_equal(bpt_idpa_rounds("1", 8, 8), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_auto_follows_the_epochs),
        cmocka_unit_test(test_what_is_given_holds_for_every_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
