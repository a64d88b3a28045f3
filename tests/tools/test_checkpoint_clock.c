/* When a checkpoint is due by the clock. */
#include "tools/train/job/checkpoint_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { NOW = 12345 };

static const uint64_t minute = 60000000000;

static void test_due_when_the_time_has_passed(void **state) {
    (void)state;
    bpt_checkpoint_clock c = bpt_checkpoint_clock_begin(10, NOW);
    assert_false(bpt_checkpoint_clock_due(&c, NOW));
    assert_false(bpt_checkpoint_clock_due(&c, NOW + 10 * minute - 1));
    assert_true(bpt_checkpoint_clock_due(&c, NOW + 10 * minute));
    bpt_checkpoint_clock_put_off(&c, NOW + 11 * minute, 0);
    assert_false(bpt_checkpoint_clock_due(&c, NOW + 21 * minute - 1));
    assert_true(bpt_checkpoint_clock_due(&c, NOW + 21 * minute));
    c = bpt_checkpoint_clock_begin(0.5, NOW);
    assert_false(bpt_checkpoint_clock_due(&c, NOW + minute / 2 - 1));
    assert_true(bpt_checkpoint_clock_due(&c, NOW + minute / 2));
}

/* What it takes is a hundredth of the time at most. */
static void test_a_slow_disk_makes_them_rarer(void **state) {
    (void)state;
    bpt_checkpoint_clock c = bpt_checkpoint_clock_begin(10, NOW);
    bpt_checkpoint_clock_put_off(&c, NOW, minute / 10);
    assert_true(bpt_checkpoint_clock_due(&c, NOW + 10 * minute));
    bpt_checkpoint_clock_put_off(&c, NOW, minute / 5);
    assert_false(bpt_checkpoint_clock_due(&c, NOW + 20 * minute - 1));
    assert_true(bpt_checkpoint_clock_due(&c, NOW + 20 * minute));
}

static void test_none_is_due(void **state) {
    (void)state;
    bpt_checkpoint_clock c = bpt_checkpoint_clock_begin(0, NOW);
    assert_false(bpt_checkpoint_clock_due(&c, UINT64_MAX));
    bpt_checkpoint_clock_put_off(&c, NOW, minute);
    assert_false(bpt_checkpoint_clock_due(&c, UINT64_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due_when_the_time_has_passed),
        cmocka_unit_test(test_a_slow_disk_makes_them_rarer),
        cmocka_unit_test(test_none_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
