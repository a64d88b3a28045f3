/** @file inner/cuda/cuda_conv_engine.h
 * How a step of a convolution is computed: by an engine of cuDNN, and what comes behind it. Found
 * by cuda_conv_search.c, kept and run by cuda_conv.c. Private to inner/cuda/.
 *
 * A step can be had in up to two ways: forward with bias and ReLU in one engine or behind it, the
 * weights' gradient as floats or converted to floats behind the engine.
 *
 * Threads: as cuda_library.h. */
#ifndef BPT_INNER_CUDA_CUDA_CONV_ENGINE_H
#define BPT_INNER_CUDA_CUDA_CONV_ENGINE_H

#include "inner/cuda/cuda_graph.h"

struct bpt__conv_engine {
    bpt__conv_graph graph;
    bpt__conv_plan plan;
    uint64_t ns;            /* that it took, with what comes behind it, measured by itself */
    bpt__conv_engine *next; /* in the library's list */
};

/** Finds the fastest engine, or takes the one that is known to be.
 * @param[in,out] engine zeroed; where that fails it may hold a plan and a graph, which are the
 * caller's
 * @return BPT_OK, BPT_EBACKEND (no engine can do it), BPT_ENOMEM, BPT_EFULL */
bpt_status bpt__conv_search(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                            bpt_cuda_conv_step step, bpt__conv_engine *engine);

/** @return values of the filters */
int64_t bpt__conv_filter_values(const bpt_cuda_conv_problem *problem);

/** @return whether the weights' gradient is converted behind the engine */
bool bpt__conv_is_converted(const bpt__conv_form *form);

/** @return bytes at the workspace's start for a gradient that is yet to be converted */
size_t bpt__conv_converted_bytes(const bpt__conv_form *form);

/** Puts it on a stream, with what comes behind. Arguments as of bpt_cuda_conv_run().
 * @param workspace of the plan's bytes behind bpt__conv_converted_bytes() */
bpt_status bpt__conv_run_plan(bpt_cuda_stream stream, const bpt__conv_graph *graph,
                              const bpt__conv_plan *plan, const void *a, const void *b,
                              const float *bias, void *out, void *workspace);

#endif
