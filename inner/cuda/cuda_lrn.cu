/* Response normalisation over windows of channels. With s = k + alpha / size * sum of x^2 over the
 * window,
 *   y = x s^-beta,  dx = dy s^-beta - 2 alpha beta / size * x * sum of dy x s^(-beta - 1),
 * the last sum over the windows that the value is in: those of its own window's channels.
 *
 * A block takes a tile of consecutive values, of whatever rows, with what is left and right of
 * them, into shared memory; windows end at the ends of a value's row. */
#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_windows.h"

constexpr int TILE = 1024; /* values that a block writes at once */
constexpr int HALF = 32;   /* more than half a window, of 63 at most */

/* A window's channels, as far left and right of a value as they are in its row. */
struct window {
    int left, right;
};

static __device__ window window_of(int64_t channel, int64_t c, int64_t size) {
    const int64_t half = size / 2, behind = c - 1 - channel;
    return {(int)(channel < half ? channel : half), (int)(behind < half ? behind : half)};
}

/* @return channel of value @p i; also of values in front of the first, as if rows were there */
static __device__ int64_t channel_of(int64_t i, int64_t c) {
    const int64_t channel = i % c;
    return channel < 0 ? channel + c : channel;
}

/* @param begin of the values, which may be none: those are 0 */
template <typename T>
static __device__ void load_tile(const T *x, int64_t n, int64_t begin, int count, float *tile) {
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
        const int64_t from = begin + i;
        tile[i] = from >= 0 && from < n ? bpt__from(x[from]) : 0.0f;
    }
}

/* @param x in a tile; @return s */
static __device__ float scale_of(const bpt_cuda_lrn &lrn, const float *x, window w) {
    float squares = 0.0f;
    for (int i = -w.left; i <= w.right; i++) squares += x[i] * x[i];
    return lrn.k + lrn.alpha / (float)lrn.size * squares;
}

static __device__ float power_of(float s, float beta) {
    if (beta != 0.75f) return powf(s, -beta);
    const float root = rsqrtf(s); /* the usual one, faster */
    return root * sqrtf(root);
}

template <typename T> static __global__ void lrn_forward(bpt_cuda_lrn lrn, const T *x, T *y) {
    __shared__ float values[HALF + TILE + HALF];
    const int64_t n = lrn.rows * lrn.c;
    for (int64_t begin = blockIdx.x * (int64_t)TILE; begin < n;
         begin += gridDim.x * (int64_t)TILE) {
        const int64_t first_channel = begin % lrn.c;
        load_tile(x, n, begin - HALF, HALF + TILE + HALF, values);
        __syncthreads();
        for (int i = (int)threadIdx.x; i < TILE && begin + i < n; i += (int)blockDim.x) {
            const window w = window_of(channel_of(first_channel + i, lrn.c), lrn.c, lrn.size);
            const float *value = values + HALF + i;
            bpt__to(*value * power_of(scale_of(lrn, value, w), lrn.beta), y + begin + i);
        }
        __syncthreads(); /* the next tile overwrites */
    }
}

/* Turns a tile's gradients dy into dy s^-beta, and writes dy x s^(-beta - 1) to @p parts; of its
 * values that have all of their window in the tile. */
static __device__ void scale_gradients(const bpt_cuda_lrn &lrn, int64_t first_channel,
                                       const float *x, float *dy, float *parts) {
    for (int i = HALF + (int)threadIdx.x; i < 2 * HALF + TILE + HALF; i += (int)blockDim.x) {
        const window w = window_of(channel_of(first_channel + i, lrn.c), lrn.c, lrn.size);
        const float s = scale_of(lrn, x + i, w), scaled = dy[i] * power_of(s, lrn.beta);
        dy[i] = scaled;
        parts[i] = scaled * x[i] / s;
    }
}

template <typename T>
static __global__ void lrn_backward(bpt_cuda_lrn lrn, const T *x, const T *dy, T *dx) {
    constexpr int SIDE = 2 * HALF, COUNT = SIDE + TILE + SIDE; /* windows of windows */
    __shared__ float values[COUNT], gradients[COUNT], parts[COUNT];
    const float factor = 2.0f * lrn.alpha * lrn.beta / (float)lrn.size;
    const int64_t n = lrn.rows * lrn.c;
    for (int64_t begin = blockIdx.x * (int64_t)TILE; begin < n;
         begin += gridDim.x * (int64_t)TILE) {
        const int64_t first_channel = channel_of(begin - SIDE, lrn.c); /* of the tile */
        load_tile(x, n, begin - SIDE, COUNT, values);
        load_tile(dy, n, begin - SIDE, COUNT, gradients);
        __syncthreads();
        scale_gradients(lrn, first_channel, values, gradients, parts);
        __syncthreads();
        for (int i = (int)threadIdx.x; i < TILE && begin + i < n; i += (int)blockDim.x) {
            const int at = SIDE + i;
            const window w = window_of(channel_of(first_channel + at, lrn.c), lrn.c, lrn.size);
            float sum = 0.0f;
            for (int j = at - w.left; j <= at + w.right; j++) sum += parts[j];
            bpt__to(gradients[at] - factor * values[at] * sum, dx + begin + i);
        }
        __syncthreads(); /* the next tile overwrites */
    }
}

static unsigned blocks_for(const bpt_cuda_lrn *lrn) {
    return bpt__blocks((lrn->rows * lrn->c + TILE - 1) / TILE * BPT__THREADS);
}

bpt_status bpt_cuda_lrn_forward(bpt_cuda_stream stream, const bpt_cuda_lrn *lrn, const void *x,
                                void *y) {
    const unsigned blocks = blocks_for(lrn);
    if (lrn->type == BPT_BF16)
        BPT__LAUNCH(lrn_forward<bpt_bf16>, blocks, BPT__THREADS, stream, *lrn, (const bpt_bf16 *)x,
                    (bpt_bf16 *)y);
    else
        BPT__LAUNCH(lrn_forward<float>, blocks, BPT__THREADS, stream, *lrn, (const float *)x,
                    (float *)y);
    return BPT_OK;
}

bpt_status bpt_cuda_lrn_backward(bpt_cuda_stream stream, const bpt_cuda_lrn *lrn, const void *x,
                                 const void *dy, void *dx) {
    const unsigned blocks = blocks_for(lrn);
    if (lrn->type == BPT_BF16)
        BPT__LAUNCH(lrn_backward<bpt_bf16>, blocks, BPT__THREADS, stream, *lrn, (const bpt_bf16 *)x,
                    (const bpt_bf16 *)dy, (bpt_bf16 *)dx);
    else
        BPT__LAUNCH(lrn_backward<float>, blocks, BPT__THREADS, stream, *lrn, (const float *)x,
                    (const float *)dy, (float *)dx);
    return BPT_OK;
}
