/* Memory of real networks: what shares it, what that saves, and that no task touches what it does
 * not say.
 *
 * ctest: cpu TIMEOUT=60 */
#include "inner/network/network_private.h"
#include "tests/inner/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20269 };

static const bpt_learning momentum_sgd = {.momentum = 0.9, .decay = 1e-2};

/* ---- tasks touch what they say ---- */

static bpt_ref place(const bpt_step_task *task, size_t i) {
    return task->kernel ? bpt_kernel_operand(task->kernel, (bpt_slot)i) : task->touches.refs[i];
}

static void mark(const bpt_network *net, const bpt_step_task *task, bool *own) {
    const size_t n = task->kernel ? BPT_N_SLOTS : task->touches.n;
    for (size_t i = 0; i < n; i++) {
        const bpt_buffer *b = &net->blocks.buffers[place(task, i).buffer];
        if (place(task, i).buffer == 0) continue;
        for (size_t j = 0; j < b->bytes / sizeof(float); j++)
            own[b->place / sizeof(float) + j] = true;
    }
}

/* Runs a task while all the block but its own buffers holds other values, which have to stay. */
static void run_alone(bpt_network *net, const bpt_step_task *task, float *kept, bool *own) {
    const size_t n = net->blocks.bytes[BPT_BLOCK_ACTIVATIONS] / sizeof(float);
    float *x = (float *)(void *)net->blocks.base[BPT_BLOCK_ACTIVATIONS];
    memset(own, 0, n * sizeof *own);
    mark(net, task, own);
    memcpy(kept, x, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        if (!own[i]) x[i] = 1e3f;
    net_assert_ok(task->fn(task->arg, 0));
    for (size_t i = 0; i < n; i++) {
        if (own[i]) continue;
        if (x[i] != 1e3f)
            fail_msg("%s %s writes where it does not say", task->info.label, task->info.kind);
        x[i] = kept[i];
    }
}

static void run_all_alone(bpt_network *net, unsigned phases) {
    const bpt_builder *b = &net->builder;
    const size_t n = net->blocks.bytes[BPT_BLOCK_ACTIVATIONS] / sizeof(float);
    float *kept = net_floats(n);
    bool *own = calloc(n, sizeof *own);
    assert_non_null(own);
    for (size_t i = 0; i < b->n_tasks; i++)
        if (b->tasks[i].phase & phases) run_alone(net, &b->tasks[i], kept, own);
    free(own);
    free(kept);
}

static double loss_of_tiles(const bpt_network *net) {
    double sum = 0.0;
    for (size_t c = 0; c < net->builder.n_chunks; c++) sum += net->chunks[c].result.loss_sum;
    return sum;
}

static const char *const models[] = {
    NULL, /* net_mixed */
    "{name: t, input: [2, 8, 8], classes: 3, layers: ["
    "conv: {name: a, filters: 5, kernel: 3, pad: 1}, batchnorm: {name: b}, relu: {name: r}, "
    "conv: {name: c, filters: 5, kernel: 3, pad: 1}, batchnorm: {name: d}, "
    "add: {name: s, input: [d, r]}, relu: {name: q}, dropout, "
    "maxpool: {kernel: 2}, fc: {name: f, outputs: 70}, relu, fc: {name: g, outputs: classes}]}",
};

static void check_touching(net_fixture f) {
    const float denominator = (float)f.batch;
    bpt_batch_result trained, evaluated;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, denominator, &trained));
    float *expected = net_vector(&f, BPT_VECTOR_GRADIENTS);
    run_all_alone(f.net, bpt__graph_phases(f.net, BPT_GRAPH_GRADIENT));
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
    net_assert_same_bits("gradients", expected, gradient, f.n_weights);
    assert_true(loss_of_tiles(f.net) == trained.loss_sum);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &evaluated));
    run_all_alone(f.net, bpt__graph_phases(f.net, BPT_GRAPH_EVALUATE));
    assert_true(loss_of_tiles(f.net) == evaluated.loss_sum);
    free(gradient);
    free(expected);
    net_close(&f);
}

static void test_tasks_touch_what_they_say(void **state) {
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        check_touching(net_open(models[m] ? models[m] : net_mixed, 7,
                                (net_options){1, momentum_sgd, SEED, BPT_F32}));
}

static const char *const firsts[] = {"conv4", "b", "conv5", "fc1", "fc2"}; /* of net_mixed */

static net_fixture open_frozen(const char *first, net_options options) {
    net_fixture f = net_open(net_mixed, 7, options);
    net_freeze(&f, first, options);
    return f;
}

