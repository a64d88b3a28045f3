/* Networks some of whose layers do not learn, against loops in double precision and against
 * themselves: for every kind of layer, frozen up to every layer that can be the first to learn.
 *
 * ctest: cpu TIMEOUT=180 */
#include "base/memory.h"
#include "inner/network/network.h"
#include "tests/inner/gradient_cases.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 7, N_STEPS = 3, SEED = 20270 };

/* All that an update may look at: norms of layers, of the whole gradient, and decay. */
static const bpt_learning learning = {.momentum = 0.9, .decay = 1e-2};
static const bpt_learning bounded = {
    .momentum = 0.9, .decay = 1e-2, .clip_norm = 0.5, .step_limit = 0.05};

/* ---- a network that is frozen up to a layer ---- */

static void freeze(net_fixture *f, size_t layer, bpt_learning l, bpt_value_type type) {
    f->labels[2] = -1;
    net_freeze(f, f->model->layers[layer].name, (net_options){.learning = l, .activations = type});
}

/* ---- gradients ---- */

static void check_gradient(net_fixture *f, size_t layer, bpt_value_type type) {
    double *expected = ref_zeros(f->n_weights), *terms = ref_zeros(f->n_weights);
    bpt_batch_result result;
    freeze(f, layer, learning, type);
    const ref_result ref = ref_network_f32(f->model, f->batch, f->pixels, f->labels, 6.0,
                                           f->weights, NULL, expected, terms);
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, 6.0f, &result));
    assert_int_equal(result.n_correct, ref.n_correct);
    if (!(fabs(result.loss_sum - ref.loss_sum) <= 1e-5 * (fabs(ref.loss_sum) + 1.0)))
        fail_msg("the loss is %.9g, not %.9g", result.loss_sum, ref.loss_sum);
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    gradient_check(f, gradient, expected, terms);
    for (size_t i = 0; i < bpt_model_frozen_elements(f->model); i++)
        assert_true(gradient[i] == 0.0f);
    free(gradient);
    free(terms);
    free(expected);
}

static void test_gradients(void **state) {
    gradient_each_first(*state, BATCH, BPT_F32, check_gradient);
}

/* ---- steps ---- */

static bool draws_or_counts(const bpt_model *m) {
    for (size_t i = m->n_frozen; i < m->n_layers; i++)
        if (m->layers[i].kind == &bpt_layer_dropout || m->layers[i].kind == &bpt_layer_batchnorm)
            return true;
    return false;
}

/* Before it learns, a network whose other layers compute alike in both says in a step what it says
 * in an evaluation, bit for bit. */
static void check_as_evaluated(net_fixture *f) {
    bpt_batch_result evaluated, trained;
    if (draws_or_counts(f->model)) return;
    net_assert_ok(bpt_network_evaluate(f->net, f->pixels, f->labels, &evaluated));
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, 6.0f, &trained));
    assert_true(evaluated.loss_sum == trained.loss_sum);
    assert_int_equal(evaluated.n_correct, trained.n_correct);
}

static void check_learnt(const net_fixture *f, const float *weights) {
    const bpt_segments *s = &f->model->segments;
    const size_t first = bpt_model_frozen_segments(f->model);
    net_assert_same_bits("frozen weights", f->weights, weights,
                         bpt_model_frozen_elements(f->model));
    for (size_t i = first; i < s->n; i++) {
        const size_t at = s->items[i].offset, bytes = s->items[i].count * sizeof(float);
        if (!s->items[i].role.decays) continue; /* a bias before a batch norm learns nothing */
        if (memcmp(f->weights + at, weights + at, bytes) == 0)
            fail_msg("%s has not learnt", s->items[i].name);
    }
}

/* The part that learns is the end of a vector, and setting it leaves the other. */
static void check_learned_part(net_fixture *f) {
    const size_t n = bpt_model_learned_elements(f->model), first = f->n_weights - n;
    float *part = net_floats(n);
    for (int which = BPT_VECTOR_WEIGHTS; which <= BPT_VECTOR_STATE_0; which++) {
        float *before = net_vector(f, (bpt_vector)which);
        net_assert_ok(bpt_network_get_learned(f->net, (bpt_vector)which, part));
        net_assert_same_bits("what learns", before + first, part, n);
        for (size_t i = 0; i < n; i++) part[i] = (float)i;
        net_assert_ok(bpt_network_set_learned(f->net, (bpt_vector)which, part));
        float *after = net_vector(f, (bpt_vector)which);
        net_assert_same_bits("what was set", part, after + first, n);
        net_assert_same_bits("what is frozen", before, after, first);
        free(after);
        free(before);
    }
    free(part);
}

/* But for the first, steps allocate nothing. */
static void train(net_fixture *f) {
    uint64_t allocations = 0;
    for (uint64_t step = 0; step < N_STEPS; step++) {
        bpt_batch_result result;
        if (step == 1) allocations = bpt_memory_allocations();
        bpt_network_set_draw(f->net, (bpt_draw){5, step, 100});
        net_assert_ok(
            bpt_network_train(f->net, f->pixels, f->labels, 0.02f, (float)(BATCH - 1), &result));
    }
    assert_int_equal(bpt_memory_allocations(), allocations);
}

static void check_steps(net_fixture *f, size_t layer, bpt_value_type type) {
    const bpt_learning *const rules[] = {&learning, &bounded};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        freeze(f, layer, *rules[r], type);
        check_as_evaluated(f);
        train(f);
        float *weights = net_vector(f, BPT_VECTOR_WEIGHTS);
        check_learnt(f, weights);
        net_assert_frozen(f, f->net);
        check_learned_part(f);
        free(weights);
    }
}

/* Whatever is set as the gradient of what is frozen, it counts in no norm: a step that is clipped
 * is as long as it may be. */
static void check_clipped(net_fixture *f, size_t layer, bpt_value_type type) {
    const bpt_learning clipped = {.clip_norm = 0.5};
    const bpt_segments *s = &f->model->segments;
    float *gradient = net_floats(f->n_weights);
    double squares = 0.0;
    freeze(f, layer, clipped, type);
    for (size_t i = 0; i < f->n_weights; i++) gradient[i] = (float)(1 + i % 13);
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_GRADIENTS, gradient));
    net_assert_ok(bpt_network_apply(f->net, 1.0f));
    float *weights = net_vector(f, BPT_VECTOR_WEIGHTS);
    check_learnt(f, weights);
    for (size_t i = bpt_model_frozen_segments(f->model); i < s->n; i++)
        for (size_t j = s->items[i].offset; j < s->items[i].offset + s->items[i].count; j++) {
            const double step = (double)weights[j] - (double)f->weights[j];
            if (!(s->items[i].role.running > 0.0f)) squares += step * step;
        }
    if (!(fabs(sqrt(squares) - clipped.clip_norm) <= 1e-4))
        fail_msg("a step that is clipped to %g has length %g", clipped.clip_norm, sqrt(squares));
    free(weights);
    free(gradient);
}

static void test_clipping(void **state) {
    gradient_each_first(*state, BATCH, BPT_F32, check_clipped);
}

static void test_steps(void **state) {
    gradient_each_first(*state, BATCH, BPT_F32, check_steps);
}

static void test_steps_bf16(void **state) {
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    gradient_each_first(*state, BATCH, BPT_BF16, check_steps);
}

int main(void) {
    const gradient_sort sorts[] = {
        {"gradients", test_gradients},
        {"clipping", test_clipping},
        {"steps", test_steps},
        {"steps in bfloat16", test_steps_bf16},
    };
    return gradient_run("frozen", sorts, sizeof sorts / sizeof *sorts);
}
