/* Networks on a GPU some of whose layers do not learn: against loops in double precision for every
 * layer that can be the first to learn, and against the cores, and against themselves.
 *
 * ctest: gpu TIMEOUT=240 */
#include "inner/device.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/cuda_net_fixture.h"
#include "tests/inner/gradient_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 7, N_STEPS = 6 };

static bpt_device *device;

/* All that an update may look at: norms of layers, of the whole gradient, and decay. */
static const bpt_learning learning = {.momentum = 0.9, .decay = 1e-2};
static const bpt_learning bounded = {
    .momentum = 0.9, .decay = 1e-2, .clip_norm = 0.5, .step_limit = 0.05};

/* Normalised, dropped and added; behind c3 training is as evaluation. */
static const char residual[] =
    "{name: t, input: [3, 9, 11], classes: 5, layers: ["
    "conv: {name: c1, filters: 16, kernel: 3, pad: 1, bias: false}, batchnorm: {name: b1}, "
    "relu: {name: r1}, dropout: {name: d1, rate: 0.5}, "
    "conv: {name: c2, filters: 16, kernel: 3, pad: 1, bias: false}, batchnorm: {name: b2}, "
    "add: {name: sum, input: [b2, d1]}, relu, "
    "conv: {name: c3, filters: 24, kernel: 3}, relu, maxpool: {kernel: 2}, "
    "fc: {name: f1, outputs: 20}, relu, fc: {name: f2, outputs: classes}]}";

typedef struct {
    const char *text, *first;
    bool as_evaluated; /* what learns computes in training as in evaluation */
} frozen_case;

static const frozen_case cases[] = {
    {residual, "b1", false},   {residual, "c2", false},     {residual, "b2", false},
    {residual, "c3", true},    {residual, "f1", true},      {residual, "f2", true},
    {net_mixed, "b", false},   {net_mixed, "conv3", false}, {net_mixed, "conv4", false},
    {net_mixed, "fc1", false}, {net_mixed, "fc2", false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* The cores' network is of floats in any case. */
static net_fixture open_case(const frozen_case *c, bpt_learning l) {
    const net_options options = {.n_workers = 2, .learning = l, .seed = 21};
    net_fixture f = net_open(c->text, BATCH, options);
    net_freeze(&f, c->first, options);
    return f;
}

/* ---- one step against double precision ---- */

static void freeze(net_fixture *f, size_t layer) {
    net_freeze(f, f->model->layers[layer].name, (net_options){0});
}

static void check_floats(net_fixture *f, size_t layer, bpt_value_type type) {
    (void)type;
    freeze(f, layer);
    cuda_net_check_floats(device, f);
}

static void check_halves(net_fixture *f, size_t layer, bpt_value_type type) {
    (void)type;
    freeze(f, layer);
    cuda_net_check_halves(device, f);
}

static void test_floats(void **state) {
    gradient_each_first(*state, BATCH, BPT_F32, check_floats);
}

static void test_halves(void **state) {
    gradient_each_first(*state, BATCH, BPT_F32, check_halves);
}

/* ---- steps ---- */

static void check_training(const frozen_case *c, bpt_learning l) {
    net_fixture f = open_case(c, l);
    bpt_network *net = cuda_net_open(device, &f, BPT_F32, l);
    cuda_net_train(&f, net, N_STEPS);
    cuda_net_compare(&f, net, BPT_VECTOR_WEIGHTS, "weights");
    cuda_net_compare(&f, net, BPT_VECTOR_STATE_0, "momenta");
    cuda_net_compare_evaluations(&f, net);
    net_assert_frozen(&f, net);
    bpt_network_free(net);
    net_close(&f);
}

static void test_training(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        check_training(&cases[i], learning);
        check_training(&cases[i], bounded);
    }
}

static void train_alone(const net_fixture *f, bpt_network *net) {
    for (uint64_t step = 0; step < N_STEPS; step++) {
        bpt_batch_result r;
        bpt_network_set_draw(net, cuda_net_draw(step));
        net_assert_ok(bpt_network_train(net, f->pixels, f->labels, 0.01f, BATCH, &r));
    }
}

/* What is computed with is what the floats say, of layers that learn and of those that do not: a
 * network of nothing that is frozen is given them, and evaluates alike, bit for bit. */
static void check_copies(const net_fixture *f, const net_fixture *whole, bpt_network *net) {
    bpt_network *other;
    bpt_batch_result a, b;
    float *weights = net_vector_of(net, f, BPT_VECTOR_WEIGHTS);
    net_assert_ok(
        bpt_network_create_forward_on(device, whole->model, BATCH, BPT_BF16, f->pool, &other));
    net_assert_ok(bpt_network_set(other, BPT_VECTOR_WEIGHTS, weights));
    net_assert_ok(bpt_network_evaluate(net, f->pixels, f->labels, &a));
    net_assert_ok(bpt_network_evaluate(other, f->pixels, f->labels, &b));
    assert_true(a.loss_sum == b.loss_sum);
    assert_int_equal(a.n_correct, b.n_correct);
    bpt_network_free(other);
    free(weights);
}

static void test_training_in_halves(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        net_fixture f = open_case(&cases[i], bounded);
        net_fixture whole = net_open(cases[i].text, BATCH, (net_options){0});
        bpt_network *net = cuda_net_open(device, &f, BPT_BF16, bounded);
        for (int round = 0; round < 2; round++) {
            train_alone(&f, net);
            net_assert_frozen(&f, net);
            check_copies(&f, &whole, net);
            for (size_t j = 0; j < f.n_weights; j++) f.weights[j] *= 1.25f; /* set from outside */
            net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
            check_copies(&f, &whole, net);
        }
        bpt_network_free(net);
        net_close(&whole);
        net_close(&f);
    }
}

