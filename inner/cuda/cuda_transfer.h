/** @file inner/cuda/cuda_transfer.h
 * Vectors between the canonical order (inner/weights/segments.h) and the one that a network's
 * kernels want, all segments by one kernel.
 *
 * On a stream, nothing allocated behind create. @return BPT_OK, BPT_EBACKEND unless said otherwise.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_TRANSFER_H
#define BPT_INNER_CUDA_CUDA_TRANSFER_H

#include "inner/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where the values of a segment are: canonical [K, C, taps], native [K, taps, padded]. */
typedef struct bpt_cuda_order {
    int64_t canonical, native; /* its first value, in floats from the vectors' begin */
    int64_t count;             /* values of the native side, padding included */
    int64_t c, taps, padded;   /* padded >= c; taps 0: both sides are alike */
} bpt_cuda_order;

typedef struct bpt_cuda_transfer bpt_cuda_transfer;

/** @param orders shape [n], copied
 * @param[out] transfer caller owns, bpt_cuda_transfer_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL, BPT_EBACKEND */
bpt_status bpt_cuda_transfer_create(const bpt_cuda_order *orders, size_t n,
                                    bpt_cuda_transfer **transfer);
void bpt_cuda_transfer_free(bpt_cuda_transfer *transfer);

/** Of segments [first, first + n); each at its place in both. Padding becomes 0. */
bpt_status bpt_cuda_transfer_in(bpt_cuda_stream stream, const bpt_cuda_transfer *transfer,
                                size_t first, size_t n, const float *canonical, float *native);

/** Likewise. */
bpt_status bpt_cuda_transfer_out(bpt_cuda_stream stream, const bpt_cuda_transfer *transfer,
                                 size_t first, size_t n, const float *native, float *canonical);

/** Likewise native += canonical. Padding stays. */
bpt_status bpt_cuda_transfer_add(bpt_cuda_stream stream, const bpt_cuda_transfer *transfer,
                                 size_t first, size_t n, const float *canonical, float *native);

#ifdef __cplusplus
}
#endif

#endif
