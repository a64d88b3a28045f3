/** @file inner/cuda/cuda_batchnorm.h
 * Batch normalisation with what follows it: y = relu(scale_c * x + shift_c + added). One pass over
 * memory for the sums, one for the values, each way. Layout [N, H, W, C]: rows of C channels.
 *
 * On a stream, nothing allocated; the same input gives the same bits: sums have one order for given
 * sizes (partial sums per block, then one sum over blocks in double). @return BPT_OK, BPT_EBACKEND
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_BATCHNORM_H
#define BPT_INNER_CUDA_CUDA_BATCHNORM_H

#include "inner/cuda/cuda_step.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bpt_cuda_batchnorm {
    bpt_value_type type;
    int64_t rows, c; /* any c; fast for multiples of 8 */
    int64_t pixels;  /* rows of a sample */
    float eps;
    bool relu; /* behind it, and behind the addition if there is one */
    bool add;  /* another activation is added */
} bpt_cuda_batchnorm;

/** What a layer keeps from its forward to its backward pass and needs for its sums. */
typedef struct bpt_cuda_batchnorm_memory {
    float *mean, *inverse; /* shape [c]: of the batch; 1 / sqrt(variance + eps) */
    void *workspace;       /* of bpt_cuda_batchnorm_workspace() bytes */
} bpt_cuda_batchnorm_memory;

size_t bpt_cuda_batchnorm_workspace(const bpt_cuda_batchnorm *bn);

/** Forward in training. Rows from step->end_sample on, which are of samples that are not there,
 * take no part in the statistics; their values are of no use.
 * @param weight,bias,running_mean,running_variance shape [c]
 * @param added NULL unless bn->add; @param y may be x or added
 * @param step samples that are there and the denominator are read
 * @param[out] mean_gradient,variance_gradient what the running statistics are to move by, as the
 * CPU has it: this batch's share, n_samples / denominator, of running - of this batch (the variance
 * unbiased, rows / (rows - 1); of one row the running one), so that running -= momentum * gradient
 * also where the gradients of several ranks or devices are added up */
bpt_status bpt_cuda_batchnorm_forward(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                                      const bpt_cuda_step *step,
                                      const bpt_cuda_batchnorm_memory *memory, const void *x,
                                      const void *added, const float *weight, const float *bias,
                                      const float *running_mean, const float *running_variance,
                                      void *y, float *mean_gradient, float *variance_gradient);

/** Forward in evaluation, with the running statistics (a variance below 0 counts as 0). */
bpt_status bpt_cuda_batchnorm_evaluate(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                                       const void *x, const void *added, const float *weight,
                                       const float *bias, const float *running_mean,
                                       const float *running_variance, void *y);

/** Backward. With bn->relu the gradient is dy where y > 0.
 * @param step that of the forward pass
 * @param y what forward has computed; read with bn->relu and bn->add alone, else it may be NULL:
 * the sign of y is that of scale * x + shift then, which is computed again
 * @param dy zeros of samples that are not there
 * @param weight,bias shape [c], those of the forward pass
 * @param[out] dx may be dy or NULL (not wanted); zeros of samples that are not there
 * @param[out] d_added gradient of what was added: dy where y > 0; may be dy. NULL: not wanted
 * @param[out] weight_gradient,bias_gradient shape [c] */
bpt_status bpt_cuda_batchnorm_backward(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                                       const bpt_cuda_step *step,
                                       const bpt_cuda_batchnorm_memory *memory, const void *x,
                                       const void *y, const void *dy, const float *weight,
                                       const float *bias, void *dx, void *d_added,
                                       float *weight_gradient, float *bias_gradient);

#ifdef __cplusplus
}
#endif

#endif
