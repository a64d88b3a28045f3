/** @file inner/cuda/cuda_values.h
 * Kernels that go over values one by one. Activations lie as [N, H, W, C] ("rows" of C channels,
 * N * H * W of them) of a value type; weights are floats.
 *
 * Every function puts its work on a stream, allocates nothing, and may be captured. @return BPT_OK,
 * BPT_EBACKEND. Pointers are to the GPU's memory, aligned to 256 bytes unless said otherwise.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_VALUES_H
#define BPT_INNER_CUDA_CUDA_VALUES_H

#include "inner/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Values to another type. @param n values */
bpt_status bpt_cuda_convert(bpt_cuda_stream stream, const void *from, bpt_value_type from_type,
                            void *to, bpt_value_type to_type, int64_t n);

/** y = max(x, 0), a NaN stays one. @param n values; x may be @p y */
bpt_status bpt_cuda_relu(bpt_cuda_stream stream, const void *x, bpt_value_type type, int64_t n,
                         void *y);

/** dx = dy where y > 0, else 0. dx may be @p dy */
bpt_status bpt_cuda_relu_backward(bpt_cuda_stream stream, const void *y, const void *dy,
                                  bpt_value_type type, int64_t n, void *dx);

enum { BPT_CUDA_MAX_TERMS = 8 };

/** sum = the sum of @p terms, in their order, in float and rounded once. sum may be any of them.
 * @param terms pointers in the host's memory, copied; shape [n_terms], 1 to BPT_CUDA_MAX_TERMS */
bpt_status bpt_cuda_add(bpt_cuda_stream stream, const void *const *terms, int n_terms,
                        bpt_value_type type, int64_t n, void *sum);

/** Copies channels of each row: to[row][to_first + i] = from[row][from_first + i] for i below @p n;
 * and to[row][to_first + n + i] = 0 for i below @p n_zeros. For joins, their backward passes and
 * padding.
 * @param from_c,to_c channels of a whole row */
bpt_status bpt_cuda_copy_channels(bpt_cuda_stream stream, const void *from, int64_t from_c,
                                  int64_t from_first, void *to, int64_t to_c, int64_t to_first,
                                  int64_t n, int64_t n_zeros, bpt_value_type type, int64_t rows);

/** Looks for values that are not finite. @param[in,out] bad becomes 1 if there is one, else stays
 */
bpt_status bpt_cuda_check_finite(bpt_cuda_stream stream, const void *x, bpt_value_type type,
                                 int64_t n, int *bad);

#ifdef __cplusplus
}
#endif

#endif
