/** @file storage/loader/pass_image.h
 * Inside of storage: what an image of a split is in a pass over it: brought to its size,
 * augmented, and mixed with another. It depends on the seed, the image's number and the pass alone.
 *
 * The other image is drawn from `partners`, and is what it is itself in that pass before it is
 * mixed. One of n partners is mixed with itself once in n passes, on average, and stays as it is.
 *
 * Threads: any number may share a bpt__pass_images; each has a scratch of its own. */
#ifndef BPT_STORAGE_PASS_IMAGE_H
#define BPT_STORAGE_PASS_IMAGE_H

#include "storage/augmentations/augment.h"
#include "storage/dataset/dataset.h"
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
    bool leaves_moves; /* that the list ends with, for whoever takes the image; where it does:
                        * bpt_augment_ends_in_moves() */
    uint64_t seed;     /* of its choices */
    const uint32_t *partners; /* records to mix with, shape [n_partners]; NULL: all of the split */
    uint32_t n_partners;
} bpt__pass_images;

/** What a thread works with. */
typedef struct bpt__image_scratch {
    uint8_t *augmented;         /* shape [2,C,H,W]; NULL where nothing is augmented */
    uint8_t *mixed;             /* shape [C,H,W]; NULL where nothing is mixed */
    bpt_image_decoder *decoder; /* of an encoded dataset, else NULL */
    uint8_t *decoded;           /* shape [C,H,W]; likewise */
} bpt__image_scratch;

typedef struct bpt__pass_image {
    const uint8_t *pixels; /* shape [C,H,W]; in the scratch, or borrowed from the dataset */
    bpt_image_move move;   /* that is left, where moves are left */
    uint32_t label;
    int32_t second_label; /* of the image that it is mixed with; -1: of none */
    float second_part;    /* of the image, 0 to 1 */
} bpt__pass_image;

/** @return the image that one is mixed with, where images are mixed */
uint32_t bpt__pass_image_partner(const bpt__pass_images *images, uint32_t index, uint32_t pass);

/** Makes an image.
 * @param index below the split's count
 * @param pass  of which it is
 * @return BPT_OK, or as bpt_dataset_get(), bpt_dataset_get_record() and bpt_record_decode() */
bpt_status bpt__pass_image_make(const bpt__pass_images *images, const bpt__image_scratch *scratch,
                                uint32_t index, uint32_t pass, bpt__pass_image *image);

#endif
