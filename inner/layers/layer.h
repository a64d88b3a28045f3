/** @file inner/layers/layer.h
 * What a kind of layer is: a table of functions. A new kind is one file in inner/layers/, named at
 * the end of this header and in inner/layers/registry.c. On a GPU it is also in one of
 * inner/cuda/cuda_layer_*.c, named in cuda_network.h and cuda_layers.c there; else a GPU refuses
 * models that have it. In an ONNX file it is what a row of inner/onnx/onnx_layers.c says; without
 * one there is no such file of models that have it. Some kinds are known by name elsewhere: those
 * that multiply (inner/models/model_part.c), that are computed with others (inner/models/fusion.c),
 * that do not learn from a single sample (inner/models/model_print.c).
 *
 * Letters: N batch, C input channels, K output channels, H W input size, P Q output size, R S
 * kernel.
 *
 * Threads: models are built by one thread and read-only afterwards. */
#ifndef BPT_INNER_LAYER_H
#define BPT_INNER_LAYER_H

#include "base/status.h"
#include "base/yaml.h"
#include "inner/cuts/cuts.h"
#include "inner/loops/value_type.h"
#include "inner/weights/segments.h"

#include <stddef.h>
#include <stdint.h>

/** Shape of one sample of an activation. A flat vector has h = w = 1. */
typedef struct bpt_shape {
    int64_t c, h, w;
} bpt_shape;

/** @return bytes of a sample in an order without gaps */
static inline size_t bpt_shape_bytes(bpt_shape s, bpt_value_type type) {
    return (size_t)(s.c * s.h * s.w) * bpt_value_bytes(type);
}

typedef struct bpt_layer bpt_layer;
typedef struct bpt_builder bpt_builder;       /* inner/step/builder.h */
typedef struct bpt_activation bpt_activation; /* likewise */

/** What names the random numbers of a training step: the same for any number of ranks that share a
 * batch, another for ranks that do not. */
typedef struct bpt_draw {
    uint64_t seed;
    uint64_t step;         /* of the rank, or of all ranks that share the batch */
    uint64_t first_sample; /* of the batch, among those of all ranks */
} bpt_draw;

/** Numbers that a layer's fields may refer to by name. */
typedef struct bpt_model_scope {
    int64_t classes; /* "classes" */
} bpt_model_scope;

typedef struct bpt_layer_kind {
    const char *name;           /* in a model file: "conv" */
    bool joins;                 /* takes two or more inputs; else one */
    bool fuses_add, fuses_relu; /* can do these layers' work too (bpt_fusion) */

    const char *const *fields; /* it knows besides "name" and "input", shape [n_fields] */
    size_t n_fields;
    size_t config_bytes; /* of its own settings, bpt_layer.config */
    size_t said_bytes;   /* of these at its begin, without gaps: what fields say */

    /** Reads the fields. @p fields is a map with known keys only, or NULL for a bare name; config
     * is zeroed. @return BPT_OK, BPT_EUSAGE (file, line and layer named) */
    bpt_status (*parse)(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields);

    /** Sets l->out from l->ins and adds the layer's weights to @p s.
     * @return BPT_OK, BPT_EUSAGE (this input cannot be taken: says shape and why), BPT_ENOMEM */
    bpt_status (*infer)(bpt_layer *l, bpt_segments *s);

    /** @return multiply-adds of the forward pass of one sample, times two */
    uint64_t (*forward_flops)(const bpt_layer *l);

    /** Plans the forward pass: kernels, the layer's output and the tasks that fill it.
     * @param in         the inputs, shape [l->n_inputs]; behind them, if l->fusion.add, that
     * layer's other input
     * @param[out] out   the output, zeroed; may share memory with an input that is not read_only
     * @param[out] state what plan_backward() will be given, from BPT_BUILDER_NEW(); may be left
     * NULL
     * @return BPT_OK, BPT_ENOMEM, BPT_EFULL (too many tasks), BPT_EBACKEND */
    bpt_status (*plan_forward)(const bpt_layer *l, bpt_builder *b, bpt_activation *const *in,
                               bpt_activation *out, void **state);

    /** Plans the backward pass: from out->grad to the grad of each input (unless its wants_grad is
     * false) and to the gradients of the layer's weights. An input's grad may be set to other
     * memory than was reserved for it, also to out->grad; it is grad_read_only then, and who
     * works in place on gradients must look at that.
     * @return as plan_forward() */
    bpt_status (*plan_backward)(const bpt_layer *l, bpt_builder *b, bpt_activation *const *in,
                                const bpt_activation *out, void *state);
} bpt_layer_kind;

