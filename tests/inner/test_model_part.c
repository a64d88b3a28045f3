/* Where models can be parted, why not elsewhere, and that the parts together are the whole.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "inner/models/model_part.h"
#include "tests/inner/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const char residual[] =
    "{name: t, input: [3, 8, 8], classes: 4, layers: [relu: {name: r0}, "
    "conv: {name: c1, filters: 5, kernel: 3, pad: 1}, batchnorm: {name: b1}, relu: {name: r1}, "
    "conv: {name: c2, filters: 5, kernel: 3, pad: 1}, batchnorm: {name: b2}, "
    "add: {name: s, input: [b2, r1]}, relu: {name: r2}, maxpool: {name: p, kernel: 2}, "
    "dropout: {name: d}, fc: {name: f1, outputs: 20}, relu: {name: r3}, "
    "fc: {name: f2, outputs: classes}, relu: {name: r4}]}";

static const char two_of_the_pixels[] =
    "{name: t, input: [3, 6, 6], classes: 4, layers: ["
    "conv: {name: a, filters: 5, kernel: 3}, conv: {name: b, input: input, filters: 5, kernel: 3}, "
    "add: {name: s, input: [a, b]}, fc: {name: f, outputs: classes}]}";

/* ---- borders ---- */

typedef struct {
    const char *layer;
    bpt_border_kind kind;
    const char *by;
} expected_border;

static void check_borders(const char *text, const expected_border *expected, size_t n) {
    bpt_model *m = net_parse(text);
    assert_int_equal(m->n_layers, n);
    for (size_t i = 0; i < n; i++) {
        const bpt_layer *by = NULL;
        assert_string_equal(m->layers[i].name, expected[i].layer);
        const bpt_border_kind kind = bpt_model_border(m, i, &by);
        if (kind != expected[i].kind) fail_msg("behind %s: %d", m->layers[i].name, (int)kind);
        assert_int_equal(kind, bpt_model_border(m, i, NULL));
        if (expected[i].by)
            assert_string_equal(by->name, expected[i].by);
        else
            assert_null(by);
    }
    bpt_model_free(m);
}

static void test_borders(void **state) {
    (void)state;
    static const expected_border of_residual[] = {
        {"r0", BPT_BORDER_NO_WEIGHTS, NULL}, {"c1", BPT_BORDER_POSSIBLE, NULL},
        {"b1", BPT_BORDER_POSSIBLE, NULL},   {"r1", BPT_BORDER_POSSIBLE, NULL},
        {"c2", BPT_BORDER_BYPASSED, "s"},    {"b2", BPT_BORDER_BYPASSED, "s"},
        {"s", BPT_BORDER_POSSIBLE, NULL},    {"r2", BPT_BORDER_POSSIBLE, NULL},
        {"p", BPT_BORDER_POSSIBLE, NULL},    {"d", BPT_BORDER_POSSIBLE, NULL},
        {"f1", BPT_BORDER_POSSIBLE, NULL},   {"r3", BPT_BORDER_POSSIBLE, NULL},
        {"f2", BPT_BORDER_NO_WEIGHTS, NULL}, {"r4", BPT_BORDER_AT_END, NULL},
    };
    static const expected_border of_two[] = {
        {"a", BPT_BORDER_BYPASSED, "b"},
        {"b", BPT_BORDER_BYPASSED, "s"},
        {"s", BPT_BORDER_POSSIBLE, NULL},
        {"f", BPT_BORDER_AT_END, NULL},
    };
    check_borders(residual, of_residual, sizeof of_residual / sizeof *of_residual);
    check_borders(two_of_the_pixels, of_two, sizeof of_two / sizeof *of_two);
}

static size_t count_borders(const bpt_model *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_layers; i++)
        n += bpt_model_border(m, i, NULL) == BPT_BORDER_POSSIBLE;
    return n;
}

/* A chain can be parted anywhere, a residual network between its blocks: 3 layers of the stem, 9
 * additions and their ReLUs, the pooling. */
static void test_borders_of_built_in_models(void **state) {
    (void)state;
    static const char *const chains[] = {"lenet", "alexnet", "vgg16"};
    bpt_model *m = NULL;
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        net_assert_ok(bpt_model_load(chains[i], NULL, &m));
        assert_int_equal(count_borders(m), m->n_layers - 1);
        bpt_model_free(m);
    }
    net_assert_ok(bpt_model_load("resnet20", NULL, &m));
    assert_int_equal(count_borders(m), 3 + 9 * 2 + 1);
    bpt_model_free(m);
}

