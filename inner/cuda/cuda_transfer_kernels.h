/** @file inner/cuda/cuda_transfer_kernels.h
 * Between cuda_transfer.c, which makes the tables, and the kernels. Private to the transfer.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_TRANSFER_KERNELS_H
#define BPT_INNER_CUDA_CUDA_TRANSFER_KERNELS_H

#include "inner/cuda/cuda_transfer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BPT__TRANSFER_RANGE = 8192 };

/** What a block moves: native values of one segment, one next to the other. */
typedef struct bpt__transfer_range {
    int64_t first; /* in the segment */
    int32_t count; /* at most BPT__TRANSFER_RANGE */
    int32_t segment;
} bpt__transfer_range;

struct bpt_cuda_transfer {
    bpt__transfer_range *ranges; /* the GPU's; shape [n_ranges] */
    bpt_cuda_order *orders;      /* likewise; shape [segments] */
    int32_t *first;              /* the host's: range of each segment, and behind the last; shape
                                  * [segments + 1] */
    int32_t n_ranges;
};

#ifdef __cplusplus
}
#endif

#endif
