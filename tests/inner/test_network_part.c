/* Head and tail of a network against the whole of it, from the same weights, batches and numbers:
 * for every kind of layer, at every border.
 *
 * ctest: cpu TIMEOUT=180 */
#include "inner/network/network_private.h"
#include "tests/inner/gradient_cases.h"
#include "tests/inner/part_fixture.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 7, N_STEPS = 3 };

/* Where layers round otherwise, of a segment's length after the steps, and of the loss: at most
 * 1.2e-7 of weights here; in bfloat16 2.3e-4 of weights and 2.7e-3 of a loss, which is of logits
 * that are rounded to 2^-9. */
static const double RTOL = 1e-6, RTOL_BF16 = 1e-2;

/* ---- where bits may differ ---- */

/* Gradients of windows that overlap are summed in bfloat16 by one kernel, in floats by another. */
static bool sums_overlaps(const bpt_layer *l, bpt_value_type type) {
    const bpt_pool_config *config = l->config;
    return type == BPT_BF16 && l->kind == &bpt_layer_maxpool &&
           (config->stride[0] < config->kernel[0] || config->stride[1] < config->kernel[1]);
}

static bool sums_by_layout(const bpt_layer *l, bpt_value_type type) {
    return l->kind == &bpt_layer_batchnorm || l->kind == &bpt_layer_lrn ||
           l->kind == &bpt_layer_avgpool || l->kind == &bpt_layer_global_avgpool ||
           sums_overlaps(l, type);
}

/* Values come row-major from the border, and not in blocks of channels: a layer that keeps the
 * order it is given, and sums in it, is reached by them where no layer before it chooses an order.
 */
static bool rounds_alike(const bpt_model *tail, bpt_value_type type) {
    bool *given = calloc(tail->n_layers + 1, sizeof *given), alike = true;
    assert_non_null(given);
    given[0] = true;
    for (size_t i = 0; i < tail->n_layers; i++) {
        const bpt_layer *l = &tail->layers[i];
        const bool chooses = l->kind == &bpt_layer_conv || l->kind == &bpt_layer_fc;
        bool reached = false;
        for (size_t j = 0; j < l->n_inputs; j++) reached |= given[l->inputs[j]];
        if (reached && sums_by_layout(l, type)) alike = false;
        given[i + 1] = reached && !chooses;
    }
    free(given);
    return alike;
}

static void check_results(const bpt_batch_result *a, const bpt_batch_result *b, bool alike,
                          double rtol) {
    assert_int_equal(a->n_samples, b->n_samples);
    if (alike) {
        assert_true(a->loss_sum == b->loss_sum);
        assert_int_equal(a->n_correct, b->n_correct);
    } else if (!(fabs(a->loss_sum - b->loss_sum) <= rtol * fabs(a->loss_sum))) {
        fail_msg("the loss is %.9g in one and %.9g in the other", a->loss_sum, b->loss_sum);
    }
}

static void check_vectors(const net_fixture *whole, const part_fixture *p, bpt_vector which,
                          bool alike, double rtol) {
    const char *name = "";
    float *x = net_vector(whole, which), *y = part_vector(p, which);
    double *expected = ref_doubles(x, whole->n_weights);
    if (alike) net_assert_same_bits("vector", x, y, whole->n_weights);
    const double error = ref_segments_error(&whole->model->segments, y, expected, &name);
    if (!(error <= rtol)) fail_msg("%s is off by %.2g", name, error);
    free(expected);
    free(y);
    free(x);
}

/* ---- steps ---- */

