/** @file storage/loader/loader.h
 * Turns lists of record indices into batches, ahead of time, on threads of its own: of floats, or
 * of bytes for whoever normalises them (base/images.h).
 *
 * The caller decides the order: it requests batches, each a list of indices, and takes them back in
 * the order of its requests. The loader's threads read, check, augment and convert the records
 * meanwhile and write them straight into the batch buffer; what comes out does not depend on how
 * many they are.
 *
 *     for each of the first `depth` batches: bpt_loader_request()
 *     loop: bpt_loader_next(), train, bpt_loader_release(), bpt_loader_request()
 *
 * Threads: request, next, release and the counters belong to one thread, the consumer's. The
 * loader's own threads sleep while there is nothing to do. Nothing is allocated per batch, but for
 * what libjpeg-turbo takes to decode an image and gives back.
 *
 * Images of an encoded dataset are brought to the size of bpt_dataset_bring_to() first. Where the
 * list of augmentations begins with resized-crop or window, that is the part that it draws, of the
 * image as it is stored; else bpt_record_middle().
 *
 * Where the list mixes images, each is mixed with one that is drawn, by the seed, its index and its
 * pass, from `partners`: whatever else is requested. That one is as it would be in the same pass
 * before it is mixed itself. */
#ifndef BPT_STORAGE_LOADER_H
#define BPT_STORAGE_LOADER_H

#include "base/images.h"
#include "base/status.h"
#include "storage/augmentations/augment.h"
#include "storage/dataset/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_loader bpt_loader;

typedef struct bpt_loader_options {
    uint32_t batch;      /* N: records of a full batch, at least 1 */
    uint32_t n_threads;  /* 1 to 64 */
    uint32_t depth;      /* batches in flight, the ones lent to the caller included: 1 to 1024 */
    bool as_images;      /* batches are bpt_images. Moves of pixels that the augmentation ends with
                          * are left to whoever takes them, too */
    const double *mean;  /* shape [C], as of a bpt_split; NULL: 0. Copied */
    const double *std;   /* shape [C]; NULL: 1; an entry of 0 counts as 1. Copied */
    bpt_augment augment; /* what is done to each image before it is normalised */
    uint64_t seed;       /* of its choices */
    /* Where images are mixed: the records that others may be mixed with, shape [n_partners], at
     * least one, each below split->count; borrowed while the loader lives. NULL: all of the split.
     */
    const uint32_t *partners;
    uint32_t n_partners;
} bpt_loader_options;

#define BPT_LOADER_OPTIONS_INIT                                                                    \
    { .batch = 32, .n_threads = 1, .depth = 4 }

/** A batch, lent to the caller until bpt_loader_release(). */
typedef struct bpt_batch {
    const void *input;   /* for a network: .pixels, or of a loader of images a bpt_images */
    const float *pixels; /* shape [N,C,H,W]: (pixel / 255 - mean) / std; rows >= n are 0. NULL of a
                          * loader of images */
    const int32_t *labels; /* shape [N]; entries >= n are -1 */
    /* Where images are mixed, the labels of those that were mixed in, and which part of an image
     * they are, 0 to 1: shape [N] each; entries >= n are -1 and 0. Else NULL. */
    const int32_t *second_labels;
    const float *second_parts;
    uint32_t n;    /* records in it, 1 to N */
    uint32_t slot; /* the loader's own */
} bpt_batch;

/** Says how pixels are normalised: one becomes pixel * scale + shift, the product and the sum each
 * rounded to a float.
 * @param mean,std as of bpt_loader_options, of @p n channels
 * @param[out] scale,shift shape [n] */
void bpt_loader_scales(const double *mean, const double *std, uint32_t n, float *scale,
                       float *shift);

/** @param values C*H*W
 * @return bytes of a loader's batches and augmented images; SIZE_MAX where no size_t can tell */
size_t bpt_loader_bytes(const bpt_loader_options *options, size_t values);

/** @param values C*H*W
 * @return bytes that threads take at most to decode the images of a split: those of its largest
 * image, a progressive one; 0 of raw ones; SIZE_MAX where no size_t can tell */
size_t bpt_loader_decoding_bytes(const bpt_split *split, uint32_t n_threads, size_t values);

/** Starts the threads.
 * @param dataset, split borrowed while the loader lives
 * @param[out] out caller owns, bpt_loader_destroy()
 * @return BPT_OK, BPT_EUSAGE (an option out of range; encoded images without
 *         bpt_dataset_bring_to(); as bpt_augment_check_images(); images are mixed, and there are
 *         no partners, or one is not of the split), BPT_ENOMEM, BPT_EIO (no thread) */
bpt_status bpt_loader_create(const bpt_dataset *dataset, const bpt_split *split,
                             const bpt_loader_options *options, bpt_loader **out);

/** Stops the threads; requested batches are dropped, lent ones become invalid. NULL is allowed. */
void bpt_loader_destroy(bpt_loader *loader);

/** Queues a batch. Never waits.
 * @param indices shape [n], copied; each below split->count; repeats are allowed
 * @param passes  shape [n], copied: which pass over the data each is of, so that its augmentation
 *                is another in each; NULL: all of pass 0
 * @param n       1 to batch
 * @return BPT_OK, BPT_EFULL (depth batches are in flight), BPT_EUSAGE (n or an index out of range)
 */
bpt_status bpt_loader_request(bpt_loader *loader, const uint32_t *indices, const uint32_t *passes,
                              uint32_t n);

/** @return how many more batches bpt_loader_request() would take now. Slots go round in order, so a
 * batch that is kept lent while later ones are released holds up the requests behind it */
uint32_t bpt_loader_room(bpt_loader *loader);

/** Takes the oldest requested batch that has not been taken, waiting until it is ready.
 * @param[out] batch lent until bpt_loader_release(); on error nothing is lent and the batch is gone
 * @return BPT_OK, BPT_EUSAGE (none was requested), BPT_ECORRUPT (names split and record) */
bpt_status bpt_loader_next(bpt_loader *loader, bpt_batch *batch);

/** Looks at the oldest requested batch that has not been taken, without taking it.
 * @return its input, which stays as it is until bpt_loader_release() of it; NULL: it is not ready
 * yet, could not be read, or none was requested */
const void *bpt_loader_peek(bpt_loader *loader);

/** Gives a batch back; its buffer will hold another one. Any order. */
void bpt_loader_release(bpt_loader *loader, const bpt_batch *batch);

/** @return nanoseconds that bpt_loader_next() has waited so far */
uint64_t bpt_loader_wait_ns(const bpt_loader *loader);

#endif
