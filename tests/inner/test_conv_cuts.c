/* Networks whose convolutions are cut: the same bits as whole ones where parts only share the work,
 * right values where they add up otherwise, and the same bits for any number of workers always.
 *
 * ctest: cpu TIMEOUT=120 */
#include "base/memory.h"
#include "inner/network/network_private.h"
#include "tests/base/near.h"
#include "tests/inner/conv_fixture.h"
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

enum { SEED = 20272 };

/* Strides that leave rows over, dilation, one and several groups, a depthwise layer, a ReLU behind
 * and a layer that two others read. */
#define NET_ODD(h)                                                                                 \
    "{name: t, input: [3, 17, 13], classes: 5, layers: ["                                          \
    "conv: {name: a, filters: 32, kernel: 5, pad: 2}, relu, "                                      \
    "conv: {name: b, filters: 48, kernel: 3, stride: 2, pad: 1}, relu: {name: r}, "                \
    "conv: {name: c, filters: 48, kernel: 3, pad: 2, dilation: 2, bias: false}, "                  \
    "conv: {name: d, filters: 48, groups: 48, kernel: 3, pad: 1}, "                                \
    "conv: {name: e, input: r, filters: 48, kernel: 1}, "                                          \
    "add: {name: s, input: [d, e]}, relu, "                                                        \
    "conv: {name: g, filters: 96, groups: 3, kernel: 3}, "                                         \
    "conv: {name: h, filters: 40, " h                                                              \
    "}, "                                                                                          \
    "fc: {outputs: classes}]}"
static const char net_odd[] = NET_ODD("kernel: [3, 1], stride: [3, 2]");
static const char net_less_odd[] = NET_ODD("kernel: [3, 1]");

/* Its second convolution suits Winograd's algorithm, 36 patches a sample; the first does not. */
static const char net_winograd[] =
    "{name: t, input: [3, 24, 22], classes: 5, layers: ["
    "conv: {name: a, filters: 32, kernel: 3, pad: 1}, relu, "
    "conv: {name: b, filters: 48, kernel: 3, pad: 1}, relu, "
    "fc: {outputs: classes}]}";

typedef struct {
    unsigned n_workers;
    bpt_value_type type;
    net_cuts cuts;
} setting;

static setting set(unsigned n_workers, bpt_value_type type, bpt_cut forward, bpt_cut data,
                   bpt_cut weights) {
    return (setting){n_workers, type, {.step = {forward, data, weights}}};
}

static net_fixture open_cut(const char *text, int64_t batch, setting s) {
    const net_options o = {.n_workers = s.n_workers,
                           .seed = SEED,
                           .learning = {.momentum = 0.9},
                           .activations = s.type};
    return net_open_cut(text, batch, o, s.cuts);
}

/* Weights after some steps. @return shape [n_weights]; free() */
static float *train(const char *text, int64_t batch, setting s) {
    net_fixture f = open_cut(text, batch, s);
    bpt_batch_result result;
    for (int i = 0; i < 3; i++)
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.05f, (float)batch, &result));
    float *weights = net_vector(&f, BPT_VECTOR_WEIGHTS);
    net_close(&f);
    return weights;
}

static size_t n_weights(const char *text) {
    bpt_model *model = net_parse(text);
    const size_t n = model->segments.n_elements;
    bpt_model_free(model);
    return n;
}

static void check_same(const char *what, const char *text, int64_t batch, setting x, setting y) {
    float *of_x = train(text, batch, x), *of_y = train(text, batch, y);
    net_assert_same_bits(what, of_x, of_y, n_weights(text));
    free(of_y);
    free(of_x);
}

static const bpt_cut whole;

/* ---- the same bits ---- */

/* For strides that are unlike, oneDNN 3 has kernels of matrix products on AVX2, which keep no bits.
 */
static const char *net_in_one_order(bpt_value_type type) {
    net_fixture f = open_cut(net_odd, 1, set(1, type, whole, whole, whole));
    const bool products = conv_is_of_products(&f, "h");
    net_close(&f);
    return products ? net_less_odd : net_odd;
}

static void check_like_whole(bpt_value_type type, int64_t batch, bpt_cut forward, bpt_cut data,
                             bpt_cut weights) {
    check_same("cut and whole", net_in_one_order(type), batch, set(1, type, whole, whole, whole),
               set(1, type, forward, data, weights));
}