static void test_frozen_touch_what_they_say(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        check_touching(open_frozen(firsts[i], (net_options){1, momentum_sgd, SEED, BPT_F32}));
}

static void test_parts_touch_what_they_say(void **state) {
    (void)state;
    static const char model[] =
        "{name: t, input: [2, 8, 8], classes: 3, layers: ["
        "conv: {name: a, filters: 32, kernel: 3, pad: 1}, batchnorm: {name: b}, relu: {name: r}, "
        "conv: {name: c, filters: 32, kernel: 3, pad: 1}, relu, "
        "conv: {name: d, filters: 48, kernel: 3, stride: 2}, fc: {name: g, outputs: classes}]}";
    static const bpt_cut cuts[] = {{.channels = 2}, {.rows = 2}, {.samples = 1}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        check_touching(net_open_cut(model, 6, (net_options){1, momentum_sgd, SEED, BPT_F32},
                                    (net_cuts){.step = {cuts[i], cuts[i], cuts[i]}}));
}

/* ---- a step finds nothing ---- */

/* Channels that fill no block: what fills it up is computed with, and has to be a number. A
 * rectifier would drop it otherwise. */
static const char spare_lanes[] =
    "{name: t, input: [3, 9, 8], classes: 5, layers: ["
    "conv: {name: a, filters: 43, kernel: 3}, batchnorm: {name: b}, "
    "conv: {name: c, filters: 43, kernel: 3, pad: 1, bias: false}, batchnorm: {name: d}, "
    "add: {name: s, input: [d, b]}, conv: {name: e, filters: 45, kernel: 1}, "
    "batchnorm: {name: f}, relu, lrn, dropout, maxpool: {kernel: 3, stride: 2}, "
    "avgpool: {kernel: 2, stride: 1}, fc: {name: g, outputs: classes}]}";

/* NaNs in memory that activations, their gradients, workspaces and sums have in turn. */
static void spoil(const bpt_network *net) {
    static const bpt_block blocks[] = {BPT_BLOCK_ACTIVATIONS, BPT_BLOCK_PARTIALS};
    for (size_t i = 0; i < 2; i++)
        memset(net->blocks.base[blocks[i]], 0xFF, net->blocks.bytes[blocks[i]]);
}

static void check_nothing_is_left(net_fixture f) {
    bpt_batch_result trained, evaluated, again;
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &evaluated));
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 7, &trained));
    float *expected = net_vector(&f, BPT_VECTOR_GRADIENTS);
    spoil(f.net);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &again));
    assert_memory_equal(&again, &evaluated, sizeof again);
    spoil(f.net);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 7, &again));
    assert_memory_equal(&again, &trained, sizeof again);
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
    net_assert_same_bits("gradients", expected, gradient, f.n_weights);
    free(gradient);
    free(expected);
    net_close(&f);
}

static void test_nothing_is_left_from_a_step(void **state) {
    (void)state;
    for (int type = BPT_F32; type <= BPT_BF16; type++) {
        if (type == BPT_BF16 && bpt_cpu_bf16() == BPT_BF16_NONE) continue;
        const net_options options = {2, momentum_sgd, SEED, (bpt_value_type)type};
        check_nothing_is_left(net_open(net_mixed, 7, options));
        check_nothing_is_left(net_open(spare_lanes, 7, options));
        for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
            check_nothing_is_left(open_frozen(firsts[i], options));
    }
}

/* ---- what it saves ---- */

/* Activations have to stay for the backward pass, their gradients do not. */
static void test_sharing_saves(void **state) {
    (void)state;
    static const char *const names[] = {"vgg-small", "resnet20", "googlenet", "mobilenet"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bpt_model *model = NULL;
        bpt_network_memory m;
        net_assert_ok(bpt_model_load(names[i], NULL, &model));
        net_assert_ok(bpt_network_plan(model, 32, BPT_F32, momentum_sgd, 2, &m));
        const size_t shared = m.activations + m.activation_gradients;
        if (!((double)shared < 0.7 * (double)m.unshared))
            fail_msg("%s: %zu bytes, where each buffer alone would come to %zu", names[i], shared,
                     m.unshared);
        assert_true(m.activation_gradients < m.activations / 2);
        bpt_model_free(model);
    }
}

