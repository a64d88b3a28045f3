/* How a batch is cut: sums by its size alone, all else also by the number of workers; and that
 * whole networks have the same bits for few workers and for many.
 *
 * ctest: cpu TIMEOUT=240 */
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

enum { SEED = 20281 };

/* ---- the rule ---- */

static void check_cut(const bpt_builder *b, int64_t batch) {
    assert_int_equal(b->chunk_start[0], 0);
    assert_int_equal(b->chunk_start[b->n_chunks], batch);
    assert_int_equal(b->chunk_tile[b->n_chunks], b->n_tiles);
    assert_int_equal(b->tile_start[b->n_tiles], batch);
    for (size_t c = 0; c < b->n_chunks; c++) {
        assert_true(bpt_builder_chunk_samples(b, c) >= 1);
        assert_int_equal(b->tile_start[b->chunk_tile[c]], b->chunk_start[c]);
        for (size_t t = b->chunk_tile[c]; t < b->chunk_tile[c + 1]; t++) {
            const int64_t n = bpt_builder_tile_samples(b, t);
            const bool last = t + 1 == b->chunk_tile[c + 1];
            assert_true(n >= 1 && n <= b->tile_samples && (last || n == b->tile_samples));
        }
    }
}

static void test_all_samples_are_in_a_tile(void **state) {
    (void)state;
    bpt_builder *b = calloc(1, sizeof *b), *few = calloc(1, sizeof *few);
    assert_non_null(b);
    assert_non_null(few);
    for (int64_t batch = 1; batch <= 3000; batch += batch < 100 ? 1 : 97)
        for (int64_t workers = 1; workers <= 600; workers += workers < 70 ? 1 : 53) {
            bpt_builder_cut(few, batch, 1);
            bpt_builder_cut(b, batch, workers);
            check_cut(b, batch);
            assert_int_equal(b->n_chunks, few->n_chunks);
            assert_memory_equal(b->chunk_start, few->chunk_start, sizeof b->chunk_start);
            assert_int_equal(few->n_tiles, few->n_chunks);
        }
    free(few);
    free(b);
}

/* Samples in all rounds of the workers, over those in the batch. */
static double work_of(int64_t batch, int64_t workers) {
    bpt_builder *b = calloc(1, sizeof *b);
    assert_non_null(b);
    bpt_builder_cut(b, batch, workers);
    const int64_t rounds = ((int64_t)b->n_tiles + workers - 1) / workers;
    const double all = (double)(rounds * b->tile_samples * workers);
    free(b);
    return all / (double)batch;
}

static void test_workers_have_tiles(void **state) {
    (void)state;
    static const int64_t batches[] = {16, 64, 128, 256};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        for (int64_t workers = 1; workers <= batches[i] && workers <= BPT_MAX_TILES; workers *= 2)
            assert_true(work_of(batches[i], workers) == 1.0);
    assert_true(work_of(64, 6) <= 1.5);
    assert_true(work_of(64, 12) <= 1.5);
    assert_true(work_of(64, 24) <= 1.5);
}

/* ---- the same bits ---- */

typedef struct {
    const char *name;
    int64_t channels, size, batch;
} network;

/* Batches that leave tiles of unlike sizes. vgg16 and resnet50 take their time. */
static const network networks[] = {
    {"lenet", 1, 28, 25},  {"resnet20", 3, 16, 22}, {"googlenet", 3, 64, 9},
    {"alexnet", 3, 67, 9}, {"mobilenet", 3, 40, 9},
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    {"vgg16", 3, 32, 21},  {"resnet50", 3, 64, 9},
#endif
};

/* Weights of the network that was last asked for: to make some takes as long as a step with them.
 */
static struct {
    const network *of;
    float *values;
} initial;

static const float *weights_of(const network *n) {
    return initial.of == n ? initial.values : NULL;
}

static void keep_weights(const network *n, net_fixture *f) {
    if (initial.of == n) return;
    free(initial.values);
    initial.of = n;
    initial.values = f->weights;
    f->weights = NULL;
}