static void check_not_found(const bpt_model *m, const char *name, const char *text,
                            const char *hint) {
    size_t layer = 77;
    assert_int_equal(bpt_model_find_border(m, name, &layer), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, text);
    assert_string_equal(bpt_error_last()->hint, hint);
    assert_int_equal(layer, 77);
}

static void test_borders_by_name(void **state) {
    (void)state;
    static const char where[] = "it can be parted before b1, r1, c2, r2, p, d, f1, r3, f2";
    bpt_model *m = net_parse(residual);
    size_t layer = 0;
    net_assert_ok(bpt_model_find_border(m, "f1", &layer));
    assert_string_equal(m->layers[layer].name, "d");
    net_assert_ok(bpt_model_find_border(m, "b1", &layer));
    assert_string_equal(m->layers[layer].name, "c1");
    check_not_found(m, "b2",
                    "model t cannot be parted before layer b2: layer s takes something from before "
                    "it besides what c2 gives",
                    where);
    check_not_found(m, "r0", "model t cannot be parted before layer r0: it is the first one",
                    where);
    check_not_found(
        m, "c1", "model t cannot be parted before layer c1: one of the parts would have no weights",
        where);
    check_not_found(
        m, "r4", "model t cannot be parted before layer r4: one of the parts would have no weights",
        where);
    check_not_found(m, "f11", "model t has no layer called \"f11\"", "did you mean \"f1\"?");
    bpt_model_free(m);
    m = net_parse("{name: u, input: [1, 1, 1], classes: 4, layers: [fc: {outputs: classes}]}");
    check_not_found(m, "fc1", "model u cannot be parted before layer fc1: it is the first one",
                    "it cannot be parted anywhere");
    bpt_model_free(m);
}

/* ---- parts ---- */

static void check_segments(const bpt_model *whole, size_t first, const bpt_model *part) {
    assert_true(first + part->segments.n <= whole->segments.n);
    assert_int_equal(part->segments.n_before, first);
    assert_int_equal(part->first_element, whole->segments.items[first].offset);
    for (size_t i = 0; i < part->segments.n; i++) {
        const bpt_segment *a = &whole->segments.items[first + i], *b = &part->segments.items[i];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->offset, part->first_element + b->offset);
        assert_int_equal(a->count, b->count);
        assert_int_equal(a->n_dims, b->n_dims);
        assert_memory_equal(a->dims, b->dims, sizeof a->dims);
        assert_memory_equal(&a->role, &b->role, sizeof a->role);
    }
}

static void check_layers(const bpt_model *whole, size_t first, const bpt_model *part) {
    for (size_t i = 0; i < part->n_layers; i++) {
        const bpt_layer *a = &whole->layers[first + i], *b = &part->layers[i];
        assert_string_equal(a->name, b->name);
        assert_ptr_equal(a->kind, b->kind);
        assert_int_equal(b->index, i);
        assert_int_equal(b->number, first + i);
        assert_int_equal(a->n_inputs, b->n_inputs);
        for (size_t j = 0; j < a->n_inputs; j++) {
            assert_int_equal(a->inputs[j], first + b->inputs[j]);
            assert_memory_equal(&a->ins[j], &b->ins[j], sizeof a->ins[j]);
        }
        assert_memory_equal(&a->out, &b->out, sizeof a->out);
        assert_memory_equal(a->config, b->config, a->kind->config_bytes);
        if (a->n_segments == 0) continue;
        assert_int_equal(a->n_segments, b->n_segments);
        assert_int_equal(a->first_segment, part->segments.n_before + b->first_segment);
    }
}

static void check_initial(const bpt_model *whole, const bpt_model *head, const bpt_model *tail) {
    enum { SEED = 7 };
    const size_t n = whole->segments.n_elements;
    float *expected = net_floats(n), *parts = net_floats(n);
    bpt_segments_initialise(&whole->segments, SEED, expected);
    bpt_segments_initialise(&head->segments, SEED, parts + head->first_element);
    bpt_segments_initialise(&tail->segments, SEED, parts + tail->first_element);
    net_assert_same_bits("initial weights", expected, parts, n);
    free(parts);
    free(expected);
}

