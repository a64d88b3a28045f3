#include "tests/inner/net_fixture.h"

#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

const char net_mixed[] =
    "{name: t, input: [3, 9, 11], classes: 7, layers: ["
    "conv: {name: conv1, filters: 17, kernel: 3, pad: 1}, relu, "
    "maxpool: {name: p, kernel: 3, stride: 2}, "
    "conv: {name: conv2, filters: 16, kernel: 3, pad: 1, bias: false}, batchnorm: {name: b}, "
    "conv: {name: conv3, input: p, filters: 16, kernel: 1}, lrn, "
    "conv: {name: conv4, filters: 16, groups: 16, kernel: 3, pad: 1}, "
    "add: {name: sum, input: [b, conv4]}, relu: {name: r}, "
    "avgpool: {name: a, input: sum, kernel: 3, stride: 1, pad: 1}, "
    "concat: {name: both, input: [r, a]}, pad_channels: {channels: 48}, "
    "conv: {name: conv5, filters: 20, kernel: 3, bias: false}, relu, "
    "fc: {name: fc1, outputs: 150}, relu, dropout: {rate: 0.25}, "
    "fc: {name: fc2, outputs: classes}]}";

const char net_tiny[] =
    "{name: t, input: [1, 4, 4], classes: 3, layers: ["
    "conv: {name: conv1, filters: 2, kernel: 3}, relu, "
    "maxpool: {name: pool1, kernel: 2}, fc: {name: fc1, outputs: classes}]}";

void net_assert_ok(bpt_status status) {
    if (status != BPT_OK) fail_msg("%s: %s", bpt_status_name(status), bpt_error_last()->text);
}

float *net_floats(size_t n) {
    float *x = malloc(n * sizeof *x + 1);
    assert_non_null(x);
    return x;
}

bpt_model *net_parse(const char *text) {
    bpt_model *model = NULL;
    net_assert_ok(bpt_model_parse("test.yaml", text, strlen(text), NULL, &model));
    return model;
}

bpt_pool *net_pool(unsigned n_workers) {
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    bpt_pool *pool = NULL;
    options.n_workers = n_workers ? n_workers : 1;
    net_assert_ok(bpt_pool_create(&options, &pool));
    return pool;
}

/* Biases too are random: at zero, a wrong bias would not be seen. Small enough that no sample is
 * learned already, with a gradient of nothing. */
static void fill_weights(net_fixture *f, uint64_t seed) {
    const bpt_segments *s = &f->model->segments;
    bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, 1);
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *g = &s->items[i];
        const float scale = g->role.fan_in ? 1.0f / sqrtf((float)g->role.fan_in) : 0.2f;
        float *values = f->weights + g->offset;
        bpt_random_normals(&r, values, g->count);
        for (size_t j = 0; j < g->count; j++) values[j] = g->role.initial + scale * values[j];
    }
}

static void fill_batch(net_fixture *f, uint64_t seed) {
    bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, 2);
    bpt_random_normals(&r, f->pixels, f->n_pixels);
    for (size_t i = 0; i < f->n_pixels; i++) f->pixels[i] *= 0.5f;
    for (int64_t i = 0; i < f->batch; i++)
        f->labels[i] = (int32_t)bpt_random_below(&r, (uint32_t)f->model->classes);
}

void net_cut(bpt_model *model, const net_cuts *cuts) {
    bpt_model_use_costs(model, cuts->costs);
    for (size_t i = 0; i < model->n_layers; i++)
        for (int step = 0; step < BPT_N_CONV_STEPS; step++) {
            const bpt_cut cut = cuts->step[step];
            if (model->layers[i].kind != &bpt_layer_conv) continue;
            if (cut.samples || cut.channels || cut.rows)
                net_assert_ok(
                    bpt_model_set_cut(model, model->layers[i].name, (bpt_conv_step)step, cut));
        }
}

static net_fixture open_model(bpt_model *model, int64_t batch, net_options o,
                              const float *weights) {
    const bpt_shape in = model->input;
    net_fixture f = {.model = model, .batch = batch, .n_weights = model->segments.n_elements};
    f.n_pixels = (size_t)(batch * in.c * in.h * in.w);
    f.pool = net_pool(o.n_workers);
    net_assert_ok(bpt_network_create(model, batch, o.activations, o.learning, f.pool, &f.net));
    f.weights = net_floats(f.n_weights);
    f.pixels = net_floats(f.n_pixels);
    f.labels = malloc((size_t)batch * sizeof *f.labels);
    assert_non_null(f.labels);
    if (weights)
        memcpy(f.weights, weights, f.n_weights * sizeof *f.weights);
    else
        fill_weights(&f, o.seed);
    fill_batch(&f, o.seed);
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    return f;
}

net_fixture net_open(const char *text, int64_t batch, net_options options) {
    return open_model(net_parse(text), batch, options, NULL);
}

net_fixture net_open_cut(const char *text, int64_t batch, net_options options, net_cuts cuts) {
    bpt_model *model = net_parse(text);
    net_cut(model, &cuts);
    return open_model(model, batch, options, NULL);
}

net_fixture net_open_built_in(const char *name, const bpt_model_override *override, int64_t batch,
                              net_options options, const float *weights) {
    bpt_model *model = NULL;
    net_assert_ok(bpt_model_load(name, override, &model));
    return open_model(model, batch, options, weights);
}

void net_close(net_fixture *f) {
    free(f->labels);
    free(f->pixels);
    free(f->weights);
    bpt_network_free(f->net);
    bpt_pool_free(f->pool);
    bpt_model_free(f->model);
}

void net_freeze(net_fixture *f, const char *first, net_options options) {
    net_assert_ok(bpt_model_freeze_before(f->model, first));
    bpt_network_free(f->net);
    net_assert_ok(bpt_network_create(f->model, f->batch, options.activations, options.learning,
                                     f->pool, &f->net));
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_WEIGHTS, f->weights));
}

float *net_vector_of(bpt_network *net, const net_fixture *f, bpt_vector which) {
    float *x = net_floats(f->n_weights);
    memset(x, 0xFF, f->n_weights * sizeof *x);
    net_assert_ok(bpt_network_get(net, which, x));
    return x;
}

float *net_vector(const net_fixture *f, bpt_vector which) {
    return net_vector_of(f->net, f, which);
}

double net_distance(const float *x, const float *y, size_t n) {
    double error = 0.0, norm = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        error += d * d;
        norm += (double)y[i] * (double)y[i];
    }
    return sqrt(error / (norm > 0.0 ? norm : 1.0));
}

void net_assert_same_bits(const char *what, const float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&x[i], &y[i], sizeof *x) != 0)
            fail_msg("%s: value %zu is %.9g in one and %.9g in the other", what, i, (double)x[i],
                     (double)y[i]);
}

void net_assert_frozen(const net_fixture *f, bpt_network *net) {
    const size_t n = bpt_model_frozen_elements(f->model);
    float *weights = net_vector_of(net, f, BPT_VECTOR_WEIGHTS);
    float *momenta = net_vector_of(net, f, BPT_VECTOR_STATE_0);
    float *gradients = net_vector_of(net, f, BPT_VECTOR_GRADIENTS);
    net_assert_same_bits("frozen weights", weights, f->weights, n);
    for (size_t i = 0; i < n; i++) assert_true(momenta[i] == 0.0f && gradients[i] == 0.0f);
    free(gradients);
    free(momenta);
    free(weights);
}
