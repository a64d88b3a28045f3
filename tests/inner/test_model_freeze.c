/* Which layers are frozen, and what a model says of itself then.
 *
 * ctest: cpu TIMEOUT=30 */
#include "tests/inner/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const char text[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "relu: {name: r0}, conv: {name: a, filters: 4, kernel: 8}, batchnorm: {name: b}, relu: {name: "
    "r}, dropout: {name: d}, fc: {name: f, outputs: 6, bias: false}, relu: {name: s}, "
    "fc: {name: g, outputs: classes}, relu: {name: last}]}";

static void check(const char *first, size_t n_frozen, size_t n_segments, size_t n_elements) {
    bpt_model *m = net_parse(text);
    assert_int_equal(m->n_frozen + bpt_model_frozen_segments(m) + bpt_model_frozen_elements(m), 0);
    net_assert_ok(bpt_model_freeze_before(m, first));
    assert_int_equal(m->n_frozen, n_frozen);
    assert_int_equal(bpt_model_frozen_segments(m), n_segments);
    assert_int_equal(bpt_model_frozen_elements(m), n_elements);
    bpt_model_free(m);
}

/* What has no weights and stands before the first layer that learns is not frozen. */
static void test_up_to_the_last_weights(void **state) {
    (void)state;
    const size_t conv = 4 * 3 * 8 * 8 + 4, norm = 4 * 4, fc = 6 * 4;
    check("b", 2, 2, conv);
    check("r", 3, 6, conv + norm);
    check("d", 3, 6, conv + norm);
    check("f", 3, 6, conv + norm);
    check("s", 6, 7, conv + norm + fc);
    check("g", 6, 7, conv + norm + fc);
}

static void check_error(const char *first, const char *error, const char *hint) {
    bpt_model *m = net_parse(text);
    assert_int_equal(bpt_model_freeze_before(m, first), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, error);
    assert_string_equal(bpt_error_last()->hint, hint);
    assert_int_equal(m->n_frozen, 0);
    bpt_model_free(m);
}

static void test_errors(void **state) {
    (void)state;
    check_error("conv9", "model t has no layer called \"conv9\"", "");
    check_error("las", "model t has no layer called \"las\"", "did you mean \"last\"?");
    check_error("r0", "model t has no weights before layer r0: nothing is frozen", "");
    check_error("a", "model t has no weights before layer a: nothing is frozen", "");
    check_error("last", "model t has no weights from layer last on: nothing would learn", "");
}

/* A batch norm that is frozen looks at no batch. */
static void test_least_batch(void **state) {
    (void)state;
    const bpt_layer *layer;
    bpt_model *m = net_parse(text);
    assert_int_equal(bpt_model_least_batch(m, &layer), 2);
    assert_string_equal(layer->name, "b");
    net_assert_ok(bpt_model_freeze_before(m, "f"));
    assert_int_equal(bpt_model_least_batch(m, &layer), 1);
    assert_null(layer);
    bpt_model_free(m);
}

static void test_flops(void **state) {
    (void)state;
    bpt_model *m = net_parse(text);
    const uint64_t conv = 2 * 4 * 3 * 8 * 8, fcs = 2 * (6 * 4 + 5 * 6);
    assert_int_equal(bpt_model_training_flops(m), 3 * (conv + fcs));
    net_assert_ok(bpt_model_freeze_before(m, "f"));
    assert_int_equal(bpt_model_training_flops(m), conv + 3 * fcs);
    bpt_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up_to_the_last_weights),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_least_batch),
        cmocka_unit_test(test_flops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
