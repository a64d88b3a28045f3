/** @file inner/cuda/cuda_feed.h
 * How batches come to the GPU: through pinned memory, on a stream of its own, and where the next
 * batch is known, while a step computes.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_FEED_H
#define BPT_INNER_CUDA_CUDA_FEED_H

#include "inner/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BPT_CUDA_BATCH_SPANS = 4 };

typedef struct bpt_cuda_span {
    const void *from;
    size_t at, bytes; /* where it is to be in the batch */
} bpt_cuda_span;

/** What a batch is put together from. */
typedef struct bpt_cuda_batch {
    const void *given;                         /* tells it from others */
    bpt_cuda_span spans[BPT_CUDA_BATCH_SPANS]; /* in the order of their places */
    int n_spans;
} bpt_cuda_batch;

typedef struct bpt_cuda_feed bpt_cuda_feed;

/** @param bytes of a batch @param[out] feed caller owns, bpt_cuda_feed_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL, BPT_EBACKEND */
bpt_status bpt_cuda_feed_create(size_t bytes, bpt_cuda_feed **feed);
void bpt_cuda_feed_free(bpt_cuda_feed *feed);

/** @return bytes of the GPU's memory that a feed for such batches takes */
size_t bpt_cuda_feed_bytes(size_t bytes);

/** Has a batch on the GPU before what is put on @p stream from now on.
 * @param[out] device where it is, until the next call but one of this function */
bpt_status bpt_cuda_feed_take(bpt_cuda_feed *feed, const bpt_cuda_batch *batch,
                              bpt_cuda_stream stream, const void **device);

/** Begins to bring the batch that will be taken next. What it is put together from is not to change
 * until then. Where that fails the batch is brought when it is taken, which says what fails. */
void bpt_cuda_feed_bring(bpt_cuda_feed *feed, const bpt_cuda_batch *batch);

#ifdef __cplusplus
}
#endif

#endif
