/** @file tools/synthetic.h
 * Batches that are made up: what speed is measured on where there is no dataset.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_SYNTHETIC_H
#define BPT_TOOLS_SYNTHETIC_H

#include "base/status.h"
#include "inner/model.h"

#include <stdint.h>

/** A batch; the pointers are NULL before it is made. */
typedef struct bpt_synthetic {
    float *pixels;   /* shape [N,C,H,W]: normally distributed */
    int32_t *labels; /* shape [N]: evenly distributed */
} bpt_synthetic;

/** Makes a batch of @p n samples as the model wants them; the same for the same seed.
 * @param[out] batch to be released with bpt_synthetic_release(), also on error
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_synthetic_make(const bpt_model *model, int64_t n, uint64_t seed,
                              bpt_synthetic *batch);
void bpt_synthetic_release(bpt_synthetic *batch);

#endif
