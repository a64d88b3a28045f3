/* What a graph computes, as its descriptors say. */
#include "tests/inner/gpu_on_cores/libraries/cudnn_graph.h"

#include <string.h>

const void *cudnn_values(const descriptor *d, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t n) {
    for (int i = 0; i < d->n_attributes; i++) {
        const attribute *a = &d->attributes[i];
        if (a->name == name) return a->type == type && a->n == n ? a->bytes : NULL;
    }
    return NULL;
}

/* @return that one value is set, and is what is wanted */
static bool is(const descriptor *d, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int wanted) {
    const int *value = cudnn_values(d, name, type, 1);
    return value && *value == wanted;
}

static bool is_float(const descriptor *d, cudnnBackendAttributeName_t name, float wanted) {
    const float *value = cudnn_values(d, name, CUDNN_TYPE_FLOAT, 1);
    return value && *value == wanted;
}

const int64_t *cudnn_integers(const descriptor *d, cudnnBackendAttributeName_t name, int64_t n) {
    return cudnn_values(d, name, CUDNN_TYPE_INT64, n);
}

const descriptor *cudnn_part(const descriptor *d, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptorType_t type) {
    descriptor *const *value = cudnn_values(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1);
    return value && (*value)->finalized && (*value)->type == type ? *value : NULL;
}

static const struct {
    cudnnBackendAttributeName_t conv, alpha, beta, a, b, out;
} conv_names[] = {
    [BPT_CUDA_CONV_FORWARD] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [BPT_CUDA_CONV_BACKWARD_DATA] = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
    [BPT_CUDA_CONV_BACKWARD_WEIGHTS] = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
};

