/** @file inner/cuda/cuda_fours.cuh
 * Ranges of floats, four at a time; the last ones of a segment may be fewer, and what lies behind
 * them is neither looked at nor written. Only for .cu files. */
#ifndef BPT_INNER_CUDA_CUDA_FOURS_CUH
#define BPT_INNER_CUDA_CUDA_FOURS_CUH

#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_update_kernels.h"

/** @return where run @p i of this thread begins, from the begin of its block's range */
__device__ inline int bpt__four(int i) {
    return 4 * (i * BPT__UPDATE_THREADS + (int)threadIdx.x);
}

/** Reads up to four floats; those from @p n on are 0. @param from aligned to 16 bytes */
__device__ inline float4 bpt__read_four(const float *from, int n) {
    if (n >= 4) return *(const float4 *)from;
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    if (n > 0) x.x = from[0];
    if (n > 1) x.y = from[1];
    if (n > 2) x.z = from[2];
    return x;
}

__device__ inline void bpt__write_four(float4 x, int n, float *to) {
    if (n >= 4) {
        *(float4 *)to = x;
        return;
    }
    if (n > 0) to[0] = x.x;
    if (n > 1) to[1] = x.y;
    if (n > 2) to[2] = x.z;
}

/** Rounded to bfloat16. @param to aligned to 8 bytes */
__device__ inline void bpt__narrow_four(float4 x, int n, bpt_bf16 *to) {
    ushort4 y;
    bpt__to(x.x, &y.x);
    bpt__to(x.y, &y.y);
    bpt__to(x.z, &y.z);
    bpt__to(x.w, &y.w);
    if (n >= 4) {
        *(ushort4 *)to = y;
        return;
    }
    if (n > 0) to[0] = y.x;
    if (n > 1) to[1] = y.y;
    if (n > 2) to[2] = y.z;
}

__device__ inline bool bpt__finite_four(float4 x) {
    return isfinite(x.x) && isfinite(x.y) && isfinite(x.z) && isfinite(x.w);
}

#endif
