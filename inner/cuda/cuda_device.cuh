/** @file inner/cuda/cuda_device.cuh
 * What kernels share: values of both types as floats, eight at a time where addresses allow; sums
 * over a block in one order; sizes of launches.
 *
 * A kernel is written once, for T (float or bpt_bf16, what is in memory) and WIDTH (values that a
 * thread takes at once: 1, or BPT__WIDTH, aligned to 16 bytes; some take 4 or 2 too). Only for .cu
 * files. */
#ifndef BPT_INNER_CUDA_CUDA_DEVICE_CUH
#define BPT_INNER_CUDA_CUDA_DEVICE_CUH

#include "inner/cuda/cuda.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <type_traits>
#include <utility>

/* They fill any GPU. Tests without one are built with few, so that loops take more than a round. */
#ifndef BPT_CUDA_MAX_BLOCKS
#define BPT_CUDA_MAX_BLOCKS 2048
#endif

constexpr int BPT__WIDTH = 8;                            /* values: 16 bytes of bf16, 32 of float */
constexpr int BPT__THREADS = 256;                        /* of a block */
constexpr int64_t BPT__MAX_BLOCKS = BPT_CUDA_MAX_BLOCKS; /* loops stride over the grid */
constexpr int BPT__WARP = 32;

__device__ inline float bpt__from(float x) {
    return x;
}

__device__ inline float bpt__from(bpt_bf16 x) {
    return __uint_as_float((uint32_t)x << 16);
}

__device__ inline void bpt__to(float x, float *to) {
    *to = x;
}

__device__ inline void bpt__to(float x, bpt_bf16 *to) {
    *to = __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

/** What WIDTH values are moved by: words of 16 or 8 bytes where they are some, else one by one. */
template <typename T, int WIDTH>
using bpt__word =
    std::conditional_t<WIDTH * sizeof(T) % sizeof(uint4) == 0, uint4,
                       std::conditional_t<WIDTH * sizeof(T) % sizeof(uint2) == 0, uint2, T>>;

/** A width, or a number of rows, as a type. */
template <int N> struct bpt__number { static constexpr int value = N; };

/** Values as they lie in memory. */
template <typename T, int WIDTH> struct alignas(bpt__word<T, WIDTH>) bpt__pack { T at[WIDTH]; };

/** Reads WIDTH values. @param from aligned to the word that they are moved by */
template <int WIDTH, typename T> __device__ inline bpt__pack<T, WIDTH> bpt__read(const T *from) {
    typedef bpt__word<T, WIDTH> word;
    bpt__pack<T, WIDTH> pack;
    for (size_t i = 0; i < sizeof pack / sizeof(word); i++)
        ((word *)&pack)[i] = ((const word *)from)[i];
    return pack;
}

/** Writes WIDTH values. @param to aligned likewise */
template <int WIDTH, typename T>
__device__ inline void bpt__write(T *to, const bpt__pack<T, WIDTH> &pack) {
    typedef bpt__word<T, WIDTH> word;
    for (size_t i = 0; i < sizeof pack / sizeof(word); i++)
        ((word *)to)[i] = ((const word *)&pack)[i];
}

/** Reads WIDTH values as floats. */
template <int WIDTH, typename T> __device__ inline void bpt__load(const T *from, float x[WIDTH]) {
    const bpt__pack<T, WIDTH> pack = bpt__read<WIDTH>(from);
    for (int i = 0; i < WIDTH; i++) x[i] = bpt__from(pack.at[i]);
}

/** Writes WIDTH floats as values. */
template <int WIDTH, typename T> __device__ inline void bpt__store(const float x[WIDTH], T *to) {
    bpt__pack<T, WIDTH> pack;
    for (int i = 0; i < WIDTH; i++) bpt__to(x[i], &pack.at[i]);
    bpt__write<WIDTH>(to, pack);
}

/** @return number of this thread in the whole grid (of one dimension) */
__device__ inline int64_t bpt__thread(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/** @return threads of the whole grid (of one dimension) */
__device__ inline int64_t bpt__threads(void) {
    return (int64_t)gridDim.x * blockDim.x;
}

/** @return the sum over a warp's 32 threads, to each of them; all must take part */
template <typename T> __device__ inline T bpt__warp_sum(T x) {
    for (int other = BPT__WARP / 2; other > 0; other /= 2)
        x += __shfl_xor_sync(0xFFFFFFFF, x, other);
    return x;
}

/** @return the sum over a block's threads (a multiple of 32), in one order, to each of them; all
 * must take part. T: float or double */
template <typename T> __device__ inline T bpt__block_sum(T x) {
    __shared__ T of_warps[32];
    x = bpt__warp_sum(x);
    if (threadIdx.x % BPT__WARP == 0) of_warps[threadIdx.x / BPT__WARP] = x;
    __syncthreads();
    T sum = 0;
    for (unsigned warp = 0; warp < blockDim.x / BPT__WARP; warp++) sum += of_warps[warp];
    __syncthreads(); /* the next sum may overwrite */
    return sum;
}

/* ---- launches ---- */

/** Puts a kernel on a stream. @return CUDA's error */
template <typename... P, typename... A>
static inline cudaError_t bpt__launch(void (*kernel)(P...), dim3 blocks, dim3 threads,
                                      bpt_cuda_stream stream, A &&...args) {
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, std::forward<A>(args)...);
}

/** The same; returns the translated error, if there is one. @param ... kernel, blocks, threads of
 * each, stream, the kernel's arguments */
#define BPT__LAUNCH(...) BPT_CUDA_TRY(bpt__launch(__VA_ARGS__))

/** @return blocks of BPT__THREADS threads for @p work of one thread each; 1 also for none */
static inline unsigned bpt__blocks(int64_t work) {
    const int64_t blocks = (work + BPT__THREADS - 1) / BPT__THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks < BPT__MAX_BLOCKS ? blocks : BPT__MAX_BLOCKS);
}

/** A launch over rows: the threads' x go along a row, their y from row to row. */
struct bpt__row_grid {
    unsigned blocks;
    dim3 threads;
};

/** @param rows,row how many there are, and of how many threads' work one is */
static inline bpt__row_grid bpt__over_rows(int64_t rows, int64_t row) {
    if (row < 1) row = 1;
    const int64_t times = (row + BPT__THREADS - 1) / BPT__THREADS; /* along a row */
    const unsigned x = (unsigned)((row + times - 1) / times), y = BPT__THREADS / x;
    const int64_t blocks = (rows + y - 1) / y;
    const int64_t some = blocks < BPT__MAX_BLOCKS ? blocks : BPT__MAX_BLOCKS;
    return {(unsigned)(some < 1 ? 1 : some), dim3(x, y)};
}

/** @return the first row of this thread, in a launch of bpt__over_rows() */
__device__ inline int64_t bpt__row(void) {
    return (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
}

/** @return from one row of a thread to its next */
__device__ inline int64_t bpt__row_step(void) {
    return (int64_t)gridDim.x * blockDim.y;
}

#endif
