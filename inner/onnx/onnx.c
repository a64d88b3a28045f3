#include "inner/onnx/onnx.h"

#include "base/memory.h"
#include "inner/onnx/onnx_graph.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");

/* ONNX 1.8, of 2020: all operators that are needed are in it, and runtimes have it. */
enum { FORMAT = 7, OPERATORS = 13 };

enum { MOST_BYTES = INT32_MAX }; /* of a message of Protocol Buffers */

/* ModelProto, OperatorSetIdProto, StringStringEntryProto. */
enum {
    MODEL_FORMAT = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPERATORS = 8,
    MODEL_METADATA = 14
};
enum { OPERATORS_VERSION = 2 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* GraphProto, ValueInfoProto, TypeProto, TypeProto.Tensor, TensorShapeProto and its Dimension. */
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { INFO_NAME = 1, INFO_TYPE = 2, INFO_TEXT = 3 };
enum {
    TYPE_TENSOR = 1,
    TENSOR_OF = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_NAME = 2
};

const char bpt_onnx_head[] = {
    MODEL_FORMAT << 3, FORMAT, MODEL_PRODUCER << 3 | 2, 3, 'b', 'p', 't', 0};

_Static_assert(sizeof bpt_onnx_head == BPT_ONNX_HEAD_BYTES + 1, "the number is that of the bytes");

struct bpt_onnx {
    bpt__proto p;
    const bpt_bytes *parts;
    size_t n_parts;
};

/* Adds what goes in or comes out: the batch, of any size, and @p dims for each sample. */
static void put_info(bpt__proto *p, uint32_t field, const char *name, const int64_t *dims,
                     int n_dims, const char *text) {
    const bpt__proto_mark info = bpt__proto_open(p);
    bpt__proto_text(p, INFO_NAME, name);
    const bpt__proto_mark type = bpt__proto_open(p), tensor = type;
    bpt__proto_number(p, TENSOR_OF, BPT__ONNX_F32);
    const bpt__proto_mark shape = bpt__proto_open(p);
    for (int i = -1; i < n_dims; i++) {
        const bpt__proto_mark dim = bpt__proto_open(p);
        if (i < 0)
            bpt__proto_text(p, DIM_NAME, "N");
        else
            bpt__proto_number(p, DIM_VALUE, dims[i]);
        bpt__proto_close(p, SHAPE_DIM, dim);
    }
    bpt__proto_close(p, TENSOR_SHAPE, shape);
    bpt__proto_close(p, TYPE_TENSOR, tensor);
    bpt__proto_close(p, INFO_TYPE, type);
    bpt__proto_text(p, INFO_TEXT, text);
    bpt__proto_close(p, field, info);
}

/* Adds @p op of @p value and a number for each channel. */
static void put_for_channels(bpt__onnx_graph *g, const char *op, const char *name,
                             const char *value, const float *numbers, const char *output) {
    const int64_t dims[] = {1, g->model->input.c, 1, 1};
    bpt__onnx_tensor(g, name, BPT__ONNX_F32, dims, 4, numbers, false);
    const bpt__proto_mark node = bpt__onnx_open(g, op, output);
    bpt__onnx_input(g, value);
    bpt__onnx_input(g, name);
    bpt__onnx_close(g, node, output);
}

static void put_input(bpt__onnx_graph *g, const bpt_onnx_source *source) {
    const bpt_shape in = g->model->input;
    put_info(g->p, GRAPH_INPUT, "input", (int64_t[]){in.c, in.h, in.w}, 3, source->input_text);
    put_for_channels(g, "Mul", "input.scale", "input", source->scale, "input.scaled");
    put_for_channels(g, "Add", "input.shift", "input.scaled", source->shift, "input.shifted");
    bpt__onnx_note(g, 0, "input.shifted", BPT__IMAGE);
}

static void put_output(bpt__onnx_graph *g) {
    static const char name[] = "probabilities";
    const char *logits = bpt__onnx_value_in(g, g->model->n_layers, BPT__FLAT);
    const bpt__proto_mark node = bpt__onnx_open(g, "Softmax", "probabilities.softmax");
    bpt__onnx_input(g, logits);
    bpt__onnx_put_int(g, "axis", 1);
    bpt__onnx_close(g, node, name);
    put_info(g->p, GRAPH_OUTPUT, name, &g->model->classes, 1,
             "of each class, in the order of the metadata \"classes\"");
}

static void put_weights(bpt__onnx_graph *g) {
    const bpt_segments *s = &g->model->segments;
    for (size_t i = 0; i < s->n; i++)
        bpt__onnx_tensor(g, s->items[i].name, BPT__ONNX_F32, s->items[i].dims, s->items[i].n_dims,
                         g->weights + s->items[i].offset, true);
}

static bpt_status put_graph(bpt__onnx_graph *g, const bpt_onnx_source *source) {
    const bpt__proto_mark graph = bpt__proto_open(g->p);
    bpt__proto_text(g->p, GRAPH_NAME, g->model->name);
    put_input(g, source);
    for (size_t i = 0; i < g->model->n_layers; i++)
        BPT_TRY(bpt__onnx_layer(g, &g->model->layers[i]));
    put_output(g);
    put_weights(g);
    bpt__proto_close(g->p, MODEL_GRAPH, graph);
    return BPT_OK;
}

static bpt_status make_graph(bpt__proto *p, const bpt_onnx_source *source) {
    const size_t n_values = 1 + source->model->n_layers;
    bpt__onnx_graph g = {.p = p, .model = source->model, .weights = source->weights};
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("ONNX graph", n_values, &g.made), free_values);
    BPT_TRY_GOTO(status, BPT_NEW("ONNX graph", n_values, &g.of), free_values);
    status = put_graph(&g, source);
free_values:
    bpt_free(g.of);
    bpt_free(g.made);
    return status;
}

