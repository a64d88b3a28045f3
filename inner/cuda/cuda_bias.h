/** @file inner/cuda/cuda_bias.h
 * Biases of convolutions and fully connected layers, with the ReLU behind them. Rows of C channels;
 * on a stream, nothing allocated; sums in one order, as in cuda_batchnorm.h.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_BIAS_H
#define BPT_INNER_CUDA_CUDA_BIAS_H

#include "inner/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** y = x + bias, then the ReLU if @p relu, in place. @param y [rows, c] */
bpt_status bpt_cuda_bias(bpt_cuda_stream stream, void *y, const float *bias, bool relu,
                         bpt_value_type type, int64_t rows, int64_t c);

/** @return bytes of the workspace of bpt_cuda_bias_backward() */
size_t bpt_cuda_bias_workspace(int64_t rows, int64_t c);

/** Backward of a bias and the ReLU behind it: dx = dy where y > 0, the bias' gradient is the sum of
 * dx over rows.
 * @param y NULL: without the ReLU; dx is not written then
 * @param dx may be dy; @param bias_gradient shape [c]; NULL: there is no bias, only the ReLU */
bpt_status bpt_cuda_bias_backward(bpt_cuda_stream stream, const void *y, const void *dy,
                                  bpt_value_type type, int64_t rows, int64_t c, void *dx,
                                  float *bias_gradient, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
