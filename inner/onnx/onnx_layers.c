/* What each kind of layer is in ONNX: a function that adds its nodes, and a row of the table at the
 * end. Operators are those of version 13 of ONNX's set. */
#include "inner/onnx/onnx_graph.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* Flat where all inputs are. */
static bpt__onnx_form common_form(const bpt__onnx_graph *g, const bpt_layer *l) {
    for (size_t j = 0; j < l->n_inputs; j++)
        if (g->of[l->inputs[j]]->own == BPT__IMAGE) return BPT__IMAGE;
    return BPT__FLAT;
}

/* A node of all inputs and no weights, its attributes still to come. */
static bpt__proto_mark open_layer(bpt__onnx_graph *g, const bpt_layer *l, const char *op,
                                  bpt__onnx_form form) {
    for (size_t j = 0; j < l->n_inputs; j++) (void)bpt__onnx_value_in(g, l->inputs[j], form);
    const bpt__proto_mark node = bpt__onnx_open(g, op, l->name);
    for (size_t j = 0; j < l->n_inputs; j++)
        bpt__onnx_input(g, bpt__onnx_value_in(g, l->inputs[j], form));
    return node;
}

/* Any number of inputs; many runtimes know more about a sum of two. */
static void put_add(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt__onnx_form form = common_form(g, l);
    const bpt__proto_mark node = open_layer(g, l, l->n_inputs == 2 ? "Add" : "Sum", form);
    bpt__onnx_close_layer(g, node, l, form);
}

static void put_batchnorm(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt_batchnorm_config *config = l->config;
    const bpt__onnx_form form = common_form(g, l);
    const bpt__proto_mark node = open_layer(g, l, "BatchNormalization", form);
    for (size_t i = 0; i < BPT__BN_SEGMENTS; i++) bpt__onnx_weights(g, l, i);
    bpt__onnx_put_real(g, "epsilon", config->eps);
    bpt__onnx_close_layer(g, node, l, form);
}

static void put_concat(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt__onnx_form form = common_form(g, l);
    const bpt__proto_mark node = open_layer(g, l, "Concat", form);
    bpt__onnx_put_int(g, "axis", 1);
    bpt__onnx_close_layer(g, node, l, form);
}

/* @param before,behind rows and columns, shape [2] each */
static void put_window(bpt__onnx_graph *g, const int64_t *kernel, const int64_t *stride,
                       const int64_t *before, const int64_t *behind) {
    const int64_t pads[] = {before[0], before[1], behind[0], behind[1]};
    bpt__onnx_put_ints(g, "kernel_shape", kernel, 2);
    bpt__onnx_put_ints(g, "strides", stride, 2);
    bpt__onnx_put_ints(g, "pads", pads, 4);
}

static void put_conv(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt_conv_config *config = l->config;
    const bpt__proto_mark node = open_layer(g, l, "Conv", BPT__IMAGE);
    for (size_t i = 0; i < l->n_segments; i++) bpt__onnx_weights(g, l, i);
    put_window(g, config->kernel, config->stride, config->pad, config->pad);
    bpt__onnx_put_ints(g, "dilations", config->dilation, 2);
    bpt__onnx_put_int(g, "group", config->groups);
    bpt__onnx_close_layer(g, node, l, BPT__IMAGE);
}

/* In evaluation it passes. */
static void put_dropout(bpt__onnx_graph *g, const bpt_layer *l) {
    g->of[1 + l->index] = g->of[l->inputs[0]];
}

static void put_fc(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt__proto_mark node = open_layer(g, l, "Gemm", BPT__FLAT);
    for (size_t i = 0; i < l->n_segments; i++) bpt__onnx_weights(g, l, i);
    bpt__onnx_put_int(g, "transB", 1); /* the weights are [K, C H W] */
    bpt__onnx_close_layer(g, node, l, BPT__FLAT);
}

static void put_global_avgpool(bpt__onnx_graph *g, const bpt_layer *l) {
    bpt__onnx_close_layer(g, open_layer(g, l, "GlobalAveragePool", BPT__IMAGE), l, BPT__IMAGE);
}

/* ONNX Runtime refuses an alpha or a beta of 0. The smallest float does the same: what is
 * multiplied by it adds nothing to k, and any power of it is 1. */