static bool is_conv(cudnnBackendDescriptorType_t type, bpt_cuda_conv_step *step) {
    *step = type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? BPT_CUDA_CONV_FORWARD
            : type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                ? BPT_CUDA_CONV_BACKWARD_DATA
                : BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    return *step != BPT_CUDA_CONV_BACKWARD_WEIGHTS ||
           type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

static bool is_tensor(const descriptor *d) {
    const int64_t *dims = cudnn_integers(d, CUDNN_ATTR_TENSOR_DIMENSIONS, N_DIMS);
    const int64_t *strides = cudnn_integers(d, CUDNN_ATTR_TENSOR_STRIDES, N_DIMS);
    const int64_t *alignment = cudnn_integers(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    return dims && strides && alignment && *alignment == ALIGNMENT &&
           cudnn_integers(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1) &&
           cudnn_values(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1) &&
           cudnn_values(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1) &&
           strides[1] == 1 && strides[3] == dims[1] && strides[2] == dims[3] * dims[1] &&
           strides[0] == dims[2] * strides[2];
}

static bool is_convolution(const descriptor *d) {
    const int64_t *n = cudnn_integers(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1);
    const int64_t *pre = cudnn_integers(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2);
    const int64_t *post = cudnn_integers(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 2);
    return n && *n == 2 && pre && post && pre[0] == post[0] && pre[1] == post[1] &&
           cudnn_integers(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2) &&
           cudnn_integers(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2) &&
           is(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT) &&
           is(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
              CUDNN_CROSS_CORRELATION);
}

static const descriptor *tensor(const descriptor *d, cudnnBackendAttributeName_t name) {
    return cudnn_part(d, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
}

static bool is_conv_operation(const descriptor *d, bpt_cuda_conv_step step) {
    return cudnn_part(d, conv_names[step].conv, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) &&
           tensor(d, conv_names[step].a) && tensor(d, conv_names[step].b) &&
           tensor(d, conv_names[step].out) && is_float(d, conv_names[step].alpha, 1.0f) &&
           is_float(d, conv_names[step].beta, 0.0f);
}

static bool is_pointwise(const descriptor *d) {
    const bool relu =
        is(d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_RELU_FWD);
    return is(d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT) &&
           (!relu || is(d, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION,
                        CUDNN_PROPAGATE_NAN));
}

static bpt_value_type type_of(const descriptor *t) {
    return is(t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_BFLOAT16) ? BPT_BF16
                                                                                         : BPT_F32;
}

static bool is_virtual(const descriptor *t) {
    return *(const bool *)cudnn_values(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1);
}

static int64_t id_of(const descriptor *t) {
    return *cudnn_integers(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1);
}

static void read_conv(const descriptor *d, graph_work *work) {
    const descriptor *conv =
        cudnn_part(d, conv_names[work->step].conv, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const descriptor *a = tensor(d, conv_names[work->step].a);
    const descriptor *b = tensor(d, conv_names[work->step].b);
    const descriptor *out = tensor(d, conv_names[work->step].out);
    const bool data = work->step == BPT_CUDA_CONV_BACKWARD_DATA;
    const bool weights = work->step == BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    const int64_t *x = cudnn_integers(data ? out : a, CUDNN_ATTR_TENSOR_DIMENSIONS, N_DIMS);
    const int64_t *w = cudnn_integers(weights ? out : b, CUDNN_ATTR_TENSOR_DIMENSIONS, N_DIMS);
    const int64_t *y = cudnn_integers(data      ? a
                                      : weights ? b
                                                : out,
                                      CUDNN_ATTR_TENSOR_DIMENSIONS, N_DIMS);
    bpt_cuda_conv_problem *p = &work->problem;
    *p = (bpt_cuda_conv_problem){.type = type_of(a),
                                 .n = x[0],
                                 .c = x[1],
                                 .h = x[2],
                                 .w = x[3],
                                 .k = w[0],
                                 .p = y[2],
                                 .q = y[3],
                                 .groups = x[1] / w[1],
                                 .kernel = {w[2], w[3]}};
    memcpy(p->pad, cudnn_integers(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2), sizeof p->pad);
    memcpy(p->stride, cudnn_integers(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2),
           sizeof p->stride);
    memcpy(p->dilation, cudnn_integers(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2),
           sizeof p->dilation);
    work->a = id_of(a);
    work->b = id_of(b);
}

/* @param[in,out] sums what is to be read, and then what is written */
static bool read_pointwise(const descriptor *d, graph_work *work, const descriptor **sums) {
    const descriptor *function = cudnn_part(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                            CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    const descriptor *b = tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    if (tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != *sums || !is_virtual(*sums))
        return false;
    *sums = tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (is(function, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
           CUDNN_POINTWISE_RELU_FWD)) {
        work->problem.relu = true;
        return b == NULL;
    }
    work->problem.bias = true;
    if (b) work->bias = id_of(b);
    return b && type_of(b) == BPT_F32 && !work->problem.relu;
}

static bool is_pointwise_operation(const descriptor *d) {
    return cudnn_part(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                      CUDNN_BACKEND_POINTWISE_DESCRIPTOR) &&
           tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) &&
           tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
}

/* A ReLU alone is not done within, nor anything behind a convolution of one channel each. */
static bool can_fuse(const bpt_cuda_conv_problem *p) {
    return (!p->relu || p->bias) && (p->groups == 1 || !p->bias);
}

static cudnnStatus_t understand(descriptor *d) {
    graph_work *work = &d->work;
    descriptor *const *operations = NULL;
    int n = 0;
    while (n++ < 3 && !operations)
        operations =
            cudnn_values(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n);
    n--;
    if (!operations || !cudnn_values(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1) ||
        !operations[0]->finalized || !is_conv(operations[0]->type, &work->step))
        return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "a graph without a convolution");
    read_conv(operations[0], work);
    const descriptor *sums = tensor(operations[0], conv_names[work->step].out);
    for (int i = 1; i < n; i++)
        if (!operations[i]->finalized || !read_pointwise(operations[i], work, &sums))
            return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "operations that do not follow each other");
    if (is_virtual(sums)) return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "a result that nobody gets");
    work->out = id_of(sums);
    work->out_type = type_of(sums);
    return can_fuse(&work->problem) ? CUDNN_STATUS_SUCCESS
                                    : cudnn_refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such graph");
}

/* ---- what graphs are made of ---- */

static bool is_complete(const descriptor *d) {
    bpt_cuda_conv_step step;
    switch (d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return is_tensor(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return is_convolution(d);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        return is_pointwise(d);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return is_pointwise_operation(d);
    default:
        return is_conv(d->type, &step) && is_conv_operation(d, step);
    }
}

cudnnStatus_t cudnn_check_graph(descriptor *d) {
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) return understand(d);
    return is_complete(d) ? CUDNN_STATUS_SUCCESS
                          : cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "something is not set");
}
