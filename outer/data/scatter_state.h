/** @file outer/data/scatter_state.h
 * Inside of outer/: what scatter.c (its life, and what callers ask), scatter_give.c (rank 0) and
 * scatter_take.c (the others) share.
 *
 * A request has a slot of its rank, and so has its answer: two of a rank never meet. */
#ifndef BPT_OUTER_SCATTER_STATE_H
#define BPT_OUTER_SCATTER_STATE_H

#include "outer/comm/comm_thread.h"
#include "outer/comm/transfers.h"
#include "outer/data/scatter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    BPT__SCATTER_SLOTS = 2,   /* requests of a rank that are under way */
    BPT__SCATTER_PARCELS = 4, /* that rank 0 makes and sends at a time */
};

/** Where the threads of a scatter may hang, for people. */
#define BPT__SCATTER_KEEPS_AT "the scratch disk"
#define BPT__SCATTER_MAKES_AT "the disk that others are given from"

/** A request; the answer is a bpt_error, status BPT_OK or not, and then the parcel. */
typedef struct bpt__scatter_request {
    uint32_t kind, n;
    uint32_t number[]; /* shape [items_per_parcel], of which n count */
} bpt__scatter_request;

enum bpt__scatter_parcel_state {
    BPT__PARCEL_FREE,
    BPT__PARCEL_MAKING,
    BPT__PARCEL_MADE,
    BPT__PARCEL_LEAVING
};

/** A parcel of rank 0. */
typedef struct bpt__scatter_parcel {
    enum bpt__scatter_parcel_state state; /* what it holds others read in FREE and MADE only */
    uint32_t listener;                    /* whose request it answers */
    bpt_error verdict;
    char *bytes; /* shape [largest parcel] */
} bpt__scatter_parcel;

/** Rank 0. Listener l hears slot l % SLOTS of rank 1 + l / SLOTS. */
typedef struct bpt__giver {
    uint32_t n_listeners;
    char *requests;  /* shape [n_listeners][request_bytes]: the MPI thread's while it listens, then
                        the maker's until the parcel is made */
    uint32_t *queue; /* shape [n_listeners]: a ring of listeners that were heard */
    uint32_t first, n_queued;
    bpt__scatter_parcel parcels[BPT__SCATTER_PARCELS];
} bpt__giver;

enum bpt__scatter_request_slot_state {
    BPT__REQUEST_FREE,
    BPT__REQUEST_ASKED,
    BPT__REQUEST_ARRIVED
};

/** A request of another rank, with its answer. */
typedef struct bpt__scatter_request_slot {
    enum bpt__scatter_request_slot_state state; /* ASKED: the MPI thread's, ARRIVED: the keeper's */
    bpt__scatter_request *request;
    bpt_error verdict;
    char *parcel; /* shape [largest parcel] */
} bpt__scatter_request_slot;

/** Another rank. Requests go round the slots, and are kept in their order. */
typedef struct bpt__taker {
    uint32_t *number; /* shape [n_items]: all that was ever wanted, in order */
    uint8_t *kind;    /* likewise */
    uint64_t n_asked; /* of them */
    uint64_t n_requests, n_done;
    bpt__scatter_request_slot slots[BPT__SCATTER_SLOTS];
} bpt__taker;

struct bpt_scatter {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_comm *comm;
    uint32_t m, rank;
    bpt_scatter_options options;
    size_t request_bytes;
    bpt__transfers *transfers; /* groups of rank 0: listeners, then parcels; of others: slots */
    uint32_t *complete;        /* shape [groups], scratch of the MPI thread */
    bool listening;            /* the MPI thread's: rank 0 has begun to */

    pthread_t thread; /* makes, or keeps */
    bool has_thread;

    _Atomic uint64_t n_wanted, n_kept; /* written under the mutex */
    atomic_bool failed;                /* release after `error`, acquire by who reads it */

    pthread_mutex_t mutex; /* guards what is above but for the MPI thread's, and all below; never
                              held together with another */
    pthread_cond_t changed;
    bool quiet, stopping; /* quiet: nothing more is asked for; stopping: the threads end */
    bool dead;            /* the MPI thread polls no longer */
    bpt_error error;      /* of the first failure */
    bpt_scatter_stats stats;
    bpt__giver giver;
    bpt__taker taker;
};

/** @return bytes of a parcel of @p n items */
size_t bpt__scatter_parcel_bytes(const bpt_scatter *x, uint32_t n);

/** @return tags of requests (@p up) of a slot, or of answers */
int bpt__scatter_tag(uint32_t slot, bool up);

/** Looks what has moved, on the MPI thread: a wait of which parts still come does not hang.
 * @param[out] moved,n_complete as of bpt__transfers_poll(), and so is `complete` */
bpt_status bpt__scatter_transfer(bpt_scatter *x, bool *moved, uint32_t *n_complete);

/** Keeps this thread's last error as that of this rank, unless there is one. With the mutex. */
void bpt__scatter_fail(bpt_scatter *x);

/** Rank 0: memory; room of its groups; what the MPI thread does; body of the thread. */
bpt_status bpt__giver_create(bpt_scatter *x);
void bpt__giver_free(bpt_scatter *x);
bpt_status bpt__giver_transfers(bpt_scatter *x);
bpt_status bpt__giver_poll(bpt_scatter *x, bool *moved, bool *done);
void *bpt__giver_main(void *scatter);

/** The other ranks: likewise. */
bpt_status bpt__taker_create(bpt_scatter *x);
void bpt__taker_free(bpt_scatter *x);
bpt_status bpt__taker_transfers(bpt_scatter *x);
bpt_status bpt__taker_poll(bpt_scatter *x, bool *moved, bool *done);
void *bpt__taker_main(void *scatter);

/** @return whether a request is under way, or its answer is not kept yet. With the mutex. */
bool bpt__taker_busy(const bpt_scatter *x);

/** @return whether an answer is being kept, or is next to be. With the mutex. */
bool bpt__taker_keeps(const bpt_scatter *x);

#endif