static void check_steps(net_fixture *f, size_t layer, bpt_value_type type) {
    part_fixture p = part_open(f, layer, (net_options){.activations = type});
    const bool alike = rounds_alike(p.tail_model, type);
    const double rtol = type == BPT_BF16 ? RTOL_BF16 : RTOL;
    bpt_batch_result whole, parts;
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_WEIGHTS, f->weights));
    f->labels[0] = -1;
    for (uint64_t step = 0; step < N_STEPS; step++) {
        const bpt_draw draw = {5, step, 100};
        bpt_network_set_draw(f->net, draw);
        part_set_draw(&p, draw);
        net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.02f, 6.0f, &whole));
        part_train(&p, f, 0.02f, 6.0f, &parts);
        check_results(&whole, &parts, alike, rtol);
    }
    check_vectors(f, &p, BPT_VECTOR_WEIGHTS, alike, rtol);
    part_close(&p);
}

/* Of a large model some of the borders. */
static void check_case(const gradient_case *c, bpt_value_type type) {
    net_fixture f = gradient_open_typed(c, BATCH, type);
    size_t n = 0;
    for (size_t i = 0; i < f.model->n_layers; i++) {
        if (bpt_model_border(f.model, i, NULL) != BPT_BORDER_POSSIBLE) continue;
        if (n++ % (c->large ? 6 : 1) == 0) check_steps(&f, i, type);
    }
    net_close(&f);
}

static void test_floats(void **state) {
    check_case(*state, BPT_F32);
}

static void test_bf16(void **state) {
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    check_case(*state, BPT_BF16);
}

/* A border of floats in a network of bfloat16, and one whose type is that of an add's second input.
 */
static void test_types_of_borders(void **state) {
    (void)state;
    static const struct {
        const char *layers, *first;
        bpt_value_type type;
    } cases[] = {
        {"batchnorm: {name: f}, relu, conv: {name: a, filters: 3, kernel: 1}, fc: {outputs: "
         "classes}",
         "a", BPT_F32},
        {"batchnorm: {name: f}, conv: {name: a, input: input, filters: 3, kernel: 1}, "
         "batchnorm: {name: b}, add: {name: s, input: [f, b]}, relu: {name: r}, "
         "fc: {name: g, outputs: classes}",
         "g", BPT_BF16},
        {"batchnorm: {name: f}, conv: {name: a, input: input, filters: 3, kernel: 1}, "
         "add: {name: s, input: [f, a]}, relu: {name: r}, fc: {name: g, outputs: classes}",
         "g", BPT_F32},
    };
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        size_t layer = 0;
        snprintf(text, sizeof text, "{name: t, input: [3, 4, 4], classes: 4, layers: [%s]}",
                 cases[i].layers);
        const net_options options = {.n_workers = 2, .seed = 3, .activations = BPT_BF16};
        net_fixture f = net_open(text, BATCH, options);
        net_assert_ok(bpt_model_find_border(f.model, cases[i].first, &layer));
        part_fixture p = part_open(&f, layer, options);
        assert_int_equal(p.from.type, cases[i].type);
        part_close(&p);
        check_steps(&f, layer, BPT_BF16);
        net_close(&f);
    }
}

/* ---- optimisers ---- */

/* With state, and norms of segments: each kind of update, on both sides. */
static void test_optimisers(void **state) {
    (void)state;
    static const bpt_learning recipes[] = {
        {.momentum = 0.9, .decay = 1e-2, .nesterov = true, .label_smoothing = 0.1},
        {.optimizer = &bpt_optimizer_adamw, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8},
        {.optimizer = &bpt_optimizer_lars, .momentum = 0.9, .decay = 1e-2, .eta = 0.1},
    };
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const net_options options = {.n_workers = 3, .learning = recipes[i], .seed = 11};
        net_fixture f = net_open(net_mixed, 23, options);
        size_t layer = 0;
        net_assert_ok(bpt_model_find_border(f.model, "fc1", &layer));
        part_fixture p = part_open(&f, layer, options);
        for (uint64_t step = 0; step < 4; step++) {
            bpt_batch_result whole, parts;
            bpt_network_set_draw(f.net, (bpt_draw){1, step, 0});
            part_set_draw(&p, (bpt_draw){1, step, 0});
            net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.01f, 23.0f, &whole));
            if (step % 2) {
                part_train(&p, &f, 0.01f, 23.0f, &parts);
            } else {
                part_gradient(&p, &f, 23.0f, &parts);
                net_assert_ok(bpt_network_apply(p.head, 0.01f));
                net_assert_ok(bpt_network_apply(p.tail, 0.01f));
            }
            check_results(&whole, &parts, true, 0.0);
            check_vectors(&f, &p, BPT_VECTOR_WEIGHTS, true, 0.0);
            check_vectors(&f, &p, BPT_VECTOR_STATE_0, true, 0.0);
        }
        part_close(&p);
        net_close(&f);
    }
}