/* @return gradients after a step, and behind them what an evaluation says; free() */
static float *outcome(const network *n, bpt_value_type type, unsigned n_workers, size_t *n_values) {
    const bpt_model_override override = {.input = {n->channels, n->size, n->size}, .classes = 10};
    const net_options options = {.n_workers = n_workers, .seed = SEED, .activations = type};
    net_fixture f = net_open_built_in(n->name, &override, n->batch, options, weights_of(n));
    bpt_batch_result trained, evaluated;
    f.labels[n->batch / 2] = -1; /* a sample that is not there */
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, (float)n->batch, &trained));
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &evaluated));
    float *x = net_vector(&f, BPT_VECTOR_GRADIENTS);
    *n_values = f.n_weights + 4;
    x = realloc(x, *n_values * sizeof *x);
    assert_non_null(x);
    memcpy(x + f.n_weights, &trained.loss_sum, sizeof trained.loss_sum);
    memcpy(x + f.n_weights + 2, &evaluated.loss_sum, sizeof evaluated.loss_sum);
    print_message("%s, %u workers: %zu tasks\n", n->name, n_workers, f.net->builder.n_tasks);
    keep_weights(n, &f);
    net_close(&f);
    return x;
}

static void check_network(const network *n, bpt_value_type type) {
    static const unsigned many[] = {7, 12, 40};
    size_t n_values;
    float *expected = outcome(n, type, 2, &n_values);
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        float *x = outcome(n, type, many[i], &n_values);
        net_assert_same_bits(n->name, expected, x, n_values);
        free(x);
    }
    free(expected);
}

static void test_network(void **state) {
    check_network(*state, BPT_F32);
}

static void test_network_bf16(void **state) {
    if (bpt_cpu_bf16() != BPT_BF16_NATIVE) skip();
    check_network(*state, BPT_BF16);
}

static float *gradient_of(const char *text, int64_t batch, unsigned n_workers, size_t *n) {
    const net_options options = {.n_workers = n_workers, .seed = SEED};
    net_fixture f = net_open(text, batch, options);
    bpt_batch_result r;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, (float)batch, &r));
    float *x = net_vector(&f, BPT_VECTOR_GRADIENTS);
    *n = f.n_weights;
    net_close(&f);
    return x;
}

/* Of one channel, or one pixel, orders of values differ by name alone, and kernels go by it: tiles
 * of a chunk have the kernels that it would have as one tile. */
static void test_orders_of_one_name(void **state) {
    enum { N_SAMPLES = 16 };
    static const char *const layers[] = {
        "conv: {name: a, filters: 1, kernel: 3, pad: 1}, avgpool: {kernel: 3, stride: 2, pad: 1}",
        "conv: {name: a, filters: 1, kernel: 3, pad: 1}, maxpool: {kernel: 3, stride: 2, pad: 1}",
        "conv: {name: a, filters: 8, kernel: 12}, conv: {name: c, filters: 16, kernel: 1}",
    };
    char text[400];
    size_t n;
    (void)state;
    for (size_t p = 0; p < sizeof layers / sizeof *layers; p++) {
        float *expected = NULL;
        snprintf(text, sizeof text,
                 "{name: t, input: [1, 12, 12], classes: 4, layers: [%s, "
                 "conv: {name: b, filters: 8, kernel: 3, pad: 1}, "
                 "fc: {name: f, outputs: classes}]}",
                 layers[p]);
        for (unsigned n_workers = 2; n_workers <= 16; n_workers *= 2) {
            float *x = gradient_of(text, N_SAMPLES, n_workers, &n);
            if (expected) net_assert_same_bits(layers[p], expected, x, n);
            free(expected);
            expected = x;
        }
        free(expected);
    }
}

/* Of one sample oneDNN computes a convolution that is padded by more than its kernel by plain
 * loops, of two by a matrix product: chunks of both sizes stay whole. */
static void test_chunks_of_unlike_kernels(void **state) {
    static const char wide[] =
        "{name: t, input: [1, 28, 28], classes: 10, layers: [conv: {filters: 16, kernel: 5, "
        "stride: 2}, relu, conv: {name: b, filters: 3, kernel: 5, pad: [6, 2]}, relu, "
        "fc: {name: f, outputs: classes}]}";
    size_t n;
    (void)state;
    for (int64_t batch = 5; batch <= 7; batch++) {
        float *expected = gradient_of(wide, batch, 2, &n), *x = gradient_of(wide, batch, 40, &n);
        net_assert_same_bits("chunks of one sample and two", expected, x, n);
        free(expected);
        free(x);
    }
}

/* A table says for how many workers tiles are, whoever runs them: results may follow from that. */
static void test_costs_say_for_how_many(void **state) {
    (void)state;
    bpt_cost_table table = {.workers = 8};
    for (unsigned n_workers = 1; n_workers <= 16; n_workers += 15) {
        net_fixture f =
            net_open_cut(net_mixed, 64, (net_options){.n_workers = n_workers, .seed = SEED},
                         (net_cuts){.costs = &table});
        assert_int_equal(f.net->builder.n_chunks, 4);
        assert_int_equal(f.net->builder.n_tiles, 8);
        assert_int_equal(bpt_network_n_cuts(f.net), 0);
        net_close(&f);
    }
}

