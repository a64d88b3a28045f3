/** @file outer/data/holdings.h
 * Inside of outer/: which positions of an order each rank holds, and how they change hands.
 *
 * All ranks go through the same changes and so come to the same holdings without telling each
 * other more than how many positions each holds.
 *
 * Threads: one thread at a time. */
#ifndef BPT_OUTER_HOLDINGS_H
#define BPT_OUTER_HOLDINGS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** Positions begin..end-1. */
typedef struct bpt__span {
    uint64_t begin, end;
} bpt__span;

/** Spans in the order in which they were got; no two neighbours could be one. */
typedef struct bpt__spans {
    bpt__span *span; /* shape [n] */
    size_t n, capacity;
} bpt__spans;

typedef struct bpt__holdings {
    uint32_t n_ranks;
    uint64_t total;  /* positions 0..total-1 are held by somebody */
    uint64_t *held;  /* positions of each rank, shape [n_ranks] */
    bpt__spans *of;  /* shape [n_ranks] */
    bpt__spans pool; /* scratch: on its way from one rank to another */
} bpt__holdings;

/** Nobody holds anything.
 * @param[out] h caller owns, bpt__holdings_free() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__holdings_create(uint32_t n_ranks, bpt__holdings **h);
void bpt__holdings_free(bpt__holdings *h);

/** Changes hands so that each rank holds as many positions as it shall: a rank with too many gives
 * the latest that it got; those, in rank order, and then positions that nobody held yet go to the
 * ranks with too few, in rank order. So nothing moves but the difference.
 * @param held shape [n_ranks], the sum at least what it is now
 * @return BPT_OK, BPT_ENOMEM (@p h is unusable) */
bpt_status bpt__holdings_become(bpt__holdings *h, const uint32_t *held);

#endif