static void put_head(bpt__proto *p) {
    bpt__proto_number(p, MODEL_FORMAT, FORMAT);
    bpt__proto_text(p, MODEL_PRODUCER, "bpt");
    bpt__proto_text(p, MODEL_PRODUCER_VERSION, BPT_VERSION);
    const bpt__proto_mark operators = bpt__proto_open(p);
    bpt__proto_number(p, OPERATORS_VERSION, OPERATORS);
    bpt__proto_close(p, MODEL_OPERATORS, operators);
}

static void put_metadata(bpt__proto *p, const bpt_metadata *metadata, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const bpt__proto_mark entry = bpt__proto_open(p);
        bpt__proto_text(p, ENTRY_KEY, metadata[i].key);
        bpt__proto_text(p, ENTRY_VALUE, metadata[i].value);
        bpt__proto_close(p, MODEL_METADATA, entry);
    }
}

static bpt_status check_size(const bpt__proto *p, const bpt_model *model) {
    const size_t size = bpt__proto_size(p);
    if (size <= MOST_BYTES) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE,
        "model %s has %zu weights: an ONNX file of it would have %zu bytes, %d are the most",
        model->name, model->segments.n_elements, size, (int)MOST_BYTES);
    bpt_hint("the weights themselves are in a safetensors file, which may be larger");
    return status;
}

bpt_status bpt_onnx_create(const bpt_onnx_source *source, bpt_onnx **out) {
    bpt_onnx *onnx;
    bpt_status status;
    BPT_TRY(BPT_NEW("ONNX file", 1, &onnx));
    put_head(&onnx->p);
    BPT_TRY_GOTO(status, make_graph(&onnx->p, source), free_onnx);
    put_metadata(&onnx->p, source->metadata, source->n_metadata);
    BPT_TRY_GOTO(status, check_size(&onnx->p, source->model), free_onnx);
    BPT_TRY_GOTO(status, bpt__proto_end(&onnx->p, &onnx->parts, &onnx->n_parts), free_onnx);
    *out = onnx;
    return BPT_OK;
free_onnx:
    bpt_onnx_free(onnx);
    return status;
}

const bpt_bytes *bpt_onnx_parts(const bpt_onnx *onnx, size_t *n) {
    *n = onnx->n_parts;
    return onnx->parts;
}

void bpt_onnx_free(bpt_onnx *onnx) {
    if (!onnx) return;
    bpt__proto_free(&onnx->p);
    bpt_free(onnx);
}