/* ---- a border that is handed out ---- */

enum { POISON = 77777 };

typedef struct {
    const bpt_network *tail;
    float *gradient; /* at the border, as it was handed out */
    size_t bytes;
    bpt_batch_result result;
    unsigned n_calls;
    bool alone;          /* no other worker writes gradients of weights meanwhile */
    bool before_weights; /* each time, if so: no gradient of an fc's weights was there */
    bool fails;
} taken;

static bool is_poisoned(const bpt_network *net, const char *layer) {
    for (size_t i = 0; i < net->model->n_layers; i++) {
        const bpt_layer *l = &net->model->layers[i];
        if (strcmp(l->name, layer) != 0) continue;
        const float *g = bpt_at(&net->blocks, net->builder.weights[l->first_segment].gradient);
        return g[0] == (float)POISON;
    }
    return false;
}

static bpt_status take_border(void *context, const bpt_batch_result *result) {
    taken *t = context;
    memcpy(t->gradient, bpt_network_border(t->tail).gradient, t->bytes);
    t->result = *result;
    t->n_calls++;
    if (t->alone)
        t->before_weights =
            t->before_weights && is_poisoned(t->tail, "fc1") && is_poisoned(t->tail, "fc2");
    return t->fails ? bpt_fail(BPT_EIO, "nobody takes it") : BPT_OK;
}

static void poison_gradients(bpt_network *net) {
    const size_t n = net->model->segments.n_elements;
    float *x = net_floats(n);
    for (size_t i = 0; i < n; i++) x[i] = (float)POISON;
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_GRADIENTS, x));
    free(x);
}

/* An output of infinity less infinity is dropped by the ReLU behind it, so that the loss is finite;
 * on the way back nothing times infinity is not. */
static void check_not_handed_out(part_fixture *p, const net_fixture *f, taken *t) {
    const size_t n = p->tail_model->segments.n_elements;
    const unsigned n_calls = t->n_calls;
    float *x = net_floats(n);
    bpt_batch_result result;
    net_assert_ok(bpt_network_get(p->tail, BPT_VECTOR_WEIGHTS, x));
    for (size_t s = 0; s < p->tail_model->segments.n; s++) {
        const bpt_segment *segment = &p->tail_model->segments.items[s];
        if (strcmp(segment->name, "fc1.weight") == 0) x[segment->offset] = INFINITY;
        if (strcmp(segment->name, "fc1.bias") == 0) x[segment->offset] = -INFINITY;
    }
    net_assert_ok(bpt_network_set(p->tail, BPT_VECTOR_WEIGHTS, x));
    t->fails = false;
    assert_int_equal(bpt_network_gradient(p->tail, p->from.values, f->labels, 23.0f, &result),
                     BPT_ENUMERIC);
    assert_int_equal(t->n_calls, n_calls);
    free(x);
}

