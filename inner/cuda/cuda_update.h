/** @file inner/cuda/cuda_update.h
 * The optimiser's update of all weights as one kernel over all segments (and before it, where norms
 * are wanted, one that sums squares): what inner/network/update.c, inner/network/norms.c and
 * inner/optimizers/ do on the CPU.
 *
 * On a stream, nothing allocated behind create; sums of squares in double and in one order.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_UPDATE_H
#define BPT_INNER_CUDA_CUDA_UPDATE_H

#include "inner/cuda/cuda_step.h"
#include "inner/optimizers/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where a segment is, in floats from the begin of the vectors (multiples of 64). */
typedef struct bpt_cuda_segment {
    int64_t begin, count;
    float running; /* > 0: a running statistic: w -= running * g, nothing else; not in norms */
    bool decays;
    bool frozen;   /* neither updated nor looked at, and not in norms */
    bool has_copy; /* a copy in bfloat16 at the same index is written with each update, and when
                    * copies are written anew */
} bpt_cuda_segment;

typedef struct bpt_cuda_update bpt_cuda_update;

/** The vectors, in the GPU's memory. */
typedef struct bpt_cuda_vectors {
    float *weights, *gradients, *state[BPT_MAX_STATES]; /* state: NULL beyond the optimiser's */
    bpt_bf16 *copies;                                   /* NULL: none */
} bpt_cuda_vectors;

/** @param segments shape [n], copied; @param learning .optimizer set; copied
 * @param[out] update caller owns, bpt_cuda_update_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL, BPT_EBACKEND */
bpt_status bpt_cuda_update_create(const bpt_cuda_segment *segments, size_t n,
                                  const bpt_learning *learning, bpt_cuda_vectors vectors,
                                  bpt_cuda_update **update);
void bpt_cuda_update_free(bpt_cuda_update *update);

/** Clipping and update from the gradients, as inner/network/update.c: with step->rate and
 * step->updates. Changes nothing where outcome->bad_loss or outcome->bad_label is set; a range of
 * values (a block's) with a gradient that is not finite is not updated and sets
 * outcome->bad_gradient to 1 + the segment's number (the largest of all), new weights that are not
 * finite set outcome->bad_weight likewise. */
bpt_status bpt_cuda_update_run(bpt_cuda_stream stream, const bpt_cuda_update *update,
                               const bpt_cuda_step *step, bpt_cuda_outcome *outcome);

/** Looks at the gradients alone, for steps without an update: sets outcome->bad_gradient. */
bpt_status bpt_cuda_update_check(bpt_cuda_stream stream, const bpt_cuda_update *update,
                                 bpt_cuda_outcome *outcome);

/** Writes the copies anew, after weights were set; those of frozen segments, too. */
bpt_status bpt_cuda_update_copies(bpt_cuda_stream stream, const bpt_cuda_update *update);

#ifdef __cplusplus
}
#endif

#endif
