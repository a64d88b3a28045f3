/** @file storage/augmentations/augmentation.h
 * One kind of augmentation: a table, one file each in storage/augmentations.
 *
 * Values are whole numbers. A parameter that is no count is in units of 1 / BPT_AUGMENT_UNIT, which
 * is as many decimals as it may be given with.
 *
 * Threads: all functions may be called by any number of threads. */
#ifndef BPT_STORAGE_AUGMENTATION_H
#define BPT_STORAGE_AUGMENTATION_H

#include "base/images.h"
#include "base/random.h"
#include "storage/augmentations/augment.h"
#include "storage/images/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_AUGMENT_UNIT = 10000, BPT_AUGMENT_DECIMALS = 4 };

typedef struct bpt_augmentation_parameter {
    const char *name;   /* in capitals, as messages and help have it */
    bool counts;        /* a number of something, without decimals */
    bool required;      /* there is no default; not behind one that has one */
    bool rises;         /* not below the parameter before it */
    uint32_t min, max;  /* inclusive */
    uint32_t otherwise; /* the default */
} bpt_augmentation_parameter;

struct bpt_augmentation {
    const char *name;
    const char *example;                                       /* an item of a list */
    uint32_t n_parameters;                                     /* "name=value:value" */
    bpt_augmentation_parameter parameters[BPT_AUGMENT_VALUES]; /* shape [n_parameters] */
    /* The smallest H and W that it works on; NULL: 1. */
    uint32_t (*smallest)(const uint32_t *values);
    /* Of one that does nothing but move pixels: how, drawn. NULL: it does something else. */
    bpt_image_move (*move)(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W);
    /* NULL: it moves pixels, mixes two images, or is for encoded ones alone. Makes [C,H,W] at out
     * from [C,H,W] at in. @return false if the image stays as it is: then what is in out does not
     * count. */
    bool (*apply)(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out);
    /* Of one that takes a part of the image: which part of an image of H by W, for a frame whose
     * .scaled_h and .scaled_w are set: .y, .x, .h and .w, drawn as apply() draws it. NULL: it takes
     * none. */
    void (*part)(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W,
                 bpt_image_frame *frame);
    /* NULL: it does not mix two images. Puts something of the other into the image, both [C,H,W].
     * @return which part of the image is the other's then, 0 to 1. */
    float (*mix)(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                 uint8_t *restrict image, const uint8_t *restrict other);
};

/** @return kind number @p i, NULL past the last */
const bpt_augmentation *bpt_augmentation_at(size_t i);

/** @return whether there is nothing that it could do to raw images */
static inline bool bpt_augmentation_wants_encoded(const bpt_augmentation *kind) {
    return !kind->apply && !kind->move && !kind->mix;
}

/** Writes how an item of this kind is written: "name=FIRST:SECOND".
 * @param[out] out shape [size], a text */
void bpt_augmentation_usage(const bpt_augmentation *kind, char *out, size_t size);

/** Writes values as a list has them: "0.5:1".
 * @param values shape [n], of the first @p n parameters
 * @param[out] out shape [size], a text */
void bpt_augmentation_values(const bpt_augmentation *kind, const uint32_t *values, uint32_t n,
                             char *out, size_t size);

extern const bpt_augmentation bpt_augmentation_crop;
extern const bpt_augmentation bpt_augmentation_cutmix;
extern const bpt_augmentation bpt_augmentation_erase;
extern const bpt_augmentation bpt_augmentation_flip;
extern const bpt_augmentation bpt_augmentation_jitter;
extern const bpt_augmentation bpt_augmentation_mixup;
extern const bpt_augmentation bpt_augmentation_resized_crop;
extern const bpt_augmentation bpt_augmentation_rotate;
extern const bpt_augmentation bpt_augmentation_shift;
extern const bpt_augmentation bpt_augmentation_vflip;
extern const bpt_augmentation bpt_augmentation_window;

#endif
