/** @file inner/onnx/onnx_graph.h
 * The graph of an ONNX file while it is written: nodes, tensors and the values between them. For
 * this folder only.
 *
 * The output of a layer has four dimensions, [N, C, H, W], or, behind fc, two, [N, C]: its form.
 * Who needs the other one gets a node that makes it, once. Names have a dot and begin with that of
 * the layer ("fc1.out", "fc1.weight"), so that no layer's name can be one of the graph's own.
 *
 * Threads: one. */
#ifndef BPT_INNER_ONNX_GRAPH_H
#define BPT_INNER_ONNX_GRAPH_H

#include "inner/models/model.h"
#include "inner/onnx/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Numbers of fields that more than one file writes. github.com/onnx/onnx, onnx.proto */
enum {
    BPT__GRAPH_NODE = 1,
    BPT__GRAPH_TENSOR = 5, /* "initializer" */
    BPT__ONNX_F32 = 1,     /* not fields: types of tensors */
    BPT__ONNX_I64 = 7,
};

typedef enum bpt__onnx_form { BPT__IMAGE, BPT__FLAT, BPT__N_FORMS } bpt__onnx_form;

typedef struct bpt__onnx_value {
    bpt__onnx_form own;       /* as its layer puts it out */
    bool there[BPT__N_FORMS]; /* which nodes make */
    char name[BPT__N_FORMS][BPT_NAME_SIZE];
} bpt__onnx_value;

typedef struct bpt__onnx_graph {
    bpt__proto *p; /* the GraphProto is open in it */
    const bpt_model *model;
    const float *weights;
    bpt__onnx_value *made; /* shape [1 + n_layers] */
    bpt__onnx_value **of;  /* likewise: [0] the input, [1 + i] what layer i puts out */
} bpt__onnx_graph;

/** Adds a tensor that is part of the file.
 * @param type BPT__ONNX_F32 or BPT__ONNX_I64
 * @param data shape dims; borrowed until the file is written if @p lent, else copied */
void bpt__onnx_tensor(bpt__onnx_graph *g, const char *name, int type, const int64_t *dims,
                      int n_dims, const void *data, bool lent);

/* A node: bpt__onnx_open(), its inputs in their order, its attributes, bpt__onnx_close(). Nothing
 * else is added to the graph meanwhile. */

/** @param op of ONNX: "Conv" */
bpt__proto_mark bpt__onnx_open(bpt__onnx_graph *g, const char *op, const char *name);
void bpt__onnx_input(bpt__onnx_graph *g, const char *value);

/** The tensor that is segment @p i of a layer. */
void bpt__onnx_weights(bpt__onnx_graph *g, const bpt_layer *l, size_t i);
void bpt__onnx_put_int(bpt__onnx_graph *g, const char *attribute, int64_t value);
void bpt__onnx_put_ints(bpt__onnx_graph *g, const char *attribute, const int64_t *values, size_t n);
void bpt__onnx_put_real(bpt__onnx_graph *g, const char *attribute, double value);
void bpt__onnx_close(bpt__onnx_graph *g, bpt__proto_mark begin, const char *output);

/** Ends the node that makes the output of a layer. */
void bpt__onnx_close_layer(bpt__onnx_graph *g, bpt__proto_mark begin, const bpt_layer *l,
                           bpt__onnx_form form);

/** Notes what value @p i of g->of is, made by a node of that name.
 * @param name "fc1.out"; the other form will have another end */
void bpt__onnx_note(bpt__onnx_graph *g, size_t i, const char *name, bpt__onnx_form form);

/** @param i of g->of @return its name in that form, valid while @p g is; may add the node that
 * makes it */
const char *bpt__onnx_value_in(bpt__onnx_graph *g, size_t i, bpt__onnx_form form);

/** Adds the nodes of a layer. @return BPT_OK, BPT_EUSAGE (its kind has none: names it) */
bpt_status bpt__onnx_layer(bpt__onnx_graph *g, const bpt_layer *l);

#endif
