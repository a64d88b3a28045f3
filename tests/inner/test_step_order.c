/* Edges of a training step: in every order that they allow, the step gives the same bits. Thread
 * sanitizers cannot tell, since they do not see what oneDNN's generated code reads and writes.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/random.h"
#include "inner/loops/weight_copies.h"
#include "inner/network/network_private.h"
#include "tests/inner/conv_fixture.h"
#include "tests/inner/part_fixture.h"
#include "tests/inner/processor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20262, N_RANDOM = 24 };

static const unsigned TRAINING =
    BPT_PHASE_FORWARD | BPT_PHASE_TRAINING | BPT_PHASE_LOSS | BPT_PHASE_BACKWARD | BPT_PHASE_UPDATE;
static const unsigned GRADIENT =
    BPT_PHASE_FORWARD | BPT_PHASE_TRAINING | BPT_PHASE_LOSS | BPT_PHASE_BACKWARD | BPT_PHASE_REDUCE;

/* Changes of layout before and after each kind of layer, weights that backward reads in another
 * layout, gradients in several ranges. */
static const char *const models[] = {
    "{name: t, input: [3, 9, 11], classes: 7, layers: ["
    "conv: {name: a, filters: 17, kernel: 3, pad: 1}, relu, maxpool: {kernel: 3, stride: 2}, "
    "conv: {name: b, filters: 32, kernel: 3, pad: 1}, relu, conv: {name: c, filters: 16, kernel: "
    "2}, "
    "fc: {name: d, outputs: 300}, relu, fc: {name: e, outputs: 70}, "
    "conv: {name: f, filters: classes, kernel: 1}]}",
    "{name: t, input: [2, 7, 7], classes: 5, layers: [relu, maxpool: {name: p, kernel: 2, stride: "
    "1}, "
    "fc: {name: a, outputs: 150}, conv: {name: b, filters: 20, kernel: 1}, relu, "
    "fc: {name: c, outputs: classes, bias: false}]}",
};

typedef enum { IN_ORDER, LAST_FIRST, RANDOM } preference;

static uint32_t *keys_of(size_t n, preference p, uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, id);
    uint32_t *keys = malloc(n * sizeof *keys);
    assert_non_null(keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = p == RANDOM     ? bpt_random_u32(&r)
                  : p == IN_ORDER ? (uint32_t)i
                                  : (uint32_t)(n - i);
    return keys;
}

static bool is_ready(const bpt_builder *b, size_t i, unsigned phases, const bool *done) {
    if (done[i] || !(b->tasks[i].phase & phases)) return false;
    for (size_t d = 0; d < b->tasks[i].after.n; d++) {
        const uint32_t before = b->tasks[i].after.ids[d];
        if (!done[before] && b->tasks[before].phase & phases) return false;
    }
    return true;
}

/* Runs the tasks of some phases on this thread; of those that may run, the least key first. */
static void run_in_order_of(bpt_network *net, unsigned phases, const uint32_t *keys) {
    const bpt_builder *b = &net->builder;
    bool *done = calloc(b->n_tasks, sizeof *done);
    assert_non_null(done);
    for (;;) {
        size_t next = b->n_tasks;
        for (size_t i = 0; i < b->n_tasks; i++)
            if (is_ready(b, i, phases, done) && (next == b->n_tasks || keys[i] < keys[next]))
                next = i;
        if (next == b->n_tasks) break;
        net_assert_ok(b->tasks[next].fn(b->tasks[next].arg, 0));
        done[next] = true;
    }
    for (size_t i = 0; i < b->n_tasks; i++)
        assert_true(done[i] == ((b->tasks[i].phase & phases) != 0));
    free(done);
}

/* What is left from the step before must not matter. */
static void spoil_activations(bpt_network *net) {
    static const bpt_block blocks[] = {BPT_BLOCK_ACTIVATIONS, BPT_BLOCK_PARTIALS,
                                       BPT_BLOCK_GRADIENTS};
    for (int i = 0; i < 3; i++) {
        float *x = (float *)(void *)net->blocks.base[blocks[i]];
        for (size_t j = 0; j < net->blocks.bytes[blocks[i]] / sizeof *x; j++) x[j] = 1e3f;
    }
}

/* Squares of ranges are left too, of gradients that are not those of the step. */
static void spoil_squares(bpt_network *net) {
    if (!net->squares) return;
    uint32_t *keys = keys_of(net->builder.n_tasks, IN_ORDER, 0);
    run_in_order_of(net, BPT_PHASE_SQUARES, keys);
    free(keys);
    for (size_t s = 0; s < net->model->segments.n; s++) net->squares[s] = (bpt_squares){1e3, 1e3};
    if (net->learning.clip_norm > 0.0) net->clip_scale = 1e3f;
}