static double above_zero(double value) {
    return fmax(value, (double)FLT_MIN);
}

static void put_lrn(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt_lrn_config *config = l->config;
    const bpt__proto_mark node = open_layer(g, l, "LRN", BPT__IMAGE);
    bpt__onnx_put_int(g, "size", config->size);
    bpt__onnx_put_real(g, "alpha", above_zero(config->alpha));
    bpt__onnx_put_real(g, "beta", above_zero(config->beta));
    bpt__onnx_put_real(g, "bias", config->k);
    bpt__onnx_close_layer(g, node, l, BPT__IMAGE);
}

static void put_avgpool(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt_pool_config *config = l->config;
    const bpt__proto_mark node = open_layer(g, l, "AveragePool", BPT__IMAGE);
    put_window(g, config->kernel, config->stride, config->pad, config->pad);
    bpt__onnx_put_int(g, "count_include_pad", config->include_pad);
    bpt__onnx_close_layer(g, node, l, BPT__IMAGE);
}

/* As much padding behind as makes the last window whole: what it is where sizes are rounded up is
 * not the same in all runtimes (ceil_mode). It stays below the kernel's size. */
static int64_t pad_behind(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
    const int64_t hangs_over = (out - 1) * stride + kernel - in - pad;
    return hangs_over > pad ? hangs_over : pad;
}

static void put_maxpool(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt_pool_config *config = l->config;
    const int64_t *kernel = config->kernel, *stride = config->stride, *pad = config->pad;
    const int64_t behind[] = {pad_behind(l->in.h, l->out.h, kernel[0], stride[0], pad[0]),
                              pad_behind(l->in.w, l->out.w, kernel[1], stride[1], pad[1])};
    const bpt__proto_mark node = open_layer(g, l, "MaxPool", BPT__IMAGE);
    put_window(g, kernel, stride, pad, behind);
    bpt__onnx_close_layer(g, node, l, BPT__IMAGE);
}

static void put_pad_channels(bpt__onnx_graph *g, const bpt_layer *l) {
    const int64_t pads[] = {0, 0, 0, 0, 0, l->out.c - l->in.c, 0, 0},
                  n_pads = 8; /* before, behind */
    char name[BPT_NAME_SIZE];
    snprintf(name, sizeof name, "%s.pads", l->name);
    bpt__onnx_tensor(g, name, BPT__ONNX_I64, &n_pads, 1, pads, false);
    const bpt__proto_mark node = open_layer(g, l, "Pad", BPT__IMAGE); /* with zeros */
    bpt__onnx_input(g, name);
    bpt__onnx_close_layer(g, node, l, BPT__IMAGE);
}

static void put_relu(bpt__onnx_graph *g, const bpt_layer *l) {
    const bpt__onnx_form form = common_form(g, l);
    bpt__onnx_close_layer(g, open_layer(g, l, "Relu", form), l, form);
}

static const struct {
    const bpt_layer_kind *kind;
    void (*put)(bpt__onnx_graph *g, const bpt_layer *l);
} forms[] = {
    {&bpt_layer_add, put_add},
    {&bpt_layer_avgpool, put_avgpool},
    {&bpt_layer_batchnorm, put_batchnorm},
    {&bpt_layer_concat, put_concat},
    {&bpt_layer_conv, put_conv},
    {&bpt_layer_dropout, put_dropout},
    {&bpt_layer_fc, put_fc},
    {&bpt_layer_global_avgpool, put_global_avgpool},
    {&bpt_layer_lrn, put_lrn},
    {&bpt_layer_maxpool, put_maxpool},
    {&bpt_layer_pad_channels, put_pad_channels},
    {&bpt_layer_relu, put_relu},
};

bpt_status bpt__onnx_layer(bpt__onnx_graph *g, const bpt_layer *l) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].kind == l->kind) {
            forms[i].put(g, l);
            return BPT_OK;
        }
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s:%d: layer %s: there is no ONNX form of %s",
                                       g->model->source, l->line, l->name, l->kind->name);
    bpt_hint("the weights themselves are in a safetensors file, which other programs read too");
    return status;
}
