/** @file inner/cuda/cuda_batchnorm.cuh
 * What both passes of batch normalisation compute in the same way: the backward one has to find the
 * signs again that the forward one has had. Only for .cu files. */
#ifndef BPT_INNER_CUDA_CUDA_BATCHNORM_CUH
#define BPT_INNER_CUDA_CUDA_BATCHNORM_CUH

#include "inner/cuda/cuda_batchnorm.h"
#include "inner/cuda/cuda_columns.cuh"

/** Of floats, which take twice the registers, half as many rows at once. */
template <typename T> constexpr int bpt__unroll(int of_bf16) {
    return sizeof(T) == sizeof(bpt_bf16) ? of_bf16 : of_bf16 / 2;
}

/** What x of a channel becomes: by the distance to the mean, as digits would be lost if the mean
 * were part of the shift. */
__device__ inline float bpt__normalise(float x, float mean, float scale, float bias) {
    return __fmaf_rn(__fsub_rn(x, mean), scale, bias);
}

__device__ inline float bpt__scale(float weight, float inverse) {
    return __fmul_rn(weight, inverse);
}

/** @return rows of the samples up to the last that is there */
__device__ inline int64_t bpt__rows_there(const bpt__columns &g, int64_t pixels,
                                          const bpt_cuda_step *step) {
    const int64_t rows = pixels * step->end_sample;
    return rows < g.rows ? rows : g.rows;
}

/** The same launch over these alone; blocks may then be more than steps, and those have no rows. */
__device__ inline bpt__columns bpt__there(bpt__columns g, int unroll, int64_t pixels,
                                          const bpt_cuda_step *step) {
    const int64_t rows = bpt__rows_there(g, pixels, step), run = (int64_t)g.down * unroll;
    if (rows == g.rows) return g;
    g.rows = rows;
    g.steps = (rows + run - 1) / run;
    return g;
}

/* Rows at once and blocks on a processor of the sums, of bf16; the workspace depends on them. */
constexpr int BPT__MOMENTS_UNROLL = 4, BPT__MOMENTS_BLOCKS = 2;
constexpr int BPT__GRADIENT_UNROLL = 4, BPT__GRADIENT_BLOCKS = 1;

#endif