static void step(net_fixture *f, unsigned phases, preference p, uint64_t id) {
    uint32_t *keys = keys_of(f->net->builder.n_tasks, p, id);
    bpt_batch_result result;
    float *zero = calloc(f->n_weights, sizeof *zero);
    assert_non_null(zero);
    /* so that the caller's blocks are where they should be */
    net_assert_ok(bpt_network_evaluate(f->net, f->pixels, f->labels, &result));
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_WEIGHTS, f->weights));
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_STATE_0, zero));
    f->net->step.rate = 0.25f;
    f->net->step.denominator = (float)f->batch;
    f->net->step.trains = true;
    spoil_activations(f->net);
    spoil_squares(f->net);
    if (phases & BPT_PHASE_SQUARES) /* of gradients that are set: any will do */
        net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_GRADIENTS, f->weights));
    run_in_order_of(f->net, phases, keys);
    free(zero);
    free(keys);
}

static void check_orders(net_fixture *f, unsigned phases, bpt_vector result) {
    step(f, phases, IN_ORDER, 0);
    float *expected = net_vector(f, result);
    for (uint64_t i = 0; i <= N_RANDOM; i++) {
        step(f, phases, i == 0 ? LAST_FIRST : RANDOM, i);
        float *x = net_vector(f, result);
        net_assert_same_bits("vector", expected, x, f->n_weights);
        free(x);
    }
    free(expected);
}

/* Where updates need norms, sums and updates are tasks apart. With a bound on the whole gradient
 * every update is after every gradient, without it not. */
static void check_orders_with_norms(double clip_norm) {
    const net_options options = {1,
                                 {.optimizer = &bpt_optimizer_lars,
                                  .momentum = 0.9,
                                  .decay = 1e-2,
                                  .eta = 0.1,
                                  .clip_norm = clip_norm},
                                 SEED,
                                 BPT_F32};
    const unsigned training =
        (TRAINING & ~(unsigned)BPT_PHASE_UPDATE) | BPT_PHASE_SUM | BPT_PHASE_APPLY;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        net_fixture f = net_open(models[i], 7, options);
        check_orders(&f, training, BPT_VECTOR_WEIGHTS);
        check_orders(&f, BPT_PHASE_SQUARES | BPT_PHASE_APPLY, BPT_VECTOR_WEIGHTS);
        net_close(&f);
    }
}

static void test_orders_with_norms(void **state) {
    (void)state;
    check_orders_with_norms(0.0);
    check_orders_with_norms(0.5);
}

/* Every kind of layer, many of whose buffers share memory; in evaluation other tasks make other
 * orders of them. */
static void check_orders_of_all_kinds(bpt_value_type type) {
    static const unsigned EVALUATION = BPT_PHASE_FORWARD | BPT_PHASE_INFERENCE | BPT_PHASE_LOSS;
    net_fixture f = net_open(net_mixed, 7, (net_options){1, {.momentum = 0.9f}, SEED, type});
    check_orders(&f, TRAINING, BPT_VECTOR_WEIGHTS);
    check_orders(&f, GRADIENT, BPT_VECTOR_GRADIENTS);
    double expected = 0.0;
    for (uint64_t i = 0; i <= N_RANDOM; i++) {
        double sum = 0.0;
        step(&f, EVALUATION, i == 0 ? IN_ORDER : i == 1 ? LAST_FIRST : RANDOM, i);
        for (size_t c = 0; c < f.net->builder.n_chunks; c++)
            sum += f.net->chunks[c].result.loss_sum;
        if (i == 0) expected = sum;
        assert_true(sum == expected);
    }
    net_close(&f);
}

static void test_orders_of_all_kinds(void **state) {
    (void)state;
    check_orders_of_all_kinds(BPT_F32);
}

static void check_orders_of_models(bpt_value_type type) {
    const net_options options = {1, {.momentum = 0.9f, .decay = 1e-2f}, SEED, type};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        net_fixture f = net_open(models[i], 7, options);
        check_orders(&f, TRAINING, BPT_VECTOR_WEIGHTS);
        check_orders(&f, GRADIENT, BPT_VECTOR_GRADIENTS);
        net_close(&f);
    }
}

static void test_orders(void **state) {
    (void)state;
    check_orders_of_models(BPT_F32);
}

/* ---- tiles and cuts ---- */

/* More workers than chunks: a chunk has tiles, and what is made of the whole chunk waits for all of
 * them. A batch norm that adds and rectifies, an activation that three read. */
