#include "inner/cuda/cuda_graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { N_DIMS = 4, ALIGNMENT = 16 };

/* ---- descriptors ---- */

void bpt__cudnn_refused(bpt_cuda_library *library, const char *what, cudnnStatus_t code) {
    char more[BPT__REFUSAL_SIZE / 2] = "";
    library->f.cudnnGetLastErrorString(more, sizeof more);
    more[sizeof more - 1] = '\0';
    snprintf(library->refusal, sizeof library->refusal, "%s: %s %s", what,
             library->f.cudnnGetErrorString(code), more);
}

cudnnBackendDescriptor_t bpt__descriptor(bpt_cuda_library *library,
                                         cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = NULL;
    const cudnnStatus_t code = library->f.cudnnBackendCreateDescriptor(type, &made);
    if (code == CUDNN_STATUS_SUCCESS) return made;
    bpt__cudnn_refused(library, "a descriptor", code);
    return NULL;
}

void bpt__descriptor_free(bpt_cuda_library *library, cudnnBackendDescriptor_t descriptor) {
    if (descriptor) library->f.cudnnBackendDestroyDescriptor(descriptor);
}

bool bpt__set(bpt_cuda_library *library, cudnnBackendDescriptor_t descriptor,
              cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
              const void *values) {
    if (!descriptor) return false;
    const cudnnStatus_t code =
        library->f.cudnnBackendSetAttribute(descriptor, name, type, n, values);
    if (code == CUDNN_STATUS_SUCCESS) return true;
    char what[32];
    snprintf(what, sizeof what, "attribute %d", (int)name);
    bpt__cudnn_refused(library, what, code);
    return false;
}

bool bpt__finalize(bpt_cuda_library *library, cudnnBackendDescriptor_t descriptor,
                   const char *what) {
    if (!descriptor) return false;
    const cudnnStatus_t code = library->f.cudnnBackendFinalize(descriptor);
    if (code == CUDNN_STATUS_SUCCESS) return true;
    bpt__cudnn_refused(library, what, code);
    return false;
}

/* ---- a graph's parts: once one is refused, the others are for nothing ---- */

static cudnnBackendDescriptor_t add_part(bpt__conv_graph *graph,
                                         cudnnBackendDescriptorType_t type) {
    assert(graph->n_parts < BPT__GRAPH_PARTS);
    cudnnBackendDescriptor_t part = bpt__descriptor(graph->library, type);
    if (part) graph->parts[graph->n_parts++] = part;
    graph->failed |= !part;
    return part;
}

static void set(bpt__conv_graph *graph, cudnnBackendDescriptor_t part,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                const void *values) {
    if (!graph->failed) graph->failed = !bpt__set(graph->library, part, name, type, n, values);
}

