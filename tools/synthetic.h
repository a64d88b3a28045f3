/** @file tools/synthetic.h
 * Batches that are made up: what speed is measured on where there is no dataset.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_SYNTHETIC_H
#define BPT_TOOLS_SYNTHETIC_H

#include "base/images.h"
#include "base/status.h"
#include "inner/models/model.h"

#include <stdbool.h>
#include <stdint.h>

/** A batch; the pointers are NULL before it is made. */
typedef struct bpt_synthetic {
    const void *input; /* for a network: .pixels, or .images where there are none */
    float *pixels;     /* shape [N,C,H,W]: normally distributed */
    bpt_images images; /* of .bytes and .scales, unmoved: the same, to a thirty-second */
    uint8_t *bytes;    /* shape [N,C,H,W] */
    float *scales;     /* shape [2,C] */
    int32_t *labels;   /* shape [N]: evenly distributed */
} bpt_synthetic;

/** Makes a batch of @p n samples as the model wants them; the same for the same seed.
 * @param as_images images, for a device that takes them (inner/device.h), not floats
 * @param[out] batch not to be moved; to be released with bpt_synthetic_release(), also on error
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_synthetic_make(const bpt_model *model, int64_t n, uint64_t seed, bool as_images,
                              bpt_synthetic *batch);
void bpt_synthetic_release(bpt_synthetic *batch);

#endif
