/* What --stall-warning and --stall-timeout ask for, of a run and of a check. */
#include "tools/train/job/stalls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void assert_watch(const char *task, const char *option, const char *value, double warning_s,
                         double timeout_s) {
    char *arguments[] = {"bpt-train", (char *)task, (char *)option, (char *)value};
    bpt_train_options o = {0};
    bpt_option_request request;
    bpt_option_set *set;
    const int n = option ? 4 : 2;
    assert_int_equal(bpt_options_parse(&bpt_train_command, n, arguments, &o, &request, &set),
                     BPT_OK);
    const bpt_watch_options watch = bpt_stall_options(&o);
    assert_true(watch.warning_s == warning_s);
    assert_true(watch.timeout_s == timeout_s);
    assert_int_equal(watch.exit_status, 1);
    bpt_option_set_free(set);
}

static void test_a_run_waits_for_ever(void **state) {
    (void)state;
    assert_watch("--force", NULL, NULL, 60, 0);
    assert_watch("--force", "--stall-warning", "7", 7, 0);
    assert_watch("--force", "--stall-timeout", "90", 60, 90);
}

static void test_a_check_ends(void **state) {
    (void)state;
    assert_watch("--check", NULL, NULL, 5, 60);
    assert_watch("--check", "--stall-warning", "7", 7, 60);
    assert_watch("--check", "--stall-timeout", "90", 5, 90);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_waits_for_ever),
        cmocka_unit_test(test_a_check_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
