/** @file storage/images/resize_columns.h
 * The second half of resizing: a line that was made of rows becomes a row of pixels. For this
 * folder only.
 *
 * Threads: a table belongs to one thread at a time. */
#ifndef BPT_STORAGE_IMAGES_RESIZE_COLUMNS_H
#define BPT_STORAGE_IMAGES_RESIZE_COLUMNS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** Of four lanes so many pixels are computed at once. */
enum { BPT__COLUMNS_GROUP = 4 };

/** @return W pixels in whole groups */
static inline uint32_t bpt__columns_rounded(uint32_t W) {
    return (W + BPT__COLUMNS_GROUP - 1) / BPT__COLUMNS_GROUP * BPT__COLUMNS_GROUP;
}

/** What all pixels of a row take: as many each, so that no branch has to be guessed. All zero: none
 * yet. */
typedef struct bpt__columns {
    uint32_t lanes, W;    /* pixels of the result that are kept */
    uint32_t n;           /* of each of them */
    uint32_t whole;       /* sum of the weights */
    uint32_t from, width; /* the pixels of the input that are taken at all */
    uint32_t *first;      /* shape [W rounded]: from there, counted from `from` on */
    uint32_t *weights;    /* shape [W,n]; 0 where a pixel needs fewer */
    uint16_t *shares;     /* of n up to BPT__FEW_TAPS, in the order that they are used in */
    size_t first_capacity, weights_capacity, shares_capacity;
} bpt__columns;

/** Fills the table for W pixels of the result from @p crop on.
 * @param lanes 1 or 4
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__columns_fill(bpt__columns *columns, uint32_t lanes, uint32_t crop, uint32_t W,
                             uint32_t in, uint32_t out);
void bpt__columns_clear(bpt__columns *columns);

/** @param line shape [width,lanes] of bpt__resize_rows(), from pixel `from` on
 * @param[out] pixels shape [W,lanes]; of four lanes W rounded, and those behind W are of no use */
void bpt__resize_columns(const bpt__columns *columns, const uint16_t *line, uint8_t *pixels);

#endif