/* What no gradient is computed of need not stay. */
static void test_freezing_saves(void **state) {
    (void)state;
    bpt_model *model = NULL;
    bpt_network_memory all, frozen, forward;
    net_assert_ok(bpt_model_load("resnet20", NULL, &model));
    net_assert_ok(bpt_network_plan(model, 32, BPT_F32, momentum_sgd, 2, &all));
    net_assert_ok(bpt_network_plan_forward(model, 32, BPT_F32, 2, &forward));
    net_assert_ok(bpt_model_freeze_before(model, "fc1"));
    net_assert_ok(bpt_network_plan(model, 32, BPT_F32, momentum_sgd, 2, &frozen));
    assert_true(frozen.activations < all.activations / 4);
    assert_true(frozen.activations <= forward.activations + forward.activations / 8);
    assert_true(frozen.activation_gradients < all.activation_gradients / 4);
    assert_int_equal(frozen.parameters, all.parameters);
    assert_true(frozen.gradients < all.gradients / 100 && frozen.state < all.state / 100);
    bpt_model_free(model);
}

/* ---- networks that evaluate alone ---- */

static void check_forward(const net_fixture *f) {
    bpt_network *net = NULL;
    bpt_batch_result expected, result;
    net_assert_ok(bpt_network_create_forward(f->model, f->batch, BPT_F32, f->pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f->weights));
    float *weights = net_floats(f->n_weights);
    for (int i = 0; i < 2; i++) {
        net_assert_ok(bpt_network_evaluate(f->net, f->pixels, f->labels, &expected));
        net_assert_ok(bpt_network_evaluate(net, f->pixels, f->labels, &result));
        assert_true(result.loss_sum == expected.loss_sum);
        assert_int_equal(result.n_correct, expected.n_correct);
        assert_int_equal(result.n_samples, expected.n_samples);
        f->labels[f->batch - 1] = -1;
    }
    net_assert_ok(bpt_network_get(net, BPT_VECTOR_WEIGHTS, weights));
    net_assert_same_bits("weights", f->weights, weights, f->n_weights);
    const bpt_network_memory all = bpt_network_memory_of(f->net), m = bpt_network_memory_of(net);
    assert_int_equal(m.parameters, all.parameters);
    assert_int_equal(m.gradients + m.state + m.activation_gradients, 0);
    assert_true(m.activations < all.activations);
    bpt_network_memory planned;
    net_assert_ok(bpt_network_plan_forward(f->model, f->batch, BPT_F32, bpt_pool_n_workers(f->pool),
                                           &planned));
    assert_memory_equal(&planned, &m, sizeof m);
    free(weights);
    bpt_network_free(net);
}

static void test_forward_network(void **state) {
    (void)state;
    net_fixture mixed = net_open(net_mixed, 23, (net_options){3, momentum_sgd, SEED, BPT_F32});
    check_forward(&mixed);
    net_close(&mixed);
    net_fixture resnet =
        net_open_built_in("resnet20", NULL, 8, (net_options){2, momentum_sgd, SEED, BPT_F32}, NULL);
    check_forward(&resnet);
    net_close(&resnet);
}

/* No ReLU and no maximum behind what is not finite: it hangs on oneDNN's code which of them drop a
 * NaN. */
static const char unrectified[] =
    "{name: t, input: [3, 9, 11], classes: 7, layers: ["
    "conv: {name: conv1, filters: 17, kernel: 3, pad: 1}, relu, maxpool: {kernel: 3, stride: 2}, "
    "conv: {name: conv2, filters: 16, kernel: 3, pad: 1}, batchnorm, avgpool: {kernel: 3}, "
    "fc: {outputs: 20}, fc: {outputs: classes}]}";

static void test_forward_network_that_is_not_finite(void **state) {
    (void)state;
    net_fixture f = net_open(unrectified, 6, (net_options){2, momentum_sgd, SEED, BPT_F32});
    bpt_network *net = NULL;
    bpt_batch_result result;
    net_assert_ok(bpt_network_create_forward(f.model, f.batch, BPT_F32, f.pool, &net));
    for (size_t i = 0; i < f.n_weights; i++) f.weights[i] = 1e30f;
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
    assert_int_equal(bpt_network_evaluate(net, f.pixels, f.labels, &result), BPT_ENUMERIC);
    if (!strstr(bpt_error_last()->text, "layer conv2 is the first"))
        fail_msg("%s", bpt_error_last()->text);
    bpt_network_free(net);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_touch_what_they_say),
        cmocka_unit_test(test_frozen_touch_what_they_say),
        cmocka_unit_test(test_parts_touch_what_they_say),
        cmocka_unit_test(test_nothing_is_left_from_a_step),
        cmocka_unit_test(test_sharing_saves),
        cmocka_unit_test(test_freezing_saves),
        cmocka_unit_test(test_forward_network),
        cmocka_unit_test(test_forward_network_that_is_not_finite),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
