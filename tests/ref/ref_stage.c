/* Which naive loops stand for which kind of layer. */
#include "tests/ref/ref_stage.h"

#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ref_die(const char *what, const char *about) {
    fprintf(stderr, "reference: %s %s\n", what, about);
    abort();
}

size_t ref_n_values(bpt_shape s, int64_t n) {
    return (size_t)(n * s.c * s.h * s.w);
}

static double *absolutes(const double *x, size_t n) {
    double *y = ref_zeros(n);
    for (size_t i = 0; i < n; i++) y[i] = fabs(x[i]);
    return y;
}

static size_t n_in(const ref_stage *g) {
    return ref_n_values(g->layer->in, g->batch->n);
}

static ref_window window_of(const ref_stage *g, const int64_t *kernel, const int64_t *stride,
                            const int64_t *pad) {
    const bpt_layer *l = g->layer;
    return (ref_window){
        .n = g->batch->n,
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

/* ---- convolution ---- */

static ref_window conv_of(const ref_stage *g) {
    const bpt_conv_config *c = g->layer->config;
    ref_window a = window_of(g, c->kernel, c->stride, c->pad);
    a.groups = c->groups;
    memcpy(a.dilation, c->dilation, sizeof a.dilation);
    return a;
}

static void conv_forward(ref_stage *g) {
    const ref_window a = conv_of(g);
    ref_conv_forward(&a, g->x[0], g->w[0], g->w[1], g->y);
}

/* The terms: what backward does for the weights, with every product that it sums made positive. */
static void conv_backward(ref_stage *g) {
    const ref_window a = conv_of(g);
    ref_conv_backward_weight(&a, g->x[0], g->dy, g->dw[0]);
    if (g->dw[1]) ref_conv_backward_bias(&a, g->dy, g->dw[1]);
    if (g->dx[0]) ref_conv_backward_data(&a, g->dy, g->w[0], g->dx[0]);
    if (!g->terms[0]) return;
    double *x = absolutes(g->x[0], n_in(g));
    const double *dy = g->dy_terms;
    ref_conv_backward_weight(&a, x, dy, g->terms[0]);
    if (g->terms[1]) ref_conv_backward_bias(&a, dy, g->terms[1]);
    free(x);
}

/* ---- fully connected ---- */

static ref_fc fc_of(const ref_stage *g) {
    const bpt_shape in = g->layer->in;
    return (ref_fc){.n = g->batch->n, .c = in.c * in.h * in.w, .k = g->layer->out.c};
}

static void fc_forward(ref_stage *g) {
    const ref_fc a = fc_of(g);
    ref_fc_forward(&a, g->x[0], g->w[0], g->w[1], g->y);
}

static void fc_backward(ref_stage *g) {
    const ref_fc a = fc_of(g);
    ref_fc_backward_weight(&a, g->x[0], g->dy, g->dw[0]);
    if (g->dw[1]) ref_fc_backward_bias(&a, g->dy, g->dw[1]);
    if (g->dx[0]) ref_fc_backward_data(&a, g->dy, g->w[0], g->dx[0]);
    if (!g->terms[0]) return;
    double *x = absolutes(g->x[0], n_in(g));
    const double *dy = g->dy_terms;
    ref_fc_backward_weight(&a, x, dy, g->terms[0]);
    if (g->terms[1]) ref_fc_backward_bias(&a, dy, g->terms[1]);
    free(x);
}

/* ---- pooling ---- */

static ref_window pool_of(const ref_stage *g) {
    const bpt_pool_config *c = g->layer->config;
    ref_window a = window_of(g, c->kernel, c->stride, c->pad);
    a.p = g->layer->out.h;
    a.q = g->layer->out.w;
    return a;
}

static void maxpool_forward(ref_stage *g) {
    const ref_window a = pool_of(g);
    g->winner = calloc(g->n_out, sizeof *g->winner);
    if (!g->winner) ref_die("no memory for", g->layer->name);
    ref_maxpool_forward(&a, g->x[0], g->y, g->winner);
    if (!g->batch->switched_by) return;
    double *x = ref_doubles(g->batch->switched_by[g->layer->inputs[0]], n_in(g));
    ref_maxpool_forward(&a, x, g->y, g->winner);
    for (size_t i = 0; i < g->n_out; i++) g->y[i] = g->x[0][g->winner[i]];
    free(x);
}

static void maxpool_backward(ref_stage *g) {
    const ref_window a = pool_of(g);
    if (g->dx[0]) ref_maxpool_backward(&a, g->winner, g->dy, g->dx[0]);
}

static void avgpool_forward(ref_stage *g) {
    const bpt_pool_config *c = g->layer->config;
    const ref_window a = pool_of(g);
    ref_avgpool_forward(&a, c->include_pad, g->x[0], g->y);
}

static void avgpool_backward(ref_stage *g) {
    const bpt_pool_config *c = g->layer->config;
    const ref_window a = pool_of(g);
    if (g->dx[0]) ref_avgpool_backward(&a, c->include_pad, g->dy, g->dx[0]);
}

static ref_window whole_of(const ref_stage *g) {
    const int64_t kernel[] = {g->layer->in.h, g->layer->in.w};
    return window_of(g, kernel, (int64_t[]){1, 1}, (int64_t[]){0, 0});
}

static void global_avgpool_forward(ref_stage *g) {
    const ref_window a = whole_of(g);
    ref_avgpool_forward(&a, 0, g->x[0], g->y);
}

static void global_avgpool_backward(ref_stage *g) {
    const ref_window a = whole_of(g);
    if (g->dx[0]) ref_avgpool_backward(&a, 0, g->dy, g->dx[0]);
}

/* ---- elementwise ---- */

/* y = x where the engine's y is above 0, else 0. */
static void relu_by(ref_stage *g, const double *x, double *y) {
    const float *passes = g->batch->switched_by[g->layer->index + 1];
    for (size_t i = 0; i < g->n_out; i++) y[i] = passes[i] > 0.0f ? x[i] : 0.0;
}

static void relu_forward(ref_stage *g) {
    if (g->batch->switched_by)
        relu_by(g, g->x[0], g->y);
    else
        ref_relu_forward(g->n_out, g->x[0], g->y);
}

static void relu_backward(ref_stage *g) {
    if (!g->dx[0]) return;
    if (g->batch->switched_by)
        relu_by(g, g->dy, g->dx[0]);
    else
        ref_relu_backward(g->n_out, g->x[0], g->dy, g->dx[0]);
}

static void add_forward(ref_stage *g) {
    for (size_t i = 0; i < g->n_out; i++) {
        g->y[i] = 0.0;
        for (size_t j = 0; j < g->layer->n_inputs; j++) g->y[i] += g->x[j][i];
    }
}

static void add_backward(ref_stage *g) {
    for (size_t j = 0; j < g->layer->n_inputs; j++)
        for (size_t i = 0; g->dx[j] && i < g->n_out; i++) g->dx[j][i] = g->dy[i];
}

/* The factor of value @p i: the engine's own random numbers, asked for one by one. */
static double dropout_factor(const ref_stage *g, size_t i) {
    const bpt_dropout_config *config = g->layer->config;
    const size_t per_sample = g->n_out / (size_t)g->batch->n;
    const bpt_draw *draw = &g->batch->draw;
    const uint64_t sample = draw->first_sample + i / per_sample;
    bpt_random r = bpt_random_stream(draw->seed, BPT_PURPOSE_DROPOUT,
                                     (uint64_t)g->layer->index << 52 | draw->step << 24 | sample);
    uint32_t drawn = 0;
    if (g->batch->evaluation) return 1.0;
    for (size_t j = 0; j <= i % per_sample; j++) drawn = bpt_random_u32(&r);
    return (double)drawn < config->rate * 4294967296.0 ? 0.0 : 1.0 / (1.0 - config->rate);
}

static void dropout_forward(ref_stage *g) {
    for (size_t i = 0; i < g->n_out; i++) g->y[i] = g->x[0][i] * dropout_factor(g, i);
}

static void dropout_backward(ref_stage *g) {
    for (size_t i = 0; g->dx[0] && i < g->n_out; i++) g->dx[0][i] = g->dy[i] * dropout_factor(g, i);
}

/* ---- channels ---- */

/* Copies channels [0, c) of @p part to channels [first, first + c) of @p whole, or back. */
static void copy_channels(const ref_stage *g, double *part, int64_t c, double *whole, int64_t first,
                          bool back) {
    const bpt_shape out = g->layer->out;
    const int64_t pixels = out.h * out.w;
    for (int64_t n = 0; n < g->batch->n; n++)
        for (int64_t i = 0; i < c * pixels; i++) {
            double *in_part = &part[n * c * pixels + i];
            double *in_whole = &whole[(n * out.c + first) * pixels + i];
            if (back)
                *in_part = *in_whole;
            else
                *in_whole = *in_part;
        }
}

static void concat_forward(ref_stage *g) {
    int64_t first = 0;
    for (size_t j = 0; j < g->layer->n_inputs; j++) {
        copy_channels(g, (double *)g->x[j], g->layer->ins[j].c, g->y, first, false);
        first += g->layer->ins[j].c;
    }
}

static void concat_backward(ref_stage *g) {
    int64_t first = 0;
    for (size_t j = 0; j < g->layer->n_inputs; j++) {
        if (g->dx[j]) copy_channels(g, g->dx[j], g->layer->ins[j].c, g->dy, first, true);
        first += g->layer->ins[j].c;
    }
}

static void pad_channels_forward(ref_stage *g) {
    memset(g->y, 0, g->n_out * sizeof *g->y);
    copy_channels(g, (double *)g->x[0], g->layer->in.c, g->y, 0, false);
}

static void pad_channels_backward(ref_stage *g) {
    if (g->dx[0]) copy_channels(g, g->dx[0], g->layer->in.c, g->dy, 0, true);
}

/* ---- normalisation ---- */

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };

/* Statistics say nothing of samples that are not there: these become 0. */
static void clear_absent(ref_stage *g) {
    const size_t per_sample = g->n_out / (size_t)g->batch->n;
    for (int64_t i = 0; i < g->batch->n; i++)
        if (g->batch->labels[i] < 0)
            memset(g->y + (size_t)i * per_sample, 0, per_sample * sizeof *g->y);
}

static void batchnorm_forward(ref_stage *g) {
    const bpt_batchnorm_config *config = g->layer->config;
    const bpt_shape s = g->layer->in;
    const int64_t n = g->batch->n, m = s.h * s.w;
    g->mean = ref_zeros((size_t)s.c);
    g->var = ref_zeros((size_t)s.c);
    const double count = ref_moments(n, s.c, m, g->x[0], g->batch->labels, g->mean, g->var);
    for (int64_t c = 0; c < s.c && g->dw[RUNNING_MEAN]; c++) {
        const double share = count / (double)m / g->batch->denominator;
        const double unbiased =
            count > 1.0 ? g->var[c] * count / (count - 1.0) : g->w[RUNNING_VAR][c];
        g->dw[RUNNING_MEAN][c] = share * (g->w[RUNNING_MEAN][c] - g->mean[c]);
        g->dw[RUNNING_VAR][c] = share * (g->w[RUNNING_VAR][c] - unbiased);
    }
    const bool recalls = g->batch->evaluation;
    ref_batchnorm_forward(n, s.c, m, g->x[0], recalls ? g->w[RUNNING_MEAN] : g->mean,
                          recalls ? g->w[RUNNING_VAR] : g->var, config->eps, g->w[WEIGHT],
                          g->w[BIAS], g->y);
    clear_absent(g);
}

static void batchnorm_terms(ref_stage *g, int64_t pixels) {
    const bpt_batchnorm_config *config = g->layer->config;
    const int64_t channels = g->layer->in.c;
    for (size_t i = 0; i < g->n_out; i++) {
        const int64_t c = (int64_t)i / pixels % channels;
        const double normal = (g->x[0][i] - g->mean[c]) / sqrt(g->var[c] + config->eps);
        g->terms[WEIGHT][c] += fabs(g->dy[i] * normal);
        g->terms[BIAS][c] += fabs(g->dy[i]);
    }
    for (int64_t c = 0; c < channels; c++) {
        g->terms[RUNNING_MEAN][c] = fabs(g->w[RUNNING_MEAN][c]) + fabs(g->mean[c]);
        g->terms[RUNNING_VAR][c] = g->w[RUNNING_VAR][c] + g->var[c];
    }
}

/* dx is a difference of its dy, their mean, and a multiple of the normalised value: the fewer
 * values a channel has, the more of it cancels. */
static void batchnorm_dx_terms(ref_stage *g, int64_t pixels) {
    const bpt_batchnorm_config *config = g->layer->config;
    const int64_t channels = g->layer->in.c;
    const double count = (double)(g->n_out / (size_t)channels);
    g->dx_terms = ref_zeros(g->n_out);
    for (size_t i = 0; i < g->n_out; i++) {
        const int64_t c = (int64_t)i / pixels % channels;
        const double std = sqrt(g->var[c] + config->eps), normal = (g->x[0][i] - g->mean[c]) / std;
        g->dx_terms[i] = fabs(g->w[WEIGHT][c]) / std *
                         (fabs(g->dy[i]) + g->terms[BIAS][c] / count +
                          fabs(normal) * g->terms[WEIGHT][c] / count);
    }
}

static void batchnorm_backward(ref_stage *g) {
    const bpt_batchnorm_config *config = g->layer->config;
    const bpt_shape s = g->layer->in;
    double *dx = g->dx[0] ? g->dx[0] : ref_zeros(g->n_out);
    ref_batchnorm_backward(g->batch->n, s.c, s.h * s.w, g->x[0], g->batch->labels, g->mean, g->var,
                           config->eps, g->w[WEIGHT], g->dy, dx, g->dw[WEIGHT], g->dw[BIAS]);
    if (dx != g->dx[0]) free(dx);
    if (g->terms[0]) batchnorm_terms(g, s.h * s.w);
    if (g->terms[0] && g->dx[0]) batchnorm_dx_terms(g, s.h * s.w);
}

static ref_lrn lrn_of(const ref_stage *g) {
    const bpt_lrn_config *c = g->layer->config;
    const bpt_shape s = g->layer->in;
    return (ref_lrn){g->batch->n, s.c, s.h * s.w, c->size, c->alpha, c->beta, c->k};
}

static void lrn_forward(ref_stage *g) {
    const ref_lrn a = lrn_of(g);
    ref_lrn_forward(&a, g->x[0], g->y);
}

static void lrn_backward(ref_stage *g) {
    const ref_lrn a = lrn_of(g);
    if (g->dx[0]) ref_lrn_backward(&a, g->x[0], g->dy, g->dx[0]);
}

/* ---- the table ---- */

static const struct {
    const bpt_layer_kind *kind;
    void (*forward)(ref_stage *g);
    void (*backward)(ref_stage *g);
} kinds[] = {
    {&bpt_layer_add, add_forward, add_backward},
    {&bpt_layer_avgpool, avgpool_forward, avgpool_backward},
    {&bpt_layer_batchnorm, batchnorm_forward, batchnorm_backward},
    {&bpt_layer_concat, concat_forward, concat_backward},
    {&bpt_layer_conv, conv_forward, conv_backward},
    {&bpt_layer_dropout, dropout_forward, dropout_backward},
    {&bpt_layer_fc, fc_forward, fc_backward},
    {&bpt_layer_global_avgpool, global_avgpool_forward, global_avgpool_backward},
    {&bpt_layer_lrn, lrn_forward, lrn_backward},
    {&bpt_layer_maxpool, maxpool_forward, maxpool_backward},
    {&bpt_layer_pad_channels, pad_channels_forward, pad_channels_backward},
    {&bpt_layer_relu, relu_forward, relu_backward},
};

static size_t find(const ref_stage *g) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == g->layer->kind) return i;
    ref_die("there is none for the kind", g->layer->kind->name);
    return 0;
}

void ref_stage_forward(ref_stage *g) {
    kinds[find(g)].forward(g);
}

void ref_stage_backward(ref_stage *g) {
    kinds[find(g)].backward(g);
}