static const bpt_cut_note *cut_of(const net_fixture *f, const char *label, bpt_conv_step step) {
    const bpt_builder *b = &f->net->builder;
    for (size_t i = 0; i < b->n_cuts; i++)
        if (strcmp(b->cuts[i].layer->name, label) == 0 && b->cuts[i].step == step)
            return &b->cuts[i];
    fail_msg("layer %s has no such step", label);
    return NULL;
}

/* oneDNN computes a dilated convolution by matrix products where it has no better kernel: such
 * stay whole until a table knows better, however many workers there are. */
static void test_costs_cut_products_too(void **state) {
    (void)state;
    static const char dilated[] =
        "{name: t, input: [3, 12, 12], classes: 3, layers: [conv: {filters: 16, kernel: 1}, conv: "
        "{name: b, filters: 16, kernel: 3, pad: 2, dilation: 2}, fc: {outputs: classes}]}";
    const net_options options = {.n_workers = 2, .seed = SEED};
    bpt_cost_table table = {.workers = 16};
    net_fixture f = net_open_cut(dilated, 16, options, (net_cuts){.costs = &table});
    bpt_cost cost = {BPT_CONV_FORWARD, cut_of(&f, "b", BPT_CONV_FORWARD)->problem, {4, 1, 1}, 4000};
    net_assert_ok(bpt_cost_table_add(&table, &cost));
    cost.cut = (bpt_cut){1, 1, 1};
    cost.ns = 1000;
    net_assert_ok(bpt_cost_table_add(&table, &cost));
    net_close(&f);
    f = net_open_cut(dilated, 16, options, (net_cuts){.costs = &table});
    assert_int_equal(cut_of(&f, "b", BPT_CONV_FORWARD)->cut.samples, 1);
    net_close(&f);
    bpt_cost_table_clear(&table);
}

/* Rows of one step leave no step to Winograd's algorithm, nor its larger parts. */
static void test_rows_of_one_step_leave_tiles_to_others(void **state) {
    (void)state;
    static const char square[] =
        "{name: t, input: [3, 16, 16], classes: 3, layers: [conv: {filters: 64, kernel: 1}, conv: "
        "{name: b, filters: 64, kernel: 3, pad: 1}, fc: {outputs: classes}]}";
    bpt_cost_table table = {.workers = 16};
    const net_cuts cuts = {.step = {[BPT_CONV_FORWARD] = {.rows = 2}}, .costs = &table};
    net_fixture f = net_open_cut(square, 16, (net_options){.n_workers = 2, .seed = SEED}, cuts);
    assert_int_equal(cut_of(&f, "b", BPT_CONV_FORWARD)->cut.rows, 2);
    assert_int_equal(cut_of(&f, "b", BPT_CONV_BACKWARD_DATA)->cut.samples, 1);
    net_close(&f);
}

int main(void) {
    enum { N = sizeof networks / sizeof *networks, RULES = 7 };
    struct CMUnitTest tests[RULES + 2 * N] = {
        cmocka_unit_test(test_all_samples_are_in_a_tile),
        cmocka_unit_test(test_workers_have_tiles),
        cmocka_unit_test(test_orders_of_one_name),
        cmocka_unit_test(test_chunks_of_unlike_kernels),
        cmocka_unit_test(test_costs_say_for_how_many),
        cmocka_unit_test(test_costs_cut_products_too),
        cmocka_unit_test(test_rows_of_one_step_leave_tiles_to_others),
    };
    for (size_t i = 0; i < N; i++) {
        const struct CMUnitTest f32 = cmocka_unit_test_prestate(test_network, (void *)&networks[i]);
        const struct CMUnitTest bf16 =
            cmocka_unit_test_prestate(test_network_bf16, (void *)&networks[i]);
#ifdef __SANITIZE_ADDRESS__ /* for which both take long: by turns */
        tests[RULES + i] = i % 2 ? f32 : bf16;
#else
        tests[RULES + 2 * i] = f32;
        tests[RULES + 2 * i + 1] = bf16;
#endif
    }
#ifdef __SANITIZE_ADDRESS__
    enum { PER_NETWORK = 1 };
#else
    enum { PER_NETWORK = 2 };
#endif
    print_message("seed %d\n", (int)SEED);
    const int failed = _cmocka_run_group_tests("tiles", tests, RULES + PER_NETWORK * N, NULL, NULL);
    free(initial.values);
    return failed;
}