/** Layers that are computed together, in one pass over memory (inner/models/fusion.c). The first of
 * them does it all; its output is that of the last. */
typedef struct bpt_fusion {
    bool done;  /* another layer does the work of this one */
    bool relu;  /* this layer does a ReLU behind it too, and behind the add if there is one */
    size_t add; /* 1 + the add of two inputs behind it that this layer does too; 0: none */
    size_t own; /* done, an add: which of its inputs is the layer that does its work */
} bpt_fusion;

/** One layer of a model. */
struct bpt_layer {
    const bpt_layer_kind *kind;
    char name[BPT_NAME_SIZE / 2]; /* unique in the model; without a dot */
    int line;                     /* in the model file */
    size_t index;                 /* in the model's layers */
    size_t number;                /* likewise, in those of the whole model if this is a part of it:
                                   * names the layer's random numbers */
    size_t *inputs; /* 0: the model's input, 1 + i: the output of layer i; shape [n_inputs] */
    bpt_shape *ins; /* of these; shape [n_inputs] */
    size_t n_inputs;
    bpt_shape in, out;                /* in: ins[0] */
    size_t first_segment, n_segments; /* in the model's table */
    void *config;                     /* of config_bytes */
    bpt_fusion fusion;
};

/** All kinds. @return shape [*n] */
const bpt_layer_kind *const *bpt_layer_kinds(size_t *n);

/** Settings of layers that other parts read. */
typedef struct bpt_conv_config {
    int64_t filters;           /* K, at least 1 */
    int64_t kernel[2];         /* R, S */
    int64_t stride[2], pad[2]; /* rows, columns */
    int64_t dilation[2];       /* likewise, at least 1 */
    int64_t groups;            /* G, at least 1; divides C and K */
    bool bias;
    bool cut_is_given[BPT_N_CONV_STEPS]; /* by bpt_model_set_cut() and its like */
    bpt_cut cut[BPT_N_CONV_STEPS];
} bpt_conv_config;

typedef struct bpt_fc_config {
    int64_t outputs; /* K */
    bool bias;
} bpt_fc_config;

typedef struct bpt_pool_config {
    int64_t kernel[2], stride[2], pad[2];
    bool include_pad; /* averages: padding counts as zeros */
    bool ceil;        /* maxima: a last window may hang over the edge */
} bpt_pool_config;

typedef struct bpt_batchnorm_config {
    double momentum; /* part of the new in the running statistics, as PyTorch's */
    double eps;      /* added to the variance */
} bpt_batchnorm_config;

/** Segments of a batch normalisation, in their order. */
enum { BPT__BN_WEIGHT, BPT__BN_BIAS, BPT__BN_RUNNING_MEAN, BPT__BN_RUNNING_VAR, BPT__BN_SEGMENTS };

typedef struct bpt_lrn_config {
    int64_t size; /* channels of a window, odd */
    double alpha, beta, k;
} bpt_lrn_config;

typedef struct bpt_pad_channels_config {
    int64_t channels; /* K, at least C */
} bpt_pad_channels_config;

typedef struct bpt_dropout_config {
    double rate; /* part of the values that is dropped, in [0, 1) */
} bpt_dropout_config;

/* In layers/: add.c, avgpool.c, and so on. */
extern const bpt_layer_kind bpt_layer_add;
extern const bpt_layer_kind bpt_layer_avgpool;
extern const bpt_layer_kind bpt_layer_batchnorm;
extern const bpt_layer_kind bpt_layer_concat;
extern const bpt_layer_kind bpt_layer_conv;
extern const bpt_layer_kind bpt_layer_dropout;
extern const bpt_layer_kind bpt_layer_fc;
extern const bpt_layer_kind bpt_layer_global_avgpool;
extern const bpt_layer_kind bpt_layer_lrn;
extern const bpt_layer_kind bpt_layer_maxpool;
extern const bpt_layer_kind bpt_layer_pad_channels;
extern const bpt_layer_kind bpt_layer_relu;

#endif
