/* What a layer has that its model's file does not say, as docs/models.md has it, and how its
 * weights are learned. References read both from the model: they would not tell that it is another.
 */
#include "inner/layers/layer.h"
#include "inner/models/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const char text[] =
    "{name: t, input: [3, 12, 12], classes: 4, layers: ["
    "conv: {filters: 8, kernel: 3}, batchnorm, lrn, dropout, maxpool: {kernel: [3, 2]}, "
    "avgpool: {kernel: [1, 2]}, fc: {outputs: classes}]}";

static int set_up(void **state) {
    bpt_model *m;
    if (bpt_model_parse("t.yaml", text, strlen(text), NULL, &m) != BPT_OK) return -1;
    *state = m;
    return 0;
}

static int tear_down(void **state) {
    bpt_model_free(*state);
    return 0;
}

static void check_pair(const int64_t *pair, int64_t rows, int64_t columns) {
    assert_int_equal(pair[0], rows);
    assert_int_equal(pair[1], columns);
}

static void test_windows(void **state) {
    const bpt_model *m = *state;
    const bpt_conv_config *conv = m->layers[0].config;
    const bpt_pool_config *max = m->layers[4].config, *mean = m->layers[5].config;
    check_pair(conv->stride, 1, 1);
    check_pair(conv->pad, 0, 0);
    check_pair(conv->dilation, 1, 1);
    assert_int_equal(conv->groups, 1);
    assert_true(conv->bias);
    check_pair(max->stride, 3, 2);
    check_pair(max->pad, 0, 0);
    assert_false(max->ceil);
    check_pair(mean->stride, 1, 2);
    check_pair(mean->pad, 0, 0);
    assert_true(mean->include_pad);
    assert_true(((const bpt_fc_config *)m->layers[6].config)->bias);
}

static void test_numbers(void **state) {
    const bpt_model *m = *state;
    const bpt_batchnorm_config *norm = m->layers[1].config;
    const bpt_lrn_config *lrn = m->layers[2].config;
    assert_true(norm->momentum == 0.1);
    assert_true(norm->eps == 1e-5);
    assert_int_equal(lrn->size, 5);
    assert_true(lrn->alpha == 1e-4);
    assert_true(lrn->beta == 0.75);
    assert_true(lrn->k == 1.0);
    assert_true(((const bpt_dropout_config *)m->layers[3].config)->rate == 0.5);
}

/* ---- the last window ---- */

static bpt_status parse_pool(const char *fields, bpt_model **m) {
    char model[160];
    snprintf(model, sizeof model,
             "{name: t, input: [3, 5, 5], classes: 4, layers: [maxpool: {%s}, fc: {outputs: "
             "classes}]}",
             fields);
    return bpt_model_parse("t.yaml", model, strlen(model), NULL, m);
}

/* Rows and columns by themselves, as PyTorch has them. */
static void test_last_windows(void **state) {
    (void)state;
    static const struct {
        const char *fields;
        int64_t h, w;
    } cases[] = {
        {"kernel: [3, 4], stride: [3, 2], pad: [0, 2], ceil: true", 2, 4},
        {"kernel: [4, 3], stride: [2, 3], pad: [2, 0], ceil: true", 4, 2},
        {"kernel: [4, 3], stride: [2, 3], pad: [2, 0]", 3, 1},
        {"kernel: 2, stride: 3, pad: 1, ceil: true", 2, 2}, /* a third had padding alone */
        {"kernel: 4, stride: 2, pad: 1, ceil: true", 3, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_model *m;
        assert_int_equal(parse_pool(cases[i].fields, &m), BPT_OK);
        const bpt_shape *out = &m->layers[0].out;
        if (out->h != cases[i].h || out->w != cases[i].w)
            fail_msg("%s: %dx%d", cases[i].fields, (int)out->h, (int)out->w);
        bpt_model_free(m);
    }
}

static void test_too_much_padding(void **state) {
    (void)state;
    bpt_model *m;
    assert_int_equal(parse_pool("kernel: 3, pad: [1, 2]", &m), BPT_EUSAGE);
    assert_int_equal(parse_pool("kernel: 3, pad: [2, 1]", &m), BPT_EUSAGE);
    assert_int_equal(parse_pool("kernel: 3, pad: 1", &m), BPT_OK);
    bpt_model_free(m);
}

/* ---- weights ---- */

/* Nothing but weights of products decays; of running statistics alone none is learned. */
static void test_roles(void **state) {
    static const struct {
        const char *name;
        bpt_segment_role role;
    } expected[] = {
        {"conv1.weight", {.fan_in = 3 * 3 * 3, .decays = true}},
        {"conv1.bias", {0}},
        {"batchnorm1.weight", {.initial = 1.0f}},
        {"batchnorm1.bias", {0}},
        {"batchnorm1.running_mean", {.running = 0.1f}},
        {"batchnorm1.running_var", {.initial = 1.0f, .running = 0.1f, .variance = true}},
        {"fc1.weight", {.fan_in = 8 * 3 * 2, .decays = true}},
        {"fc1.bias", {0}},
    };
    const bpt_model *m = *state;
    assert_int_equal(m->segments.n, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < m->segments.n; i++) {
        const bpt_segment *s = &m->segments.items[i];
        const bpt_segment_role *role = &expected[i].role;
        assert_string_equal(s->name, expected[i].name);
        if (s->role.fan_in != role->fan_in || s->role.initial != role->initial ||
            s->role.running != role->running || s->role.decays != role->decays ||
            s->role.variance != role->variance)
            fail_msg("%s has another role", s->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_windows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
        cmocka_unit_test(test_last_windows),
        cmocka_unit_test(test_too_much_padding),
        cmocka_unit_test_setup_teardown(test_roles, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
