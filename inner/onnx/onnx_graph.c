#include "inner/onnx/onnx_graph.h"

#include <stdio.h>
#include <string.h>

/* NodeProto, AttributeProto, TensorProto; ATTRIBUTE_IS has one of the last three. */
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_IS = 20
};
enum { IS_FLOAT = 1, IS_INT = 2, IS_INTS = 7 };
enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };

void bpt__onnx_tensor(bpt__onnx_graph *g, const char *name, int type, const int64_t *dims,
                      int n_dims, const void *data, bool lent) {
    const bpt__proto_mark tensor = bpt__proto_open(g->p);
    size_t size = type == BPT__ONNX_I64 ? sizeof(int64_t) : sizeof(float);
    for (int i = 0; i < n_dims; i++) {
        bpt__proto_number(g->p, TENSOR_DIM, dims[i]);
        size *= (size_t)dims[i];
    }
    bpt__proto_number(g->p, TENSOR_TYPE, type);
    bpt__proto_text(g->p, TENSOR_NAME, name);
    (lent ? bpt__proto_lend : bpt__proto_bytes)(g->p, TENSOR_RAW, data, size);
    bpt__proto_close(g->p, BPT__GRAPH_TENSOR, tensor);
}

bpt__proto_mark bpt__onnx_open(bpt__onnx_graph *g, const char *op, const char *name) {
    const bpt__proto_mark node = bpt__proto_open(g->p);
    bpt__proto_text(g->p, NODE_NAME, name);
    bpt__proto_text(g->p, NODE_OP, op);
    return node;
}

void bpt__onnx_input(bpt__onnx_graph *g, const char *value) {
    bpt__proto_text(g->p, NODE_INPUT, value);
}

void bpt__onnx_weights(bpt__onnx_graph *g, const bpt_layer *l, size_t i) {
    bpt__onnx_input(g, g->model->segments.items[l->first_segment + i].name);
}

static bpt__proto_mark open_attribute(bpt__onnx_graph *g, const char *name, int is) {
    const bpt__proto_mark attribute = bpt__proto_open(g->p);
    bpt__proto_text(g->p, ATTRIBUTE_NAME, name);
    bpt__proto_number(g->p, ATTRIBUTE_IS, is);
    return attribute;
}

void bpt__onnx_put_int(bpt__onnx_graph *g, const char *attribute, int64_t value) {
    const bpt__proto_mark begin = open_attribute(g, attribute, IS_INT);
    bpt__proto_number(g->p, ATTRIBUTE_I, value);
    bpt__proto_close(g->p, NODE_ATTRIBUTE, begin);
}

void bpt__onnx_put_ints(bpt__onnx_graph *g, const char *attribute, const int64_t *values,
                        size_t n) {
    const bpt__proto_mark begin = open_attribute(g, attribute, IS_INTS);
    for (size_t i = 0; i < n; i++) bpt__proto_number(g->p, ATTRIBUTE_INTS, values[i]);
    bpt__proto_close(g->p, NODE_ATTRIBUTE, begin);
}

void bpt__onnx_put_real(bpt__onnx_graph *g, const char *attribute, double value) {
    const bpt__proto_mark begin = open_attribute(g, attribute, IS_FLOAT);
    bpt__proto_float(g->p, ATTRIBUTE_F, (float)value);
    bpt__proto_close(g->p, NODE_ATTRIBUTE, begin);
}

void bpt__onnx_close(bpt__onnx_graph *g, bpt__proto_mark begin, const char *output) {
    bpt__proto_text(g->p, NODE_OUTPUT, output);
    bpt__proto_close(g->p, BPT__GRAPH_NODE, begin);
}

void bpt__onnx_note(bpt__onnx_graph *g, size_t i, const char *name, bpt__onnx_form form) {
    bpt__onnx_value *v = &g->made[i];
    const int length = (int)strcspn(name, ".");
    const bpt__onnx_form other = form == BPT__FLAT ? BPT__IMAGE : BPT__FLAT;
    v->own = form;
    v->there[form] = true;
    snprintf(v->name[form], sizeof v->name[form], "%s", name);
    snprintf(v->name[other], sizeof v->name[other], "%.*s.%s", length, name,
             other == BPT__FLAT ? "flat" : "image");
    g->of[i] = v;
}

void bpt__onnx_close_layer(bpt__onnx_graph *g, bpt__proto_mark begin, const bpt_layer *l,
                           bpt__onnx_form form) {
    char name[BPT_NAME_SIZE];
    snprintf(name, sizeof name, "%s.out", l->name);
    bpt__onnx_close(g, begin, name);
    bpt__onnx_note(g, 1 + l->index, name, form);
}

/* Channel by channel, row by row: as fc takes them. */
static void make_flat(bpt__onnx_graph *g, const bpt__onnx_value *v) {
    const bpt__proto_mark node = bpt__onnx_open(g, "Flatten", v->name[BPT__FLAT]);
    bpt__onnx_input(g, v->name[BPT__IMAGE]);
    bpt__onnx_put_int(g, "axis", 1);
    bpt__onnx_close(g, node, v->name[BPT__FLAT]);
}

/* An image of one pixel. */
static void make_image(bpt__onnx_graph *g, const bpt__onnx_value *v) {
    static const int64_t axes[] = {2, 3}, n_axes = 2;
    char name[BPT_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s.axes", (int)strcspn(v->name[BPT__IMAGE], "."),
             v->name[BPT__IMAGE]);
    bpt__onnx_tensor(g, name, BPT__ONNX_I64, &n_axes, 1, axes, false);
    const bpt__proto_mark node = bpt__onnx_open(g, "Unsqueeze", v->name[BPT__IMAGE]);
    bpt__onnx_input(g, v->name[BPT__FLAT]);
    bpt__onnx_input(g, name);
    bpt__onnx_close(g, node, v->name[BPT__IMAGE]);
}

const char *bpt__onnx_value_in(bpt__onnx_graph *g, size_t i, bpt__onnx_form form) {
    bpt__onnx_value *v = g->of[i];
    if (!v->there[form]) (form == BPT__FLAT ? make_flat : make_image)(g, v);
    v->there[form] = true;
    return v->name[form];
}