/* Bits are those of a step that hands nothing out. */
static void check_handed_out(unsigned n_workers) {
    const net_options options = {.n_workers = n_workers, .seed = 6};
    net_fixture f = net_open(net_mixed, 23, options);
    size_t layer = 0;
    net_assert_ok(bpt_model_find_border(f.model, "conv5", &layer));
    part_fixture plain = part_open(&f, layer, options), p = part_open(&f, layer, options);
    taken t = {
        .tail = p.tail, .bytes = p.to.bytes, .alone = n_workers == 1, .before_weights = true};
    t.gradient = net_floats(t.bytes / sizeof *t.gradient);
    net_assert_ok(bpt_network_hand_border(p.tail, take_border, &t));
    for (uint64_t step = 0; step < 4; step++) {
        bpt_batch_result expected, result;
        part_set_draw(&plain, (bpt_draw){1, step, 0});
        part_set_draw(&p, (bpt_draw){1, step, 0});
        poison_gradients(p.tail);
        part_gradient(&plain, &f, 23.0f, &expected);
        part_gradient(&p, &f, 23.0f, &result);
        assert_int_equal(t.n_calls, step + 1);
        assert_true(t.result.loss_sum == expected.loss_sum);
        assert_int_equal(t.result.n_correct, expected.n_correct);
        assert_int_equal(t.result.n_samples, expected.n_samples);
        check_results(&expected, &result, true, 0.0);
        net_assert_same_bits("border", plain.to.gradient, t.gradient, t.bytes / sizeof *t.gradient);
        float *x = part_vector(&plain, BPT_VECTOR_GRADIENTS);
        float *y = part_vector(&p, BPT_VECTOR_GRADIENTS);
        net_assert_same_bits("gradients", x, y, f.n_weights);
        free(y);
        free(x);
        net_assert_ok(bpt_network_apply(plain.tail, 0.01f));
        net_assert_ok(bpt_network_apply(p.tail, 0.01f));
        net_assert_same_bits("border that stays", t.gradient, p.to.gradient,
                             t.bytes / sizeof *t.gradient);
    }
    assert_true(t.before_weights);
    t.fails = true;
    bpt_batch_result result;
    assert_int_equal(bpt_network_gradient(p.tail, p.from.values, f.labels, 23.0f, &result),
                     BPT_EIO);
    check_not_handed_out(&p, &f, &t);
    free(t.gradient);
    part_close(&p);
    part_close(&plain);
    net_close(&f);
}

static void test_border_is_handed_out(void **state) {
    (void)state;
    for (unsigned n = 1; n <= 3; n++) check_handed_out(n);
}

/* ---- borders that are not finite ---- */

/* A value of a head's border that is none, once, and none the next time. */
static void check_border_value(bpt_value_type type, float value) {
    static const char text[] =
        "{name: t, input: [2, 4, 4], classes: 3, layers: ["
        "conv: {name: a, filters: 16, kernel: 3, pad: 1}, fc: {name: b, outputs: 8}, "
        "fc: {outputs: classes}]}";
    const net_options options = {.n_workers = 2, .seed = 8, .activations = type};
    net_fixture f = net_open(text, BATCH, options);
    part_fixture p = part_open(&f, 0, options);
    float *bias = f.weights + f.model->segments.items[1].offset + 15;
    assert_int_equal(p.from.type, type);
    *bias = value;
    part_set(&p, BPT_VECTOR_WEIGHTS, f.weights);
    assert_int_equal(bpt_network_forward(p.head, f.pixels, f.labels, BATCH), BPT_ENUMERIC);
    assert_string_equal(bpt_error_last()->text,
                        "a value of the border is not a finite number: layer a is the first whose "
                        "output is not");
    *bias = 1.0f;
    part_set(&p, BPT_VECTOR_WEIGHTS, f.weights);
    net_assert_ok(bpt_network_forward(p.head, f.pixels, f.labels, BATCH));
    f.pixels[f.n_pixels - 1] = value;
    assert_int_equal(bpt_network_forward(p.head, f.pixels, f.labels, BATCH), BPT_ENUMERIC);
    assert_non_null(strstr(bpt_error_last()->text, "nor is all of the input"));
    part_close(&p);
    net_close(&f);
}

