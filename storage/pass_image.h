/** @file storage/pass_image.h
 * Inside of storage: what an image of a split is in a pass over it: brought to its size, and
 * augmented. It depends on the seed, the image's number and the pass alone.
 *
 * Threads: any number may share a bpt__pass_images; each has a scratch of its own. */
#ifndef BPT_STORAGE_PASS_IMAGE_H
#define BPT_STORAGE_PASS_IMAGE_H

#include "storage/augment.h"
#include "storage/dataset.h"
#include "storage/images/image_decoder.h"

#include <stdbool.h>
#include <stdint.h>

/** What all images have in common; read-only. */
typedef struct bpt__pass_images {
    const bpt_dataset *dataset;
    const bpt_split *split;
    uint32_t C, H, W; /* of what comes out */
    bool encoded;
    bpt_augment augment;
    uint64_t seed; /* of its choices */
} bpt__pass_images;

/** What a thread works with. */
typedef struct bpt__image_scratch {
    uint8_t *augmented;         /* shape [2,C,H,W]; NULL where nothing is augmented */
    bpt_image_decoder *decoder; /* of an encoded dataset, else NULL */
    uint8_t *decoded;           /* shape [C,H,W]; likewise */
} bpt__image_scratch;

/** Makes an image.
 * @param index below the split's count
 * @param pass  of which it is
 * @param[out] pixels shape [C,H,W]; in @p scratch, or borrowed from the dataset
 * @return BPT_OK, or as bpt_dataset_get(), bpt_dataset_get_record() and bpt_record_decode() */
bpt_status bpt__pass_image(const bpt__pass_images *images, const bpt__image_scratch *scratch,
                           uint32_t index, uint32_t pass, const uint8_t **pixels, uint32_t *label);

#endif
