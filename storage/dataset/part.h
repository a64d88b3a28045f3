/** @file storage/dataset/part.h
 * The records of a split that are on this host: which, and where. For this folder only.
 *
 * Threads: one thread adds, others look up meanwhile; create and free while one runs. */
#ifndef BPT_STORAGE_PART_H
#define BPT_STORAGE_PART_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A parcel that is here. */
typedef struct bpt__kept_parcel {
    const uint8_t *data; /* in the memory map */
    uint32_t n;          /* records */
    atomic_bool checked; /* it was found intact. Relaxed: checking twice does no harm */
} bpt__kept_parcel;

typedef struct bpt__part {
    uint64_t home;           /* bpt__parcel_home() */
    size_t record_bytes;     /* C*H*W */
    uint32_t count;          /* records of the whole split */
    _Atomic uint64_t *where; /* shape [count]: 0 if not here, else number of the parcel plus one, in
                                the upper half, and number in it; release by who adds, acquire by
                                who looks up: what is below is then there */
    bpt__kept_parcel **blocks; /* of parcels; those that exist never move; shape [n_blocks] */
    size_t n_blocks;
    uint32_t n_parcels;
} bpt__part;

/** @return bytes that a part of a split of @p count records takes, but for its parcels */
size_t bpt__part_bytes(uint32_t count);

/** Nothing is here.
 * @param[out] part bpt__part_free() is due, also on error
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__part_create(uint64_t home, size_t record_bytes, uint32_t count, bpt__part *part);
void bpt__part_free(bpt__part *part);

/** Makes sure that the next parcel can be added without memory.
 * @return BPT_OK, BPT_ECORRUPT (there are as many as records), BPT_ENOMEM */
bpt_status bpt__part_reserve(bpt__part *part);

/** Adds a parcel.
 * @param data    borrowed while the part lives
 * @param checked whether it was found intact
 * @return BPT_OK, BPT_ECORRUPT (not one of this split, by its sizes and indices), BPT_ENOMEM (not
 *         after bpt__part_reserve()) */
bpt_status bpt__part_add(bpt__part *part, const uint8_t *data, size_t size, bool checked);

/** @param[out] k number of the record in the parcel; set if it is here
 * @return the parcel that record @p i, in [0, count), is in; NULL if it is not here */
bpt__kept_parcel *bpt__part_find(const bpt__part *part, uint32_t i, uint32_t *k);

#endif
