/** @file storage/augmentations/beta.h
 * Inside of storage/augmentations: in which proportion two images are mixed.
 *
 * Threads: any; a stream belongs to one thread. */
#ifndef BPT_STORAGE_AUGMENTATIONS_BETA_H
#define BPT_STORAGE_AUGMENTATIONS_BETA_H

#include "base/random.h"
#include "storage/augmentations/augmentation.h"

#include <stdint.h>

enum {
    BPT__BETA_ONE = 1 << 16,
    BPT__BETA_LEAST = BPT_AUGMENT_UNIT / 100,
    BPT__BETA_MOST = 100 * BPT_AUGMENT_UNIT
};

/** The parameter of an augmentation that draws so: ALPHA, 0.01 to 100. */
#define BPT__BETA_ALPHA                                                                            \
    { .name = "ALPHA", .required = true, .min = BPT__BETA_LEAST, .max = BPT__BETA_MOST }

/** Draws from Beta(alpha, alpha), in whole numbers: its density goes as (x (1 - x))^(alpha - 1).
 * @param alpha in 1 / BPT_AUGMENT_UNIT, BPT__BETA_LEAST to BPT__BETA_MOST
 * @return in 1 / BPT__BETA_ONE, rounded, both ends included */
uint32_t bpt__draw_beta(bpt_random *random, uint32_t alpha);

#endif
