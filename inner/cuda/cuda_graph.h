/** @file inner/cuda/cuda_graph.h
 * A step of a convolution as an operation graph of cuDNN, and the plans by which engines run it.
 *
 * That cuDNN cannot do something is no error here but an answer: library->refusal then holds its
 * words.
 *
 * Threads: as cuda_library.h. */
#ifndef BPT_INNER_CUDA_CUDA_GRAPH_H
#define BPT_INNER_CUDA_CUDA_GRAPH_H

#include "inner/cuda/cuda_library_private.h"

/** What is to be in a graph. */
typedef struct bpt__conv_form {
    bpt_cuda_conv_problem problem;
    bpt_cuda_conv_step step;
    bool fused;              /* forward: problem.bias and problem.relu are in it */
    bpt_value_type out_type; /* as the engine writes it */
} bpt__conv_form;

enum { BPT__GRAPH_PARTS = 16, BPT__GRAPH_OPERATIONS = 3, BPT__MAX_PLANS = 6 };

/** Its descriptors live as long as a plan of it. */
typedef struct bpt__conv_graph {
    bpt_cuda_library *library;
    bpt__conv_form form;
    cudnnBackendDescriptor_t parts[BPT__GRAPH_PARTS], operations[BPT__GRAPH_OPERATIONS], whole;
    int n_parts, n_operations;
    bool failed;
} bpt__conv_graph;

/** @param[out] graph bpt__graph_free(), also where the answer is false
 * @return whether cuDNN has such graphs */
bool bpt__graph_build(bpt_cuda_library *library, const bpt__conv_form *form,
                      bpt__conv_graph *graph);
void bpt__graph_free(bpt__conv_graph *graph);

/** Where cuDNN names engines. */
typedef enum bpt__engine_list {
    BPT__ENGINES_LIKELY,   /* heuristics, in the order in which they are thought fast */
    BPT__ENGINES_FALLBACK, /* those that can do most things */
    BPT__ENGINES_ALL,
} bpt__engine_list;

/** An engine with its settings, ready to run. */
typedef struct bpt__conv_plan {
    cudnnBackendDescriptor_t engine, config, plan; /* NULL: none of its own */
    size_t workspace;                              /* bytes */
    bpt__engine_list list;                         /* that it is from, and its */
    int64_t place;                                 /* number there */
} bpt__conv_plan;

/** Plans of engines that may be used, in the order in which cuDNN thinks them fast; the second, of
 * all engines that cuDNN has.
 * @param[out] plans shape [BPT__MAX_PLANS], bpt__plan_free() each; @return how many there are */
size_t bpt__graph_plans(bpt__conv_graph *graph, bpt__conv_plan *plans);
size_t bpt__graph_all_plans(bpt__conv_graph *graph, bpt__conv_plan *plans);

/** The plan of one engine. @param[out] plan bpt__plan_free(), where the answer is true
 * @return whether there is such an engine, and it may be used */
bool bpt__graph_plan(bpt__conv_graph *graph, bpt__engine_list list, int64_t place,
                     bpt__conv_plan *plan);
void bpt__plan_free(bpt_cuda_library *library, bpt__conv_plan *plan);

/** Puts it on a stream. Arguments as of bpt_cuda_conv_run(); @param bias NULL unless fused with it
 * @param workspace of plan->workspace bytes */
bpt_status bpt__plan_run(bpt_cuda_stream stream, const bpt__conv_graph *graph,
                         const bpt__conv_plan *plan, const void *a, const void *b,
                         const float *bias, void *out, void *workspace);

/** Keeps the words of cuDNN's last refusal. */
void bpt__cudnn_refused(bpt_cuda_library *library, const char *what, cudnnStatus_t code);

/** @return a descriptor, NULL: refused */
cudnnBackendDescriptor_t bpt__descriptor(bpt_cuda_library *library,
                                         cudnnBackendDescriptorType_t type);
void bpt__descriptor_free(bpt_cuda_library *library, cudnnBackendDescriptor_t descriptor);

/** @return whether cuDNN has taken it; @param descriptor NULL: not */
bool bpt__set(bpt_cuda_library *library, cudnnBackendDescriptor_t descriptor,
              cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
              const void *values);
bool bpt__finalize(bpt_cuda_library *library, cudnnBackendDescriptor_t descriptor,
                   const char *what);

/** The ids of a graph's tensors. */
enum bpt__tensor_id {
    BPT__TENSOR_A = 1,
    BPT__TENSOR_B,
    BPT__TENSOR_BIAS,
    BPT__TENSOR_OUT,
    BPT__TENSOR_SUMS,   /* of the products; not in memory */
    BPT__TENSOR_BIASED, /* before the ReLU; not in memory */
};

#endif
