#include "tests/ref/ref_network.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* One layer at work. x and dx of a layer are y and dy of the one before. */
typedef struct {
    const bpt_layer *layer;
    ref_window window; /* conv, maxpool */
    ref_fc fc;
    size_t n_in, n_out; /* values of the whole batch */
    const double *weight, *bias;
    double *d_weight, *d_bias;
    double *weight_terms, *bias_terms;
    const double *x;
    double *y, *dy;
    int64_t *winner; /* maxpool */
} stage;

static void die(const char *what, const char *about) {
    fprintf(stderr, "reference: %s %s\n", what, about);
    abort();
}

static size_t n_values(bpt_shape s, int64_t n) {
    return (size_t)(n * s.c * s.h * s.w);
}

static ref_window window_of(const bpt_layer *l, int64_t n, const int64_t *kernel,
                            const int64_t *stride, const int64_t *pad) {
    return (ref_window){
        .n = n,
        .c = l->in.c,
        .h = l->in.h,
        .w = l->in.w,
        .k = l->out.c,
        .r = kernel[0],
        .s = kernel[1],
        .stride = {stride[0], stride[1]},
        .pad = {pad[0], pad[1]},
    };
}

static void describe(stage *g, const bpt_layer *l, int64_t n) {
    *g = (stage){.layer = l, .n_in = n_values(l->in, n), .n_out = n_values(l->out, n)};
    if (l->kind == &bpt_layer_conv) {
        const bpt_conv_config *c = l->config;
        g->window = window_of(l, n, c->kernel, c->stride, c->pad);
    } else if (l->kind == &bpt_layer_maxpool) {
        const bpt_pool_config *c = l->config;
        g->window = window_of(l, n, c->kernel, c->stride, c->pad);
        g->winner = calloc(g->n_out, sizeof *g->winner);
        if (!g->winner) die("no memory for", l->name);
    } else if (l->kind == &bpt_layer_fc) {
        g->fc = (ref_fc){.n = n, .c = l->in.c * l->in.h * l->in.w, .k = l->out.c};
    } else if (l->kind != &bpt_layer_relu) {
        die("there is none for the kind", l->kind->name);
    }
    g->y = ref_zeros(g->n_out);
    g->dy = ref_zeros(g->n_out);
}

/* Points a layer to its part of the flat vectors; gradient and terms may be NULL. */
static void bind(stage *g, const bpt_segments *s, const double *weights, double *gradient,
                 double *terms) {
    const bpt_layer *l = g->layer;
    if (l->n_segments == 0) return;
    const size_t weight = s->items[l->first_segment].offset;
    g->weight = weights + weight;
    if (gradient) g->d_weight = gradient + weight;
    if (terms) g->weight_terms = terms + weight;
    if (l->n_segments == 1) return;
    const size_t bias = s->items[l->first_segment + 1].offset;
    g->bias = weights + bias;
    if (gradient) g->d_bias = gradient + bias;
    if (terms) g->bias_terms = terms + bias;
}

static void run_forward(stage *g) {
    const bpt_layer_kind *kind = g->layer->kind;
    if (kind == &bpt_layer_conv)
        ref_conv_forward(&g->window, g->x, g->weight, g->bias, g->y);
    else if (kind == &bpt_layer_maxpool)
        ref_maxpool_forward(&g->window, g->x, g->y, g->winner);
    else if (kind == &bpt_layer_fc)
        ref_fc_forward(&g->fc, g->x, g->weight, g->bias, g->y);
    else
        ref_relu_forward(g->n_out, g->x, g->y);
}

static double *absolutes(const double *x, size_t n) {
    double *y = ref_zeros(n);
    for (size_t i = 0; i < n; i++) y[i] = fabs(x[i]);
    return y;
}

/* What backward does for the weights, with every product that it sums made positive. */
static void sum_terms(const stage *g) {
    double *x = absolutes(g->x, g->n_in), *dy = absolutes(g->dy, g->n_out);
    if (g->layer->kind == &bpt_layer_conv) {
        ref_conv_backward_weight(&g->window, x, dy, g->weight_terms);
        if (g->bias_terms) ref_conv_backward_bias(&g->window, dy, g->bias_terms);
    } else {
        ref_fc_backward_weight(&g->fc, x, dy, g->weight_terms);
        if (g->bias_terms) ref_fc_backward_bias(&g->fc, dy, g->bias_terms);
    }
    free(dy);
    free(x);
}

