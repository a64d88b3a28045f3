/** @file storage/augmentation.h
 * One kind of augmentation: a table, one file each in storage/augmentations.
 *
 * Threads: all functions may be called by any number of threads. */
#ifndef BPT_STORAGE_AUGMENTATION_H
#define BPT_STORAGE_AUGMENTATION_H

#include "base/random.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_augmentation {
    const char *name;
    bool takes_value;  /* "name=VALUE" */
    uint32_t min, max; /* of the value, inclusive */
    /* The smallest H and W that it works on, given the value; NULL: 1. */
    uint32_t (*smallest)(uint32_t value);
    /* Makes [C,H,W] at out from [C,H,W] at in. @return false if the image stays as it is: then out
     * is not written. */
    bool (*apply)(uint32_t value, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out);
} bpt_augmentation;

extern const bpt_augmentation bpt_augmentation_crop;
extern const bpt_augmentation bpt_augmentation_flip;

#endif