/* Bit for bit, whatever is drawn. */
static void test_as_evaluated(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CASES; i++)
        for (int type = BPT_F32; cases[i].as_evaluated && type <= BPT_BF16; type++) {
            net_fixture f = open_case(&cases[i], learning);
            bpt_network *net = cuda_net_open(device, &f, (bpt_value_type)type, learning);
            for (uint64_t run = 0; run < 4; run++) { /* task by task, measured, captured */
                bpt_batch_result a, b;
                bpt_network_set_draw(net, cuda_net_draw(run));
                net_assert_ok(bpt_network_gradient(net, f.pixels, f.labels, BATCH, &a));
                net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &b));
                assert_true(a.loss_sum == b.loss_sum);
                assert_int_equal(a.n_correct, b.n_correct);
            }
            bpt_network_free(net);
            net_close(&f);
        }
}

/* The part that learns is the end of a vector; setting it leaves the other, and its copies. */
static void test_part_that_learns(void **state) {
    (void)state;
    for (int type = BPT_F32; type <= BPT_BF16; type++) {
        net_fixture f = open_case(&cases[3], learning);
        bpt_network *net = cuda_net_open(device, &f, (bpt_value_type)type, learning);
        const size_t n = bpt_model_learned_elements(f.model), first = f.n_weights - n;
        float *part = net_floats(n);
        bpt_batch_result before, after;
        net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &before));
        net_assert_ok(bpt_network_get_learned(net, BPT_VECTOR_WEIGHTS, part));
        net_assert_same_bits("what learns", part, f.weights + first, n);
        for (size_t i = 0; i < n; i++) part[i] = (float)i;
        net_assert_ok(bpt_network_set_learned(net, BPT_VECTOR_WEIGHTS, part));
        float *all = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
        net_assert_same_bits("what was set", all + first, part, n);
        net_assert_same_bits("what is frozen", all, f.weights, first);
        net_assert_ok(bpt_network_set_learned(net, BPT_VECTOR_WEIGHTS, f.weights + first));
        net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &after));
        assert_true(before.loss_sum == after.loss_sum);
        free(all);
        free(part);
        bpt_network_free(net);
        net_close(&f);
    }
}

/* Other ranks' gradients of what is frozen, if they had any, are applied to nothing, and do not
 * count in the norm of the whole. */
