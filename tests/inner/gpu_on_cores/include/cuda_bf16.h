/** @file tests/inner/gpu_on_cores/include/cuda_bf16.h
 * Rounding to bfloat16, for kernels of inner/cuda/ that run on cores.
 *
 * Threads: any. */
#ifndef TESTS_INNER_GPU_ON_CORES_CUDA_BF16_H
#define TESTS_INNER_GPU_ON_CORES_CUDA_BF16_H

#include "inner/loops/value_type.h"

struct __nv_bfloat16 {
    bpt_bf16 bits;
};

inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    return {bpt_to_bf16(x)};
}

inline bpt_bf16 __bfloat16_as_ushort(__nv_bfloat16 x) {
    return x.bits;
}

#endif
