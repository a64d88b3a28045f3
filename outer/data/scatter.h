/** @file outer/data/scatter.h
 * Rank 0 has items that the others want, each some of them: it sends to each what that rank asks
 * for, in the order in which it asks.
 *
 * An item is named by a kind and a number, and has the same number of bytes as every other. What
 * rank 0 sends is a parcel of several: made there, and kept by the rank that asked, by functions
 * that the caller plugs in. Both run on a thread of the scatter's own, one on each rank, so that
 * neither a disk nor a checksum holds up the MPI thread or the one that trains. A rank has two
 * requests under way: while one parcel is kept the next one travels.
 *
 * Who asks for nothing is sent nothing. What a rank keeps, and for how long, is its own affair.
 *
 * Errors: where a parcel cannot be made, the rank that asked for it and rank 0 both come to know;
 * where it cannot be kept, the rank that asked. Then bpt_scatter_check() fails there, and nothing
 * more is kept.
 * Memory: fixed at create. Threads: one thread of the rank, the one that trains. */
#ifndef BPT_OUTER_SCATTER_H
#define BPT_OUTER_SCATTER_H

#include "base/status.h"
#include "outer/comm/comm.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bpt_scatter bpt_scatter;

/** Items of one kind, as one request names them. */
typedef struct bpt_scatter_items {
    uint32_t kind;
    uint32_t n;             /* 1 to items_per_parcel */
    const uint32_t *number; /* shape [n] */
} bpt_scatter_items;

typedef struct bpt_scatter_options {
    /** Rank 0: writes a parcel of @p items to @p parcel, all its bytes.
     * @return BPT_OK or any error */
    bpt_status (*make)(void *arg, const bpt_scatter_items *items, void *parcel);
    /** Other ranks: keeps a parcel that should be of @p items.
     * @return BPT_OK or any error */
    bpt_status (*keep)(void *arg, const bpt_scatter_items *items, const void *parcel);
    void *arg;                 /* of both */
    size_t parcel_bytes;       /* of a parcel beside its items; the same on all ranks, and so are */
    size_t item_bytes;         /* bytes of an item in it */
    uint32_t items_per_parcel; /* at most; at least 1 */
    uint64_t n_items;          /* that this rank will want at most */
    const char *waits_at;      /* "the arrival of samples", for people; borrowed for ever */
} bpt_scatter_options;

/** Counts of this rank since create. */
typedef struct bpt_scatter_stats {
    uint64_t items_sent, item_bytes_sent; /* by rank 0, in parcels that it made to be sent */
    uint64_t items_kept, item_bytes_kept; /* by the others */
} bpt_scatter_stats;

/** @return bytes that a scatter with these options takes on a rank */
size_t bpt_scatter_bytes(const bpt_scatter_options *options, uint32_t n_ranks, uint32_t rank);

/** Collective over the job, of at least 2 ranks.
 * @param comm    borrowed while the scatter lives
 * @param options copied; .arg is borrowed while the scatter lives
 * @param[out] x  caller owns, bpt_scatter_destroy()
 * @return BPT_OK, BPT_EUSAGE (this rank's sizes are not rank 0's), BPT_ENOMEM, BPT_EPEER, BPT_ECOMM
 */
bpt_status bpt_scatter_create(bpt_comm *comm, const bpt_scatter_options *options, bpt_scatter **x);

/** Ends it; collective over the job. What was asked for and is under way comes, the rest does not.
 * NULL is allowed, on all ranks alike.
 * @return BPT_OK, BPT_ECOMM; @p x is gone in any case */
bpt_status bpt_scatter_destroy(bpt_scatter *x);

/** Asks for items, behind those that were asked for before. Not on rank 0. Returns at once.
 * @param number shape [n], copied; with all earlier ones at most .n_items
 * @param n      may be 0 */
void bpt_scatter_want(bpt_scatter *x, uint32_t kind, const uint32_t *number, size_t n);

/** @return items that this rank has asked for so far */
uint64_t bpt_scatter_wanted(const bpt_scatter *x);

/** @return how many of them are kept, in the order in which they were asked for; one atomic load */
uint64_t bpt_scatter_kept(const bpt_scatter *x);

/** Waits until so many are kept, but not longer than told.
 * @param at_most_s INFINITY: as long as it takes
 * @return BPT_OK (also where the time is over), as bpt_scatter_check() */
bpt_status bpt_scatter_wait(bpt_scatter *x, uint64_t n_kept, double at_most_s);

/** Asks for nothing more, and waits until what is under way is kept: counts then change no more, on
 * rank 0 once all others have come to this.
 * @return as bpt_scatter_check() */
bpt_status bpt_scatter_settle(bpt_scatter *x);

/** @return BPT_OK, or the error that something of this rank came to: one atomic load if none */
bpt_status bpt_scatter_check(bpt_scatter *x);

/** Copies the counts. */
void bpt_scatter_stats_get(bpt_scatter *x, bpt_scatter_stats *stats);

#endif