/* One sample a tile: a range of channels of the weights' gradient is no partial sum. */
/* The kernels of AVX-512 (1x1 ones of few channels) add up the terms of a value in one order,
 * whatever the part; those of AVX2 fit it to the number of channels in two of the steps. */
static void test_channels_give_the_bits_of_the_whole(void **state) {
    (void)state;
    for (int64_t n = 2; n <= 3; n++) {
        const bpt_cut cut = {.channels = n};
        for (int64_t batch = 1; batch <= 2; batch++) {
            check_like_whole(BPT_F32, batch, whole, cut, whole);
            if (!conv_has_avx512()) continue;
            check_like_whole(BPT_F32, batch, cut, whole, whole);
            check_like_whole(BPT_F32, batch, whole, whole, cut);
            check_like_whole(BPT_F32, batch, cut, cut, cut);
        }
    }
}

static void test_samples_give_the_bits_of_the_whole(void **state) {
    (void)state;
    check_like_whole(BPT_F32, 11, (bpt_cut){.samples = 1}, (bpt_cut){.samples = 2}, whole);
    check_like_whole(BPT_F32, 11, (bpt_cut){.samples = 1}, (bpt_cut){.channels = 3}, whole);
}

static size_t forward_tasks(bpt_cut cut, int64_t batch) {
    net_fixture f = open_cut(net_winograd, batch, set(1, BPT_F32, cut, whole, whole));
    const size_t n = conv_tasks(&f, "b", "forward");
    net_close(&f);
    return n;
}

static void test_samples_of_a_layer_that_suits_winograd_are_tasks(void **state) {
    (void)state;
    assert_int_equal(forward_tasks(whole, 11), 4);
    assert_int_equal(forward_tasks((bpt_cut){.samples = 1}, 11), 11);
}

/* By Winograd's algorithm where there are kernels of it, else directly. */
static void test_parts_of_a_layer_that_suits_winograd(void **state) {
    (void)state;
    const bpt_cut two = {.channels = 2}, three = {.channels = 3}, one = {.samples = 1};
    const setting plain = set(1, BPT_F32, whole, whole, whole);
    for (int64_t batch = 1; batch <= 11; batch += 5) {
        check_same("channels", net_winograd, batch, plain, set(1, BPT_F32, three, two, whole));
        check_same("samples", net_winograd, batch, plain, set(1, BPT_F32, one, one, whole));
    }
    check_same("channels of weights", net_winograd, 4, plain, set(1, BPT_F32, whole, whole, three));
    for (unsigned n_workers = 2; n_workers <= 3; n_workers++) {
        check_same("workers", net_winograd, 11, plain,
                   set(n_workers, BPT_F32, whole, whole, whole));
        check_same("workers, parts", net_winograd, 11, set(1, BPT_F32, three, two, three),
                   set(n_workers, BPT_F32, three, two, three));
    }
}

static void test_bf16_is_cut_too(void **state) {
    (void)state;
    if (!conv_has_avx512()) skip();
    const bpt_cut cut = {.channels = 2};
    check_like_whole(BPT_BF16, 1, cut, cut, cut);
    check_like_whole(BPT_BF16, 7, (bpt_cut){.samples = 1}, cut, whole);
}

static const bpt_cut some_cuts[] = {
    {.channels = 3}, {.rows = 2}, {.rows = 3}, {.samples = 1}, {.channels = 2, .rows = 2}};

static void test_workers_change_no_bit(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof some_cuts / sizeof *some_cuts; i++)
        for (unsigned n_workers = 2; n_workers <= 4; n_workers += 2) {
            const bpt_cut c = some_cuts[i];
            check_same("one worker and several", net_odd, 6, set(1, BPT_F32, c, c, c),
                       set(n_workers, BPT_F32, c, c, c));
        }
}

/* ---- right values ---- */

