/* A model, stage by stage: forward in the order of its layers, backward in the other. */
#include "tests/ref/ref_stage.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Points a layer to its part of the flat vectors; gradient and terms may be NULL. */
static void bind(ref_stage *g, const bpt_segments *s, const double *weights, double *gradient,
                 double *terms) {
    for (size_t i = 0; i < g->layer->n_segments; i++) {
        const size_t offset = s->items[g->layer->first_segment + i].offset;
        g->w[i] = weights + offset;
        if (gradient) g->dw[i] = gradient + offset;
        if (terms) g->terms[i] = terms + offset;
    }
}

static ref_stage open_stage(const bpt_layer *l, const ref_batch *batch, const ref_stage *stages) {
    ref_stage g = {.layer = l, .batch = batch, .n_out = ref_n_values(l->out, batch->n)};
    g.y = ref_zeros(g.n_out);
    g.dy = ref_zeros(g.n_out);
    g.dy_terms = ref_zeros(g.n_out);
    g.x = calloc(l->n_inputs, sizeof *g.x);
    g.dx = calloc(l->n_inputs, sizeof *g.dx);
    if (!g.x || !g.dx) ref_die("no memory for", l->name);
    for (size_t j = 0; j < l->n_inputs; j++)
        g.x[j] = l->inputs[j] ? stages[l->inputs[j] - 1].y : batch->pixels;
    return g;
}

static void close_stage(ref_stage *g) {
    free(g->winner);
    free(g->mean);
    free(g->var);
    free(g->x);
    free(g->dx);
    free(g->y);
    free(g->dy);
    free(g->dy_terms);
    free(g->dx_terms);
}

/* The gradient of a value is the sum of those that its readers give. Nobody wants the gradient of
 * the pixels. */
static void backward(ref_stage *stages, ref_stage *g) {
    const bpt_layer *l = g->layer;
    for (size_t j = 0; j < l->n_inputs; j++)
        if (l->inputs[j]) g->dx[j] = ref_zeros(ref_n_values(l->ins[j], g->batch->n));
    ref_stage_backward(g);
    for (size_t j = 0; j < l->n_inputs; j++) {
        if (!g->dx[j]) continue;
        ref_stage *producer = &stages[l->inputs[j] - 1];
        for (size_t i = 0; i < producer->n_out; i++) {
            producer->dy[i] += g->dx[j][i];
            producer->dy_terms[i] += g->dx_terms ? g->dx_terms[i] : fabs(g->dx[j][i]);
        }
        free(g->dx[j]);
    }
}

/* A single changed value changes the hash: each step is a bijection (FNV-1a, by words). */
static void hash_switches(const ref_stage *g, uint64_t *hash) {
    const bool is_relu = g->layer->kind == &bpt_layer_relu;
    if (!is_relu && !g->winner) return;
    for (size_t i = 0; i < g->n_out; i++) {
        const uint64_t word = is_relu ? g->x[0][i] > 0.0 : (uint64_t)g->winner[i];
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
    const size_t n = model->n_layers, n_weights = model->segments.n_elements;
    ref_stage *stages = calloc(n, sizeof *stages);
    if (!stages) ref_die("no memory for", model->name);
    if (terms) memset(terms, 0, n_weights * sizeof *terms);
    ref_result result = {0};
    ref_batch frozen = *batch;
    frozen.evaluation = true;
    for (size_t i = 0; i < n; i++) {
        const bool learns = i >= model->n_frozen;
        stages[i] = open_stage(&model->layers[i], learns ? batch : &frozen, stages);
        bind(&stages[i], &model->segments, weights, learns ? gradient : NULL,
             learns ? terms : NULL);
        ref_stage_forward(&stages[i]);
        hash_switches(&stages[i], &result.switches);
    }
    const ref_stage *last = &stages[n - 1];
    result.loss_sum = ref_softmax_loss(batch->n, model->classes, last->y, batch->labels,
                                       batch->denominator, last->dy);
    for (size_t i = 0; i < last->n_out; i++) last->dy_terms[i] = fabs(last->dy[i]);
    count_correct(batch, model->classes, last->y, &result);
    for (size_t i = 0; logits && i < last->n_out; i++) logits[i] = last->y[i];
    for (size_t i = n; gradient && i-- > model->n_frozen;) backward(stages, &stages[i]);
    for (size_t i = 0; i < n; i++) close_stage(&stages[i]);
    free(stages);
    return result;
}

ref_result ref_network_f32(const bpt_model *model, int64_t n, const float *pixels,
                           const int32_t *labels, double denominator, const float *weights,
                           double *logits, double *gradient, double *terms) {
    double *x = ref_doubles(pixels, ref_n_values(model->input, n));
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
        const size_t end = g->offset + g->count;
        for (size_t j = g->offset; g->role.running > 0.0f && j < end; j++)
            weights[j] -= (double)g->role.running * gradient[j];
        if (g->role.running > 0.0f) continue;
        ref_sgd_update(g->count, weights + g->offset, momentum + g->offset, gradient + g->offset,
                       rate, mu, g->role.decays ? decay : 0.0);
    }
}
