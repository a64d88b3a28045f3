/** @file tests/inner/gpu_on_cores/include/cuda_runtime.h
 * What kernels of inner/cuda/ use of CUDA's C++, for a C++ compiler: a kernel is a plain function,
 * and its threads run one after another (tests/inner/gpu_on_cores/grid.h).
 *
 * Shared memory is static: one block runs at a time.
 *
 * Threads: what a kernel calls, only while it runs. */
#ifndef TESTS_INNER_GPU_ON_CORES_CUDA_RUNTIME_H
#define TESTS_INNER_GPU_ON_CORES_CUDA_RUNTIME_H

#include "tests/inner/gpu_on_cores/grid.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

/* ---- vectors, as well aligned as CUDA's ---- */

struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct alignas(8) ushort4 {
    uint16_t x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};

inline float2 make_float2(float x, float y) {
    return {x, y};
}

/* ---- functions ---- */

using std::isfinite;

inline float __fmaf_rn(float x, float y, float z) {
    return std::fma(x, y, z);
}

inline float __fadd_rn(float x, float y) {
    return x + y;
}

inline float __fmul_rn(float x, float y) {
    return x * y;
}

inline float __fsub_rn(float x, float y) {
    return x - y;
}

inline float rsqrtf(float x) {
    return 1.0f / std::sqrt(x);
}

inline float __uint_as_float(uint32_t x) {
    float y;
    memcpy(&y, &x, sizeof y);
    return y;
}

inline int min(int x, int y) {
    return x < y ? x : y;
}

template <typename T> T atomicMax(T *at, T x) {
    const T old = *at;
    if (x > old) *at = x;
    return old;
}

/* ---- threads of a block ---- */

inline void __syncthreads() {
    gpu_on_cores::wait_for_block();
}

inline int __syncthreads_and(int x) {
    return gpu_on_cores::wait_for_block(x != 0);
}

template <typename T> T __shfl_xor_sync(unsigned lanes, T x, int other) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t word = 0;
    memcpy(&word, &x, sizeof x);
    word = gpu_on_cores::exchange(lanes, word, other);
    memcpy(&x, &word, sizeof x);
    return x;
}

/* ---- launches ---- */

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};

/** As CUDA's own: arguments become what the kernel takes, and are copied. */
template <typename... P, typename... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                               A &&...args) {
    const std::tuple<std::decay_t<P>...> values(std::forward<A>(args)...);
    return gpu_on_cores::launch((const void *)kernel, config->gridDim, config->blockDim,
                                config->stream, [kernel, values] { std::apply(kernel, values); });
}

#endif