static void check_gradient(bpt_cut forward, bpt_cut data, bpt_cut weights, int64_t batch) {
    net_fixture f = open_cut(net_odd, batch, set(2, BPT_F32, forward, data, weights));
    const float denominator = (float)batch;
    double *ref = ref_zeros(f.n_weights);
    bpt_batch_result result;
    const char *name;
    ref_network_f32(f.model, batch, f.pixels, f.labels, denominator, f.weights, NULL, ref, NULL);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, denominator, &result));
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
    const double error = ref_segments_error(&f.model->segments, gradient, ref, &name);
    if (!(error <= 2e-5)) fail_msg("the gradient of %s is wrong by %g", name, error);
    free(gradient);
    free(ref);
    net_close(&f);
}

static void test_every_cut_gives_the_gradient(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof some_cuts / sizeof *some_cuts; i++)
        for (int64_t batch = 1; batch <= 6; batch += 5) {
            const bpt_cut c = some_cuts[i];
            check_gradient(c, whole, whole, batch);
            check_gradient(whole, c, whole, batch);
            check_gradient(whole, whole, c, batch);
            check_gradient(c, c, c, batch);
        }
}

/* ---- what is cut ---- */

static void check_tasks(const char *label, bpt_cut cut, int64_t batch, size_t n) {
    net_fixture f = open_cut(net_odd, batch, set(1, BPT_F32, cut, cut, cut));
    for (int step = 0; step < BPT_N_CONV_STEPS; step++)
        if (strcmp(label, "a") != 0 || step != BPT_CONV_BACKWARD_DATA)
            assert_int_equal(conv_tasks(&f, label, bpt_conv_step_name((bpt_conv_step)step)), n);
    net_close(&f);
}

static void test_parts_are_tasks(void **state) {
    (void)state;
    check_tasks("a", (bpt_cut){.channels = 2}, 2, 4);
    check_tasks("b", (bpt_cut){.channels = 2}, 2, 4);
    check_tasks("c", (bpt_cut){.channels = 3}, 1, 3);
    check_tasks("d", (bpt_cut){.channels = 3}, 1, 3);
    check_tasks("e", (bpt_cut){.channels = 3}, 2, 6);
    check_tasks("e", (bpt_cut){.samples = 1}, 8, 8);
    check_tasks("e", (bpt_cut){.channels = 3}, 8, 24);
    if (!conv_has_avx512())
        return; /* else there are no kernels for channels last, so none for rows */
    check_tasks("c", (bpt_cut){.rows = 3}, 2, 6);
    check_tasks("e", (bpt_cut){.rows = 3}, 1, 3);
}

/* 48 channels are three blocks, 40 are no whole number of them; rows and channels at once would
 * need parts that no kernel reads in place. */
static void test_impossible_cuts_leave_the_whole(void **state) {
    (void)state;
    check_tasks("c", (bpt_cut){.channels = 4}, 1, 1);
    check_tasks("c", (bpt_cut){.rows = 64}, 1, 1);
    check_tasks("c", (bpt_cut){.channels = 2, .rows = 2}, 1, 1);
    net_fixture f = open_cut(net_odd, 1, set(1, BPT_F32, (bpt_cut){.channels = 2}, whole, whole));
    assert_int_equal(conv_tasks(&f, "h", "forward"), 1);
    assert_int_equal(bpt_model_set_cut(f.model, "s", BPT_CONV_FORWARD, whole), BPT_EUSAGE);
    net_close(&f);
}

/* ---- partial gradients ---- */

static void test_channels_need_no_partial_gradients(void **state) {
    (void)state;
    const bpt_cut cut = {.channels = 2};
    net_fixture f = open_cut(net_odd, 1, set(1, BPT_F32, whole, whole, cut));
    for (size_t s = 0; s < f.model->segments.n; s++)
        if (strncmp(f.model->segments.items[s].name, "fc", 2) != 0)
            assert_int_equal(f.net->builder.weights[s].n_partials, 1);
    net_close(&f);
}

/* ---- costs ---- */

typedef struct {
    const char *label;
    uint64_t ns;
} forward_sum;

static void add_forward(void *context, bpt_task_info info, uint64_t ns) {
    forward_sum *s = context;
    if (strcmp(info.label, s->label) == 0 && strcmp(info.kind, "forward") == 0) s->ns += ns;
}