/* dx is NULL for the first layer: nobody wants the gradient of the pixels. */
static void run_backward(stage *g, double *dx) {
    const bpt_layer_kind *kind = g->layer->kind;
    if (kind == &bpt_layer_conv) {
        ref_conv_backward_weight(&g->window, g->x, g->dy, g->d_weight);
        if (g->d_bias) ref_conv_backward_bias(&g->window, g->dy, g->d_bias);
        if (dx) ref_conv_backward_data(&g->window, g->dy, g->weight, dx);
    } else if (kind == &bpt_layer_fc) {
        ref_fc_backward_weight(&g->fc, g->x, g->dy, g->d_weight);
        if (g->d_bias) ref_fc_backward_bias(&g->fc, g->dy, g->d_bias);
        if (dx) ref_fc_backward_data(&g->fc, g->dy, g->weight, dx);
    } else if (!dx) {
        return;
    } else if (kind == &bpt_layer_maxpool) {
        ref_maxpool_backward(&g->window, g->winner, g->dy, dx);
    } else {
        ref_relu_backward(g->n_out, g->x, g->dy, dx);
    }
}

/* A single changed value changes the hash: each step is a bijection (FNV-1a, by words). */
static void hash_switches(const stage *g, uint64_t *hash) {
    const bool is_relu = g->layer->kind == &bpt_layer_relu;
    if (!is_relu && !g->winner) return;
    for (size_t i = 0; i < g->n_out; i++) {
        const uint64_t word = is_relu ? g->x[i] > 0.0 : (uint64_t)g->winner[i];
        *hash = (*hash ^ word) * UINT64_C(1099511628211);
    }
}

static void count_correct(const ref_batch *batch, int64_t classes, const double *logits,
                          ref_result *result) {
    for (int64_t i = 0; i < batch->n; i++) {
        const double *x = logits + i * classes;
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            if (x[k] > x[best]) best = k;
        result->n_samples += batch->labels[i] >= 0;
        result->n_correct += batch->labels[i] == best;
    }
}

ref_result ref_network(const bpt_model *model, const ref_batch *batch, const double *weights,
                       double *logits, double *gradient, double *terms) {
    const size_t n = model->n_layers;
    stage *stages = calloc(n, sizeof *stages);
    if (!stages) die("no memory for", model->name);
    ref_result result = {0};
    const double *x = batch->pixels;
    for (size_t i = 0; i < n; i++) {
        stage *g = &stages[i];
        describe(g, &model->layers[i], batch->n);
        bind(g, &model->segments, weights, gradient, terms);
        g->x = x;
        run_forward(g);
        hash_switches(g, &result.switches);
        x = g->y;
    }
    const stage *last = &stages[n - 1];
    result.loss_sum = ref_softmax_loss(batch->n, model->classes, last->y, batch->labels,
                                       batch->denominator, last->dy);
    count_correct(batch, model->classes, last->y, &result);
    for (size_t i = 0; logits && i < last->n_out; i++) logits[i] = last->y[i];
    for (size_t i = n; gradient && i-- > 0;) {
        run_backward(&stages[i], i > 0 ? stages[i - 1].dy : NULL);
        if (stages[i].weight_terms) sum_terms(&stages[i]);
    }
    for (size_t i = 0; i < n; i++) {
        free(stages[i].winner);
        free(stages[i].y);
        free(stages[i].dy);
    }
    free(stages);
    return result;
}

ref_result ref_network_f32(const bpt_model *model, int64_t n, const float *pixels,
                           const int32_t *labels, double denominator, const float *weights,
                           double *logits, double *gradient, double *terms) {
    double *x = ref_doubles(pixels, n_values(model->input, n));
    double *w = ref_doubles(weights, model->segments.n_elements);
    const ref_batch batch = {.n = n, .pixels = x, .labels = labels, .denominator = denominator};
    const ref_result result = ref_network(model, &batch, w, logits, gradient, terms);
    free(x);
    free(w);
    return result;
}

double ref_segments_error(const bpt_segments *s, const float *values, const double *ref,
                          const char **name) {
    double worst = -1.0;
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *g = &s->items[i];
        const double error = ref_error(values + g->offset, ref + g->offset, g->count);
        if (error <= worst) continue;
        worst = error;
        if (name) *name = g->name;
    }
    return worst;
}

void ref_network_update(const bpt_segments *s, double *weights, double *momentum,
                        const double *gradient, double rate, double mu, double decay) {
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *g = &s->items[i];
        ref_sgd_update(g->count, weights + g->offset, momentum + g->offset, gradient + g->offset,
                       rate, mu, g->decays ? decay : 0.0);
    }
}
