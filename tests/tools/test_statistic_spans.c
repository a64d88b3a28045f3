/* Which elements of what ranks exchange are running statistics. */
#include "base/memory.h"
#include "tools/train/exchange/statistic_spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Values: conv a 3 * 1 * 2 * 2 + 3 = 15; b 4 * 3 = 12, the last 6 of them statistics; conv c
 * 2 * 3 + 2 = 8; d 4 * 2 = 8, the last 4; fc. */
static const char text[] =
    "{name: t, input: [1, 4, 4], classes: 2, layers: [conv: {name: a, filters: 3, kernel: 2}, "
    "batchnorm: {name: b}, conv: {name: c, filters: 2, kernel: 1}, batchnorm: {name: d}, "
    "fc: {name: f, outputs: classes}]}";

static void check(const char *first, const bpt_span *expected, size_t n_expected) {
    bpt_model *model;
    bpt_span *spans;
    size_t n;
    assert_int_equal(bpt_model_parse("t", text, sizeof text - 1, NULL, &model), BPT_OK);
    if (first) assert_int_equal(bpt_model_freeze_before(model, first), BPT_OK);
    assert_int_equal(bpt_statistic_spans(model, &spans, &n), BPT_OK);
    assert_int_equal(n, n_expected);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(spans[i].begin, expected[i].begin);
        assert_int_equal(spans[i].end, expected[i].end);
    }
    bpt_free(spans);
    bpt_model_free(model);
}

/* Mean and variance of a norm are neighbours, and one span. */
static void test_spans(void **state) {
    (void)state;
    check(NULL, (const bpt_span[]){{21, 27}, {39, 43}}, 2);
}

/* Elements are counted from the first that learns. */
static void test_frozen(void **state) {
    (void)state;
    check("b", (const bpt_span[]){{6, 12}, {24, 28}}, 2);
    check("c", (const bpt_span[]){{12, 16}}, 1);
    check("f", NULL, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