/* 48 channels in two ranges are one block and two: the larger one counts, of each sample. */
static void check_largest_of_two(const net_fixture *f, const bpt_cost_table *table) {
    size_t i = 0;
    const bpt_cut_note *note = f->net->builder.cuts;
    while (note[i].problem.k != 48 || note[i].step != BPT_CONV_FORWARD) i++;
    forward_sum sum = {.label = note[i].layer->name};
    bpt__visit_step(f->net, add_forward, &sum);
    const uint64_t ns = bpt_cost_table_find(table, BPT_CONV_FORWARD, &note[i].problem, note[i].cut);
    assert_true(sum.ns > 0);
    assert_near((double)ns, (double)sum.ns * 2 / 3 / (double)f->batch, 1.0);
}

static void test_costs_of_a_network_are_noted(void **state) {
    (void)state;
    const bpt_cut cut = {.channels = 2};
    net_fixture f = open_cut(net_odd, 2, set(1, BPT_F32, cut, cut, cut));
    bpt_cost_table table = {.workers = 4};
    bpt_batch_result result;
    net_assert_ok(bpt_network_note_costs(f.net, &table));
    assert_int_equal(table.n, 0); /* what did not run has no cost: a file with 0 is refused */
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.0f, 2.0f, &result));
    net_assert_ok(bpt_network_note_costs(f.net, &table));
    assert_int_equal(table.n, 7 * 3 - 1); /* the first has no backward data */
    check_largest_of_two(&f, &table);
    assert_int_equal(table.costs[0].problem.k, 32);
    assert_int_equal(table.costs[0].cut.samples, 1);
    assert_int_equal(table.costs[0].cut.channels, 2);
    assert_true(table.costs[0].ns > 0);
    net_assert_ok(bpt_network_note_costs(f.net, &table));
    assert_int_equal(table.n, 7 * 3 - 1);
    bpt_cost_table_clear(&table);
    net_close(&f);
}

/* A network does what its model's costs say. */
static void test_costs_decide(void **state) {
    (void)state;
    bpt_cost_table table = {.workers = 2};
    net_fixture f = open_cut(net_odd, 1, set(1, BPT_F32, whole, whole, whole));
    const bpt_conv_problem p =
        f.net->builder.cuts[2].problem; /* b, after forward and weights of a */
    assert_int_equal(p.k, 48);
    net_close(&f);
    net_assert_ok(bpt_cost_table_add(&table, &(bpt_cost){BPT_CONV_FORWARD, p, {1, 1, 1}, 100}));
    net_assert_ok(bpt_cost_table_add(&table, &(bpt_cost){BPT_CONV_FORWARD, p, {1, 2, 1}, 60}));
    f = open_cut(net_odd, 1, (setting){1, BPT_F32, {.costs = &table}});
    assert_int_equal(conv_tasks(&f, "b", "forward"), 2);
    assert_int_equal(conv_tasks(&f, "b", "backward weights"), 1);
    assert_int_equal(bpt_network_n_cuts(f.net), 1);
    net_close(&f);
    bpt_cost_table_clear(&table);
}

/* What was said of all convolutions can be taken back. */
static void test_all_are_cut_alike(void **state) {
    (void)state;
    const bpt_cut cut = {.channels = 2};
    net_fixture f = open_cut(net_odd, 1, set(1, BPT_F32, whole, whole, whole));
    assert_int_equal(bpt_network_n_cuts(f.net), 0);
    bpt_network *other;
    const bpt_learning learning = bpt_network_learning(f.net);
    bpt_model_set_cuts(f.model, &cut);
    net_assert_ok(bpt_network_create(f.model, 1, BPT_F32, learning, f.pool, &other));
    assert_true(bpt_network_n_cuts(other) > 10);
    bpt_network_free(other);
    bpt_model_set_cuts(f.model, NULL);
    for (size_t i = 0; i < f.model->n_layers; i++) {
        if (f.model->layers[i].kind != &bpt_layer_conv) continue;
        const bpt_conv_config *config = f.model->layers[i].config;
        for (int step = 0; step < BPT_N_CONV_STEPS; step++)
            assert_false(config->cut_is_given[step]);
    }
    net_assert_ok(bpt_network_create(f.model, 1, BPT_F32, learning, f.pool, &other));
    assert_int_equal(bpt_network_n_cuts(other), 0);
    bpt_network_free(other);
    net_close(&f);
}

/* ---- a small network: chunks, memory ---- */