static void test_gradients_that_are_set(void **state) {
    (void)state;
    net_fixture f = open_case(&cases[3], bounded);
    bpt_network *net = cuda_net_open(device, &f, BPT_F32, bounded);
    float *gradients = net_floats(f.n_weights);
    for (size_t i = 0; i < f.n_weights; i++) gradients[i] = 0.01f * (float)(i % 13);
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, gradients));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_GRADIENTS, gradients));
    net_assert_ok(bpt_network_apply(f.net, 0.1f));
    net_assert_ok(bpt_network_apply(net, 0.1f));
    cuda_net_compare(&f, net, BPT_VECTOR_STATE_0, "momenta");
    float *weights = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("frozen weights", weights, f.weights, bpt_model_frozen_elements(f.model));
    free(weights);
    free(gradients);
    bpt_network_free(net);
    net_close(&f);
}

/* ---- what a network takes ---- */

/* @return kernels that a device that knows none measures for a network */
static unsigned count_kernels(const net_fixture *f, bpt_value_type type) {
    bpt_device *own;
    net_assert_ok(bpt_device_open("cuda", false, &own));
    bpt_network_free(cuda_net_open(own, f, type, learning));
    const unsigned n = own->n_measured;
    bpt_device_close(own);
    return n;
}

/* Three steps of each product, but for the first one's gradient of its input. Of what is frozen
 * there is one, and the first that learns has no gradient of its input. */
static void test_kernels(void **state) {
    static const char text[] =
        "{name: t, input: [3, 8, 8], classes: 5, layers: ["
        "conv: {name: a, filters: 8, kernel: 3}, relu, "
        "conv: {name: b, filters: 16, kernel: 3}, fc: {name: c, outputs: 24}, "
        "fc: {name: d, outputs: 12}, fc: {name: e, outputs: classes}]}";
    static const struct {
        const char *first;
        unsigned n;
    } expected[] = {{"b", 1 + 2 + 3 * 3}, {"c", 2 + 2 + 2 * 3}, {"d", 3 + 2 + 3}, {"e", 4 + 2}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        for (int type = BPT_F32; type <= BPT_BF16; type++) {
            net_fixture f = net_open(text, BATCH, (net_options){0});
            assert_int_equal(count_kernels(&f, (bpt_value_type)type), 2 + 4 * 3);
            net_freeze(&f, expected[i].first, (net_options){0});
            assert_int_equal(count_kernels(&f, (bpt_value_type)type), expected[i].n);
            net_close(&f);
        }
}

/* What no gradient is computed of need not stay. */
static void test_memory(void **state) {
    (void)state;
    const bpt_model_override override = {.input = {3, 16, 16}};
    net_fixture f = net_open_built_in("resnet20", &override, 16, (net_options){0}, NULL);
    bpt_network *all = cuda_net_open(device, &f, BPT_F32, learning);
    net_freeze(&f, "fc1", (net_options){0});
    bpt_network *frozen = cuda_net_open(device, &f, BPT_F32, learning);
    const bpt_network_memory a = bpt_network_memory_of(all), b = bpt_network_memory_of(frozen);
    assert_true(b.activations < a.activations / 4);
    assert_true(b.activation_gradients < a.activation_gradients / 4);
    bpt_network_free(frozen);
    bpt_network_free(all);
    net_close(&f);
}

static int run_cases(void) {
    static const gradient_sort sorts[] = {{"floats", test_floats}, {"bfloat16", test_halves}};
    return gradient_run("test_cuda_frozen, layers", sorts, sizeof sorts / sizeof *sorts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),         cmocka_unit_test(test_training_in_halves),
        cmocka_unit_test(test_as_evaluated),     cmocka_unit_test(test_gradients_that_are_set),
        cmocka_unit_test(test_part_that_learns), cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_memory),
    };
    const int missing = cuda_begin();
    if (missing) return missing;
    net_assert_ok(bpt_device_open("cuda", false, &device));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL) + run_cases();
    bpt_device_close(device);
    cuda_end();
    return failed;
}