static void check_parts(const bpt_model *whole, size_t layer) {
    bpt_model *head = NULL, *tail = NULL;
    const bpt_shape border = whole->layers[layer].out;
    net_assert_ok(bpt_model_part(whole, layer, BPT_MODEL_HEAD, &head));
    net_assert_ok(bpt_model_part(whole, layer, BPT_MODEL_TAIL, &tail));
    assert_int_equal(head->role, BPT_MODEL_HEAD);
    assert_int_equal(tail->role, BPT_MODEL_TAIL);
    assert_int_equal(head->n_layers, layer + 1);
    assert_int_equal(head->n_layers + tail->n_layers, whole->n_layers);
    assert_memory_equal(&head->input, &whole->input, sizeof border);
    assert_memory_equal(&tail->input, &border, sizeof border);
    assert_int_equal(tail->classes, whole->classes);
    check_layers(whole, 0, head);
    check_layers(whole, layer + 1, tail);
    check_segments(whole, 0, head);
    check_segments(whole, head->segments.n, tail);
    assert_int_equal(head->segments.n + tail->segments.n, whole->segments.n);
    assert_int_equal(head->segments.n_elements + tail->segments.n_elements,
                     whole->segments.n_elements);
    assert_int_equal(tail->first_element, head->segments.n_elements);
    assert_int_equal(bpt_model_training_flops(head) + bpt_model_training_flops(tail),
                     bpt_model_training_flops(whole));
    check_initial(whole, head, tail);
    bpt_model_free(tail);
    bpt_model_free(head);
}

static void test_parts_are_the_whole(void **state) {
    (void)state;
    static const char *const texts[] = {residual, two_of_the_pixels, net_mixed, net_tiny};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        bpt_model *m = net_parse(texts[t]);
        size_t n = 0;
        for (size_t i = 0; i < m->n_layers; i++) {
            if (bpt_model_border(m, i, NULL) != BPT_BORDER_POSSIBLE) continue;
            check_parts(m, i);
            n++;
        }
        assert_true(n > 0);
        bpt_model_free(m);
    }
}

/* What one layer does for others in the whole model may reach over the border: parts do not. */
static void test_fusion_ends_at_the_border(void **state) {
    (void)state;
    bpt_model *whole = net_parse(residual), *head = NULL, *tail = NULL;
    assert_true(whole->layers[2].fusion.relu && whole->layers[3].fusion.done);
    net_assert_ok(bpt_model_part(whole, 2, BPT_MODEL_HEAD, &head));
    net_assert_ok(bpt_model_part(whole, 2, BPT_MODEL_TAIL, &tail));
    assert_false(head->layers[2].fusion.relu);
    assert_false(tail->layers[0].fusion.done);
    assert_int_equal(tail->layers[2].fusion.add, 1 + 3); /* b2 still does s */
    bpt_model_free(tail);
    bpt_model_free(head);
    bpt_model_free(whole);
}

/* A cut of a convolution that was given goes along with it, and so do the costs that others follow
 * from. */
static void test_cuts_go_along(void **state) {
    (void)state;
    const bpt_cost_table costs = {.workers = 1};
    bpt_model *whole = net_parse(residual), *tail = NULL;
    bpt_model_use_costs(whole, &costs);
    net_assert_ok(
        bpt_model_set_cut(whole, "c2", BPT_CONV_FORWARD, (bpt_cut){.samples = 1, .rows = 2}));
    net_assert_ok(bpt_model_part(whole, 3, BPT_MODEL_TAIL, &tail));
    assert_ptr_equal(tail->costs, &costs);
    const bpt_conv_config *config = tail->layers[0].config;
    assert_true(config->cut_is_given[BPT_CONV_FORWARD]);
    assert_int_equal(config->cut[BPT_CONV_FORWARD].rows, 2);
    bpt_model_free(tail);
    bpt_model_free(whole);
}

static void test_allocations_that_fail(void **state) {
    (void)state;
    bpt_model *whole = net_parse(residual);
    for (int role = BPT_MODEL_HEAD; role <= BPT_MODEL_TAIL; role++) {
        const uint64_t live = bpt_memory_live();
        bpt_model *part = NULL;
        for (int64_t n = 0; !part; n++) {
            bpt_memory_fail_at(n);
            const bpt_status status = bpt_model_part(whole, 9, (bpt_model_role)role, &part);
            bpt_memory_fail_at(-1);
            if (status == BPT_OK) break;
            assert_int_equal(status, BPT_ENOMEM);
            assert_null(part);
            assert_int_equal(bpt_memory_live(), live);
        }
        bpt_model_free(part);
        assert_int_equal(bpt_memory_live(), live);
    }
    bpt_model_free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_borders_of_built_in_models),
        cmocka_unit_test(test_borders_by_name),
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_fusion_ends_at_the_border),
        cmocka_unit_test(test_cuts_go_along),
        cmocka_unit_test(test_allocations_that_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
