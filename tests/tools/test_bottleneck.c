/* What limits training, by where its time went. */
#include "tools/train/report/bottleneck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_cases(void **state) {
    (void)state;
    static const struct {
        bpt_time_spent t; /* in all, data, messages, steps; of these path, work */
        bpt_bottleneck limit;
    } cases[] = {
        {{100, 0, 0, 100, 40, 95}, BPT_BOTTLENECK_WORK},
        {{100, 0, 0, 100, 95, 60}, BPT_BOTTLENECK_PATH},
        {{100, 0, 0, 100, 60, 80}, BPT_BOTTLENECK_IMBALANCE},
        {{100, 0, 0, 100, 40, 90}, BPT_BOTTLENECK_WORK}, /* a tenth is not more */
        {{100, 40, 0, 60, 10, 58}, BPT_BOTTLENECK_DATA},
        {{100, 12, 30, 58, 9, 45}, BPT_BOTTLENECK_MESSAGES},
        {{100, 12, 5, 60, 9, 58}, BPT_BOTTLENECK_BETWEEN},
        {{100, 12, 11, 77, 9, 60}, BPT_BOTTLENECK_IMBALANCE},
        /* of a network in parts the tasks are not known */
        {{100, 0, 5, 95, 0, 0}, BPT_BOTTLENECK_WORK},
        {{100, 0, 25, 75, 0, 0}, BPT_BOTTLENECK_MESSAGES},
        /* clocks that cross */
        {{100, 0, 0, 101, 9, 102}, BPT_BOTTLENECK_WORK},
        {{0}, BPT_BOTTLENECK_WORK}, /* no step was trained */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(bpt_bottleneck_of(&cases[i].t), cases[i].limit);
}

static void test_between(void **state) {
    (void)state;
    const bpt_time_spent some = {100, 12, 5, 60, 9, 58}, crossed = {100, 2, 0, 99, 9, 58};
    assert_int_equal(bpt_time_between_ns(&some), 23);
    assert_int_equal(bpt_time_between_ns(&crossed), 0);
}

/* As summary.json and the manual have them. */
static void test_names(void **state) {
    (void)state;
    static const char *const names[BPT_N_BOTTLENECKS] = {"work", "path",     "imbalance",
                                                         "data", "messages", "between"};
    for (int b = 0; b < BPT_N_BOTTLENECKS; b++) {
        assert_string_equal(bpt_bottleneck_name((bpt_bottleneck)b), names[b]);
        assert_true(strlen(bpt_bottleneck_text((bpt_bottleneck)b)) > strlen(names[b]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_between),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