static void test_border_that_is_not_finite(void **state) {
    (void)state;
    const int n_types = bpt_cpu_bf16() == BPT_BF16_NONE ? 1 : 2;
    for (int type = 0; type < n_types; type++) {
        check_border_value(type == 0 ? BPT_F32 : BPT_BF16, NAN);
        check_border_value(type == 0 ? BPT_F32 : BPT_BF16, INFINITY);
        check_border_value(type == 0 ? BPT_F32 : BPT_BF16, -INFINITY);
    }
}

/* ---- what was measured ---- */

static void add_time(void *context, const char *label, const char *kind, unsigned n_tasks,
                     uint64_t ns) {
    bpt_run_stats *sum = context;
    (void)label;
    (void)kind;
    sum->n_tasks += n_tasks;
    sum->busy_ns += ns;
}

/* Of a head, both halves of the step. */
static void test_times_of_a_head(void **state) {
    (void)state;
    const net_options options = {.n_workers = 2, .seed = 9};
    net_fixture f = net_open(net_mixed, BATCH, options);
    size_t layer = 0;
    bpt_batch_result result;
    net_assert_ok(bpt_model_find_border(f.model, "conv5", &layer));
    part_fixture p = part_open(&f, layer, options);
    for (int step = 0; step < 2; step++) {
        bpt_run_stats sum = {0};
        part_train(&p, &f, 0.01f, BATCH, &result);
        const bpt_run_stats run = bpt_network_last_run(p.head);
        bpt_network_visit_times(p.head, add_time, &sum);
        assert_int_equal(sum.n_tasks, run.n_tasks);
        assert_in_range(run.busy_ns, sum.busy_ns - sum.n_tasks, sum.busy_ns);
        assert_in_range(run.busy_ns, 1, 2 * run.wall_ns);
        assert_int_equal(bpt_network_critical_path(p.head),
                         bpt_graph_measured_path(p.head->graphs[BPT_GRAPH_FORWARD]) +
                             bpt_graph_measured_path(p.head->graphs[BPT_GRAPH_TRAIN]));
    }
    part_close(&p);
    net_close(&f);
}

/* ---- the numbers of threads ---- */

static float *train_parts(unsigned n_workers) {
    const net_options options = {.n_workers = n_workers, .learning = {.momentum = 0.9}, .seed = 4};
    net_fixture f = net_open(net_mixed, 23, options);
    size_t layer = 0;
    bpt_batch_result result;
    net_assert_ok(bpt_model_find_border(f.model, "conv5", &layer));
    part_fixture p = part_open(&f, layer, options);
    for (uint64_t step = 0; step < 5; step++) {
        part_set_draw(&p, (bpt_draw){1, step, 0});
        part_train(&p, &f, 0.02f, 23.0f, &result);
    }
    float *weights = part_vector(&p, BPT_VECTOR_WEIGHTS);
    part_close(&p);
    net_close(&f);
    return weights;
}

static void test_workers_do_not_change_bits(void **state) {
    (void)state;
    bpt_model *m = net_parse(net_mixed);
    float *one = train_parts(1);
    for (unsigned n = 2; n <= 4; n++) {
        float *many = train_parts(n);
        net_assert_same_bits("weights", one, many, m->segments.n_elements);
        free(many);
    }
    free(one);
    bpt_model_free(m);
}

int main(void) {
    const gradient_sort sorts[] = {{"floats", test_floats}, {"bfloat16", test_bf16}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_of_borders),
        cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_border_is_handed_out),
        cmocka_unit_test(test_border_that_is_not_finite),
        cmocka_unit_test(test_times_of_a_head),
        cmocka_unit_test(test_workers_do_not_change_bits),
    };
    if (cmocka_run_group_tests(tests, NULL, NULL) != 0) return 1;
    return gradient_run("head and tail", sorts, sizeof sorts / sizeof *sorts);
}