static const char tiled[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: a, filters: 32, kernel: 3, pad: 1}, batchnorm, relu: {name: r}, "
    "conv: {name: b, filters: 48, kernel: 3, pad: 1, bias: false}, relu, "
    "conv: {name: g, filters: 32, groups: 2, kernel: 3, pad: 1}, batchnorm: {name: n}, "
    "add: {name: s, input: [n, r]}, relu: {name: q}, "
    "conv: {name: c, filters: 32, kernel: 3, stride: 2, pad: 1}, "
    "conv: {name: d, input: q, filters: 32, kernel: 1, stride: 2}, "
    "concat: {name: j, input: [c, d]}, batchnorm, "
    "fc: {name: f, outputs: 70}, relu, fc: {outputs: classes}]}";

static void check_orders_of_tiles(const char *text, int64_t batch, bpt_value_type type,
                                  bpt_cut cut) {
    const net_options options = {8, {.momentum = 0.9f, .decay = 1e-2f}, SEED, type};
    const net_cuts cuts = {.step = {cut, cut, cut}};
    net_fixture f = net_open_cut(text, batch, options, cuts);
    assert_true(f.net->builder.n_tiles > f.net->builder.n_chunks);
    check_orders(&f, TRAINING, BPT_VECTOR_WEIGHTS);
    check_orders(&f, GRADIENT, BPT_VECTOR_GRADIENTS);
    net_close(&f);
}

static void check_orders_of_cuts(bpt_value_type type) {
    static const bpt_cut cuts[] = {
        {0}, {.samples = 1}, {.samples = 2}, {.channels = 2}, {.rows = 2}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        check_orders_of_tiles(tiled, 7, type, cuts[i]);
    check_orders_of_tiles(net_mixed, 9, type, (bpt_cut){0}); /* products are turned from 8 on */
}

static void test_orders_of_cuts(void **state) {
    (void)state;
    check_orders_of_cuts(BPT_F32);
    if (bpt_cpu_bf16() != BPT_BF16_NONE) check_orders_of_cuts(BPT_BF16);
}

/* Weights' gradients of the whole batch, in ranges of filters, behind what is gathered. */
static void test_orders_of_gathered_gradients(void **state) {
    (void)state;
    static const char gathered[] =
        "{name: t, input: [3, 4, 3], classes: 5, layers: ["
        "conv: {name: a, filters: 256, kernel: 1}, relu, "
        "conv: {name: b, filters: 80, kernel: 3, pad: 1}, relu, fc: {outputs: classes}]}";
    const net_options options = {.n_workers = 8, .seed = SEED};
    net_fixture f = net_open(gathered, 7, options);
    if (conv_has_avx512()) assert_true(conv_tasks(&f, "b", "gather") > 0);
    net_close(&f);
    check_orders_of_tiles(gathered, 7, BPT_F32, (bpt_cut){0});
    if (bpt_cpu_bf16() != BPT_BF16_NONE) check_orders_of_tiles(gathered, 7, BPT_BF16, (bpt_cut){0});
}

/* With copies of the weights in every step, and reorders that change the type. */
static void test_orders_in_bf16(void **state) {
    (void)state;
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    check_orders_of_all_kinds(BPT_BF16);
    check_orders_of_models(BPT_BF16);
}

/* Of a layer of whole blocks both passes' copies are made by one task; not where matrices have
 * instructions (AMX), whose kernels want other orders. */
static void test_copies_of_weights_are_one_task(void **state) {
    (void)state;
    if (bpt_cpu_bf16() != BPT_BF16_NATIVE || !bpt_copy_weights_native() || processor_has_amx())
        skip();
    net_fixture f = net_open(models[0], 7, (net_options){1, {.momentum = 0.9f}, SEED, BPT_BF16});
    const bpt_builder *b = &f.net->builder;
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_task_info info = b->tasks[i].info;
        n += strcmp(info.label, "c") == 0 && strcmp(info.kind, "reorder weights") == 0;
    }
    assert_int_equal(n, 1);
    net_close(&f);
}

/* ---- parts ---- */

static const char parted[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: a, filters: 17, kernel: 3, pad: 1}, batchnorm, relu: {name: r}, "
    "conv: {name: b, filters: 17, kernel: 3, pad: 1}, batchnorm: {name: n}, "
    "add: {name: s, input: [n, r]}, relu, dropout: {name: d, rate: 0.25}, "
    "conv: {name: c, filters: 16, kernel: 3}, relu: {name: q}, "
    "conv: {name: e, input: d, filters: 16, kernel: 3}, batchnorm: {name: m}, "
    "add: {name: t, input: [q, m]}, "
    "fc: {name: f, outputs: 70}, relu, fc: {outputs: classes}]}";

