/** @file inner/cuda/cuda_windows.h
 * Kernels of layers that look at neighbours: pooling over windows of pixels, response
 * normalisation over windows of channels. As in cuda_values.h: [N, H, W, C], on a stream, nothing
 * allocated. The same input gives the same bits (no atomic additions of floats).
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_WINDOWS_H
#define BPT_INNER_CUDA_CUDA_WINDOWS_H

#include "inner/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bpt_cuda_pooling {
    BPT_CUDA_MAX,            /* padding never wins; of equal values the first of the window
                              * (row-major) does */
    BPT_CUDA_AVERAGE,        /* padding counts as zeros */
    BPT_CUDA_AVERAGE_INSIDE, /* it does not count */
} bpt_cuda_pooling;

/** A layer of pooling: y[n, p, q, c] over x[n, p * stride - pad + r, q * stride - pad + s, c]. */
typedef struct bpt_cuda_pool {
    bpt_cuda_pooling kind;
    bpt_value_type type;
    int64_t n, c, h, w, p, q;
    int64_t kernel[2], stride[2], pad[2]; /* rows, columns; a window may hang over any edge */
} bpt_cuda_pool;

/** @return bytes that the forward pass leaves for the backward one: of each y which value of its
 * window won, for maxima; 0 for averages */
size_t bpt_cuda_pool_bytes(const bpt_cuda_pool *pool);

/** @param chosen of bpt_cuda_pool_bytes(), NULL if those are 0 or no backward pass follows */
bpt_status bpt_cuda_pool_forward(bpt_cuda_stream stream, const bpt_cuda_pool *pool, const void *x,
                                 void *y, void *chosen);
bpt_status bpt_cuda_pool_backward(bpt_cuda_stream stream, const bpt_cuda_pool *pool, const void *dy,
                                  const void *chosen, void *dx);

/** y = x / (k + alpha / size * sum of x^2 over size channels around it)^beta; over @p rows of c
 * channels. */
typedef struct bpt_cuda_lrn {
    bpt_value_type type;
    int64_t rows, c, size; /* size odd, at most 63 */
    float alpha, beta, k;
} bpt_cuda_lrn;

bpt_status bpt_cuda_lrn_forward(bpt_cuda_stream stream, const bpt_cuda_lrn *lrn, const void *x,
                                void *y);
bpt_status bpt_cuda_lrn_backward(bpt_cuda_stream stream, const bpt_cuda_lrn *lrn, const void *x,
                                 const void *dy, void *dx);

#ifdef __cplusplus
}
#endif

#endif
