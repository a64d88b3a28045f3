/** @file storage/dataset/statistics.h
 * Counts per class and moments per channel of a split, in integers: exact, in any order.
 *
 * Threads: a bpt__statistics belongs to one thread. */
#ifndef BPT_STORAGE_STATISTICS_H
#define BPT_STORAGE_STATISTICS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bpt__statistics {
    size_t C, plane; /* channels; H*W, or 0 where images differ in size */
    uint32_t n_classes;
    uint64_t count;      /* records */
    uint64_t n_pixels;   /* of a channel, in all of them */
    uint64_t *per_class; /* shape [n_classes] */
    uint64_t *sum;       /* of pixels, shape [C] */
    uint64_t *square;    /* sum of squared pixels, shape [C] */
} bpt__statistics;

/** @return BPT_OK, BPT_ENOMEM; on success bpt__statistics_free() is due */
bpt_status bpt__statistics_init(bpt__statistics *s, size_t C, size_t plane, uint32_t n_classes);
void bpt__statistics_free(bpt__statistics *s);

/** Counts a record in.
 * @param pixels shape [C,H,W]
 * @param label  in [0, n_classes) */
void bpt__statistics_add(bpt__statistics *s, const uint8_t *pixels, uint32_t label);

/** Counts a record in whose sums are known.
 * @param n_pixels    of a channel, at least 1
 * @param sum, square of its pixels, shape [C] */
void bpt__statistics_add_sums(bpt__statistics *s, uint64_t n_pixels, const uint64_t *sum,
                              const uint64_t *square, uint32_t label);

/** Goes on from what a split is described by: the sums are those that were counted, as long as they
 * stay below 2^50; beyond, a deviation may differ in its last digits.
 * @param count     records, at least 1
 * @param n_pixels  of a channel, in all of them
 * @param per_class shape [n_classes]
 * @param mean, std of bpt__statistics_finish(), shape [C] */
void bpt__statistics_restore(bpt__statistics *s, uint64_t count, uint64_t n_pixels,
                             const uint64_t *per_class, const double *mean, const double *std);

/** Adds @p n pixels of a channel to two sums. */
void bpt__statistics_sum(const uint8_t *pixels, size_t n, uint64_t *sum, uint64_t *square);

/** Means and standard deviations of pixels / 255 over all records (at least one).
 * @param[out] mean, std shape [C] */
void bpt__statistics_finish(const bpt__statistics *s, double *mean, double *std);

#endif
