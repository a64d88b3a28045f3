/** @file inner/cuda/cuda_input.h
 * The caller's batch on its way to a network's input: how it lies in the GPU's memory, and the
 * kernel that takes it from there. A batch is floats [N, C, H, W], or a bpt_images (base/images.h),
 * whose pixels are then moved and normalised as they are taken.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_INPUT_H
#define BPT_INNER_CUDA_CUDA_INPUT_H

#include "inner/cuda/cuda_feed.h"
#include "inner/cuda/cuda_step.h"
#include "inner/models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bpt_cuda_input {
    bool images; /* bpt_images; else floats */
    int64_t n, c, h, w;
    size_t bytes;                 /* of a batch */
    size_t shifts, moves, pixels; /* of images: where they begin, behind the scales; 0 of floats */
} bpt_cuda_input;

/** @return how batches of @p n samples lie */
bpt_cuda_input bpt_cuda_input_of(bool images, int64_t n, bpt_shape shape);

/** @param given as bpt_network_train() is given it; @return what is to be brought of it, borrowed
 */
bpt_cuda_batch bpt_cuda_input_batch(const bpt_cuda_input *input, const void *given);

/** Takes the batch at step->batch as [N, H, W, padded] values; channels C and above become 0.
 * Captured: which batch it is is decided when the work runs.
 * @param step in the GPU's memory; .batch, and of images .n_images and .has_moves are read
 * @param padded at least C @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_cuda_input_take(bpt_cuda_stream stream, const bpt_cuda_input *input,
                               const bpt_cuda_step *step, int64_t padded, bpt_value_type type,
                               void *to);

#ifdef __cplusplus
}
#endif

#endif
