/** @file tests/inner/gpu_on_cores/libraries/cudnn_graph.h
 * Descriptors of cuDNN's that is made up, and what graphs of them compute (cudnn_graph.c).
 *
 * Threads: one. */
#ifndef TESTS_INNER_GPU_ON_CORES_CUDNN_GRAPH_H
#define TESTS_INNER_GPU_ON_CORES_CUDNN_GRAPH_H

#include "inner/cuda/cuda_library.h"
#include "tests/inner/gpu_on_cores/libraries/libraries.h"

#include <cudnn.h>

enum { MAX_ATTRIBUTES = 12, VALUE_BYTES = 64, N_DIMS = 4, ALIGNMENT = 16 };

typedef struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n;
    char bytes[VALUE_BYTES];
} attribute;

/* What a graph computes, and the ids of its tensors. */
typedef struct graph_work {
    bpt_cuda_conv_problem problem; /* .bias and .relu: within */
    bpt_cuda_conv_step step;
    bpt_value_type out_type;
    int64_t a, b, bias, out;
} graph_work;

typedef struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool finalized;
    int n_attributes;
    attribute attributes[MAX_ATTRIBUTES];
    graph_work work;                /* of a graph */
    const struct descriptor *graph; /* of engines and what is made of them */
    enum libraries_engine engine;
} descriptor;

/** @return values that were set, so many of that type; NULL: others were, or none */
const void *cudnn_values(const descriptor *d, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t n);
const int64_t *cudnn_integers(const descriptor *d, cudnnBackendAttributeName_t name, int64_t n);

/** @return another descriptor that was set, if it is finalized and of that type; else NULL */
const descriptor *cudnn_part(const descriptor *d, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptorType_t type);

/** Keeps the words for cudnnGetLastErrorString(). @return status */
cudnnStatus_t cudnn_refuse(cudnnStatus_t status, const char *words);

/** Whether a descriptor of what graphs are made of has all that it needs; of a graph itself sets
 * .work. @return CUDNN_STATUS_NOT_SUPPORTED: it has, and no engine does it */
cudnnStatus_t cudnn_check_graph(descriptor *d);

#endif