static const char net_small[] =
    "{name: t, input: [1, 4, 4], classes: 3, layers: ["
    "conv: {name: a, filters: 32, kernel: 3, pad: 1}, relu, "
    "conv: {name: b, filters: 32, kernel: 3}, fc: {outputs: classes}]}";

/* A batch of 6 is in chunks of 1, 2, 1 and 2 samples: what is told of parts is of the largest. */
static void test_unlike_chunks(void **state) {
    (void)state;
    const bpt_cut cut = {.channels = 2};
    net_fixture f = open_cut(net_small, 6, set(1, BPT_F32, cut, cut, cut));
    assert_int_equal(f.net->builder.n_chunks, 4);
    assert_int_equal(f.net->builder.n_cuts, 5);
    for (size_t i = 0; i < f.net->builder.n_cuts; i++)
        assert_int_equal(f.net->builder.cuts[i].problem.n, 2);
    net_close(&f);
}

/* 8 channels are half a block: what cannot be cut is told to be whole, whatever was asked for. */
static void test_what_cannot_be_cut(void **state) {
    (void)state;
    static const char text[] =
        "{name: t, input: [1, 4, 4], classes: 3, layers: ["
        "conv: {name: a, filters: 8, kernel: 3, pad: 1}, relu, "
        "conv: {name: b, filters: 8, kernel: 3}, fc: {outputs: classes}]}";
    const bpt_cut cut = {.channels = 2};
    net_fixture f = open_cut(text, 2, set(1, BPT_F32, cut, cut, cut));
    assert_int_equal(f.net->builder.n_cuts, 5);
    for (size_t i = 0; i < f.net->builder.n_cuts; i++)
        assert_int_equal(f.net->builder.cuts[i].cut.channels, 1);
    assert_int_equal(bpt_network_n_cuts(f.net), 0);
    net_close(&f);
}

/* Every allocation fails once. */
static void test_no_memory(void **state) {
    (void)state;
    const bpt_cut cut = {.channels = 2};
    const net_cuts cuts = {.step = {cut, cut, cut}};
    const bpt_learning learning = {.momentum = 0.9};
    bpt_model *model = net_parse(net_small);
    bpt_pool *pool = net_pool(1);
    bpt_network *net = NULL;
    int64_t n = 0;
    net_cut(model, &cuts);
    const uint64_t live = bpt_memory_live();
    for (;; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_network_create(model, 1, BPT_F32, learning, pool, &net);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        assert_null(net);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_in_range(n, 100, 5000);
    assert_int_equal(net->builder.n_cuts, 5);
    for (size_t i = 0; i < net->builder.n_cuts; i++)
        assert_int_equal(net->builder.cuts[i].cut.channels, 2);
    bpt_network_free(net);
    bpt_pool_free(pool);
    bpt_model_free(model);
}

static void test_a_step_allocates_nothing(void **state) {
    (void)state;
    const bpt_cut cut = {.channels = 2};
    net_fixture f = open_cut(net_odd, 3, set(2, BPT_F32, cut, cut, cut));
    bpt_batch_result result;
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 3.0f, &result));
    const uint64_t before = bpt_memory_allocations();
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 3.0f, &result));
    assert_int_equal(bpt_memory_allocations(), before);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels_give_the_bits_of_the_whole),
        cmocka_unit_test(test_samples_give_the_bits_of_the_whole),
        cmocka_unit_test(test_samples_of_a_layer_that_suits_winograd_are_tasks),
        cmocka_unit_test(test_parts_of_a_layer_that_suits_winograd),
        cmocka_unit_test(test_bf16_is_cut_too),
        cmocka_unit_test(test_workers_change_no_bit),
        cmocka_unit_test(test_every_cut_gives_the_gradient),
        cmocka_unit_test(test_parts_are_tasks),
        cmocka_unit_test(test_impossible_cuts_leave_the_whole),
        cmocka_unit_test(test_channels_need_no_partial_gradients),
        cmocka_unit_test(test_costs_of_a_network_are_noted),
        cmocka_unit_test(test_costs_decide),
        cmocka_unit_test(test_all_are_cut_alike),
        cmocka_unit_test(test_unlike_chunks),
        cmocka_unit_test(test_what_cannot_be_cut),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_a_step_allocates_nothing),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