static void set_part(bpt__conv_graph *graph, cudnnBackendDescriptor_t part,
                     cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
    set(graph, part, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(bpt__conv_graph *graph, cudnnBackendDescriptor_t part, const char *what) {
    if (!graph->failed) graph->failed = !bpt__finalize(graph->library, part, what);
}

static void finish_operation(bpt__conv_graph *graph, cudnnBackendDescriptor_t operation,
                             const char *what) {
    assert(graph->n_operations < BPT__GRAPH_OPERATIONS);
    finalize(graph, operation, what);
    graph->operations[graph->n_operations++] = operation;
}

/* ---- tensors ---- */

typedef enum shape { INPUT, OUTPUT, FILTERS, CHANNELS } shape;

/* cuDNN's order of dimensions is [N, C, H, W], whatever the order in memory. */
static void dimensions_of(const bpt_cuda_conv_problem *p, shape which, int64_t dims[N_DIMS]) {
    const int64_t all[][N_DIMS] = {
        [INPUT] = {p->n, p->c, p->h, p->w},
        [OUTPUT] = {p->n, p->k, p->p, p->q},
        [FILTERS] = {p->k, p->c / p->groups, p->kernel[0], p->kernel[1]},
        [CHANNELS] = {1, p->k, 1, 1},
    };
    memcpy(dims, all[which], sizeof all[which]);
}

static cudnnDataType_t data_type(bpt_value_type type) {
    return type == BPT_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static cudnnBackendDescriptor_t add_tensor(bpt__conv_graph *graph, int64_t id, shape which,
                                           bpt_value_type value_type, bool virtual) {
    int64_t dims[N_DIMS];
    dimensions_of(&graph->form.problem, which, dims);
    const int64_t row = dims[3] * dims[1], alignment = ALIGNMENT;
    const int64_t strides[N_DIMS] = {dims[2] * row, 1, row, dims[1]}; /* channels are innermost */
    const cudnnDataType_t type = data_type(value_type);
    cudnnBackendDescriptor_t tensor = add_part(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(graph, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(graph, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, N_DIMS, dims);
    set(graph, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, N_DIMS, strides);
    set(graph, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(graph, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(graph, tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &virtual);
    finalize(graph, tensor, "a tensor");
    return tensor;
}

/* ---- operations ---- */

/* How a step's operation names its tensors: those of what is called a, b and out here. */
typedef struct step_names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t convolution, alpha, beta, a, b, out;
    shape a_shape, b_shape, out_shape;
} step_names;

static const step_names names_of[] = {
    [BPT_CUDA_CONV_FORWARD] =
        {
            .operation = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            .convolution = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            .a = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            .b = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            .out = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            .a_shape = INPUT,
            .b_shape = FILTERS,
            .out_shape = OUTPUT,
        },
    [BPT_CUDA_CONV_BACKWARD_DATA] =
        {
            .operation = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            .convolution = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            .a = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            .b = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            .out = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            .a_shape = OUTPUT,
            .b_shape = FILTERS,
            .out_shape = INPUT,
        },
    [BPT_CUDA_CONV_BACKWARD_WEIGHTS] =
        {
            .operation = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            .convolution = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            .a = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            .b = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            .out = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            .a_shape = INPUT,
            .b_shape = OUTPUT,
            .out_shape = FILTERS,
        },
};

static cudnnBackendDescriptor_t add_convolution(bpt__conv_graph *graph) {
    const bpt_cuda_conv_problem *p = &graph->form.problem;
    const int64_t n = 2;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t conv = add_part(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, p->pad);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, p->pad);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, p->dilation);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, p->stride);
    finalize(graph, conv, "a convolution");
    return conv;
}

static void add_products(bpt__conv_graph *graph, cudnnBackendDescriptor_t out) {
    const step_names *names = &names_of[graph->form.step];
    const bpt_value_type type = graph->form.problem.type;
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t conv = add_convolution(graph);
    cudnnBackendDescriptor_t a = add_tensor(graph, BPT__TENSOR_A, names->a_shape, type, false);
    cudnnBackendDescriptor_t b = add_tensor(graph, BPT__TENSOR_B, names->b_shape, type, false);
    cudnnBackendDescriptor_t operation = add_part(graph, names->operation);
    set_part(graph, operation, names->convolution, conv);
    set_part(graph, operation, names->a, a);
    set_part(graph, operation, names->b, b);
    set_part(graph, operation, names->out, out);
    set(graph, operation, names->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(graph, operation, names->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish_operation(graph, operation, "a convolution's operation");
}

/* y = mode(x, b). @param b NULL: of one operand */
static void add_pointwise(bpt__conv_graph *graph, cudnnPointwiseMode_t mode,
                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                          cudnnBackendDescriptor_t y) {
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    cudnnBackendDescriptor_t pointwise = add_part(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(graph, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(graph, pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (!b) /* a ReLU of ours lets a NaN through, so that a network that diverges is noticed */
        set(graph, pointwise, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1,
            &nan);
    finalize(graph, pointwise, "a pointwise function");
    cudnnBackendDescriptor_t operation =
        add_part(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_part(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    set_part(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) set_part(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_part(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    finish_operation(graph, operation, "a pointwise operation");
}

static void add_operations(bpt__conv_graph *graph) {
    const bpt__conv_form *form = &graph->form;
    const bool bias = form->fused && form->problem.bias, relu = form->fused && form->problem.relu;
    cudnnBackendDescriptor_t out =
        add_tensor(graph, BPT__TENSOR_OUT, names_of[form->step].out_shape, form->out_type, false);
    cudnnBackendDescriptor_t biased =
        relu && bias ? add_tensor(graph, BPT__TENSOR_BIASED, OUTPUT, BPT_F32, true) : out;
    cudnnBackendDescriptor_t sums =
        relu || bias ? add_tensor(graph, BPT__TENSOR_SUMS, OUTPUT, BPT_F32, true) : out;
    add_products(graph, sums);
    if (bias) {
        cudnnBackendDescriptor_t added =
            add_tensor(graph, BPT__TENSOR_BIAS, CHANNELS, BPT_F32, false);
        add_pointwise(graph, CUDNN_POINTWISE_ADD, sums, added, biased);
    }
    if (relu) add_pointwise(graph, CUDNN_POINTWISE_RELU_FWD, bias ? biased : sums, NULL, out);
}

bool bpt__graph_build(bpt_cuda_library *library, const bpt__conv_form *form,
                      bpt__conv_graph *graph) {
    *graph = (bpt__conv_graph){.library = library, .form = *form};
    add_operations(graph);
    graph->whole = add_part(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, graph->whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
        &library->cudnn);
    set(graph, graph->whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        graph->n_operations, graph->operations);
    finalize(graph, graph->whole, "a graph");
    return !graph->failed;
}

void bpt__graph_free(bpt__conv_graph *graph) {
    while (graph->n_parts > 0) bpt__descriptor_free(graph->library, graph->parts[--graph->n_parts]);
}