/* Both halves of a head's step, each in an order of its own. */
static float *step_head(const net_fixture *f, part_fixture *p, const float *gradient,
                        preference order, uint64_t id, float *border) {
    bpt_network *net = p->head;
    const size_t n = p->head_model->segments.n_elements;
    uint32_t *keys = keys_of(net->builder.n_tasks, order, id);
    float *x = net_floats(n);
    net_assert_ok(bpt_network_forward(net, f->pixels, f->labels, (float)f->batch));
    spoil_activations(net);
    run_in_order_of(net, BPT_PHASE_FORWARD | BPT_PHASE_TRAINING, keys);
    memcpy(border, p->from.values, p->from.bytes);
    memcpy(p->from.gradient, gradient, p->from.bytes);
    run_in_order_of(net, BPT_PHASE_BACKWARD | BPT_PHASE_REDUCE, keys);
    net_assert_ok(bpt_network_get(net, BPT_VECTOR_GRADIENTS, x));
    free(keys);
    return x;
}

static float *step_tail(const net_fixture *f, part_fixture *p, const float *values,
                        preference order, uint64_t id, float *border) {
    bpt_network *net = p->tail;
    const size_t n = p->tail_model->segments.n_elements;
    uint32_t *keys = keys_of(net->builder.n_tasks, order, id);
    float *x = net_floats(n);
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(net, values, f->labels, (float)f->batch, &result));
    spoil_activations(net);
    run_in_order_of(net, GRADIENT, keys);
    memcpy(border, p->to.gradient, p->to.bytes);
    net_assert_ok(bpt_network_get(net, BPT_VECTOR_GRADIENTS, x));
    free(keys);
    return x;
}

typedef float *(*part_step)(const net_fixture *f, part_fixture *p, const float *in,
                            preference order, uint64_t id, float *border);

static void check_orders_of_part(const net_fixture *f, part_fixture *p, const bpt_model *model,
                                 part_step run) {
    const size_t n = p->from.bytes / sizeof(float);
    float *in = net_floats(n), *expected_border = net_floats(n), *border = net_floats(n);
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 999);
    for (size_t i = 0; i < n; i++) in[i] = bpt_random_normal(&r);
    float *expected = run(f, p, in, IN_ORDER, 0, expected_border);
    for (uint64_t i = 0; i <= N_RANDOM; i++) {
        float *x = run(f, p, in, i == 0 ? LAST_FIRST : RANDOM, i, border);
        net_assert_same_bits("gradients", expected, x, model->segments.n_elements);
        net_assert_same_bits("border", expected_border, border, n);
        free(x);
    }
    free(expected);
    free(border);
    free(expected_border);
    free(in);
}

/* What is at the border stays until the caller is done with it. */
static void test_orders_of_parts(void **state) {
    (void)state;
    const net_options options = {.n_workers = 1, .seed = SEED};
    net_fixture f = net_open(parted, 7, options);
    size_t n = 0;
    for (size_t i = 0; i < f.model->n_layers; i++) {
        if (bpt_model_border(f.model, i, NULL) != BPT_BORDER_POSSIBLE) continue;
        part_fixture p = part_open(&f, i, options);
        check_orders_of_part(&f, &p, p.head_model, step_head);
        check_orders_of_part(&f, &p, p.tail_model, step_tail);
        part_close(&p);
        n++;
    }
    assert_true(n > 5);
    net_close(&f);
}

/* The runner above is only as good as the pool's step. */
static void test_same_as_the_pool(void **state) {
    (void)state;
    net_fixture f =
        net_open(models[0], 7, (net_options){2, {.momentum = 0.9f, .decay = 1e-2f}, SEED, BPT_F32});
    bpt_batch_result result;
    step(&f, TRAINING, RANDOM, 3);
    float *expected = net_vector(&f, BPT_VECTOR_WEIGHTS);
    net_fixture g =
        net_open(models[0], 7, (net_options){2, {.momentum = 0.9f, .decay = 1e-2f}, SEED, BPT_F32});
    net_assert_ok(bpt_network_train(g.net, g.pixels, g.labels, 0.25f, 7.0f, &result));
    float *x = net_vector(&g, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", expected, x, f.n_weights);
    free(x);
    free(expected);
    net_close(&g);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_orders_of_all_kinds),
        cmocka_unit_test(test_orders_of_cuts),
        cmocka_unit_test(test_orders_of_gathered_gradients),
        cmocka_unit_test(test_orders_in_bf16),
        cmocka_unit_test(test_copies_of_weights_are_one_task),
        cmocka_unit_test(test_orders_with_norms),
        cmocka_unit_test(test_orders_of_parts),
        cmocka_unit_test(test_same_as_the_pool),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
