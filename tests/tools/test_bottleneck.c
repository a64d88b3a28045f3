/* What limits training, by where its time went. */
#include "tools/train/bottleneck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_cases(void **state) {
    (void)state;
    static const struct {
        bpt_time_spent t;
        bpt_bottleneck limit;
    } cases[] = {
        {{.total = 100, .steps = 100, .path = 40, .work = 95}, BPT_LIMIT_WORK},
        {{.total = 100, .steps = 100, .path = 95, .work = 60}, BPT_LIMIT_PATH},
        {{.total = 100, .steps = 100, .path = 60, .work = 80}, BPT_LIMIT_IMBALANCE},
        {{.total = 100, .steps = 100, .path = 40, .work = 90},
         BPT_LIMIT_WORK}, /* a tenth is not more */
        {{.total = 100, .data = 40, .steps = 60, .path = 10, .work = 58}, BPT_LIMIT_DATA},
        {{.total = 100, .data = 12, .messages = 30, .steps = 58, .path = 9, .work = 45},
         BPT_LIMIT_MESSAGES},
        {{.total = 100, .data = 12, .messages = 5, .steps = 60, .path = 9, .work = 58},
         BPT_LIMIT_BETWEEN},
        {{.total = 100, .data = 12, .messages = 11, .steps = 77, .path = 9, .work = 60},
         BPT_LIMIT_IMBALANCE},
        /* of a network in parts the tasks are not known */
        {{.total = 100, .messages = 5, .steps = 95}, BPT_LIMIT_WORK},
        {{.total = 100, .messages = 25, .steps = 75}, BPT_LIMIT_MESSAGES},
        /* clocks that cross */
        {{.total = 100, .steps = 101, .path = 9, .work = 102}, BPT_LIMIT_WORK},
        {{0}, BPT_LIMIT_WORK}, /* no step was trained */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(bpt_bottleneck_of(&cases[i].t), cases[i].limit);
}

static void test_names(void **state) {
    (void)state;
    for (int b = 0; b < BPT_N_LIMITS; b++) {
        assert_non_null(bpt_bottleneck_name((bpt_bottleneck)b));
        assert_non_null(bpt_bottleneck_text((bpt_bottleneck)b));
    }
    assert_string_equal(bpt_bottleneck_name(BPT_LIMIT_MESSAGES), "messages");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
