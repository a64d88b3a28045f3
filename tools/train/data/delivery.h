/** @file tools/train/data/delivery.h
 * --data-mode scatter: how samples come from rank 0's dataset into the scratch of the other ranks.
 *
 * A rank asks for what it will train on and does not have: where the data are given out in rounds,
 * for those of each round as soon as it hears of it; where all ranks draw from one order, for those
 * of the next steps, well ahead. Behind what the first steps need comes its part of the test split.
 * A round counts for the passes over the data from the moment at which all of it has come, so
 * nobody waits for it; a sample that is here is not asked for again.
 *
 * On rank 0, which has the dataset, most of this does nothing; so it does on a server.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_DELIVERY_H
#define BPT_TOOLS_DELIVERY_H

#include "outer/comm/comm.h"
#include "outer/data/partition.h"
#include "outer/data/sampler.h"
#include "outer/data/scatter.h"
#include "storage/dataset/scratch.h"
#include "tools/train/data/feed.h"

typedef struct bpt_delivery bpt_delivery;

/** Records first to first + count - 1 of a split. */
typedef struct bpt_record_range {
    uint32_t first, count;
} bpt_record_range;

/** What is delivered. */
typedef struct bpt_delivery_options {
    uint32_t rank;
    const bpt_dataset *dataset; /* of rank 0, or what its scratch makes of it; NULL on a server */
    size_t record_bytes;        /* C*H*W */
    bpt_scratch *scratch;       /* NULL on rank 0, and on a server, which wants no samples */
    const bpt_split *train, *test;
    uint64_t identity;          /* checksum of bpt_dataset_export() */
    bpt_record_range test_part; /* of this rank */

    const bpt_partition *shares; /* NULL: all ranks draw from one order, and then */
    bpt_order order;
    uint64_t batch_all, first_sample, steps; /* what bpt_sampler_create_global() takes, and how many
                                                steps are left */
    uint32_t batch, prefetch; /* samples of a step of this rank; steps that the feed is ahead */
    bpt_sampler_state start;  /* where the feed begins */
} bpt_delivery_options;

/** @return bytes that it takes on a rank, but for a header
 * @param n_train,n_test samples of the training split, and of this rank's part of the test split
 * @param record_bytes C*H*W */
size_t bpt_delivery_bytes(uint64_t n_train, uint64_t n_test, size_t record_bytes, uint32_t n_ranks,
                          uint32_t rank);

/** Whether rank 0 can give out what a dataset holds.
 * @param path of it, for the message
 * @return BPT_OK, BPT_EUSAGE (encoded images; with hint) */
bpt_status bpt_delivery_check(const bpt_dataset *dataset, const char *path);

/** Asks for what comes first. Collective over the job, of at least 2 ranks.
 * @param options copied; what it points to is borrowed while the delivery lives
 * @param[out] d caller owns, bpt_delivery_close()
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_delivery_open(bpt_comm *comm, const bpt_delivery_options *options, bpt_delivery **d);

/** Ends it: what is under way comes, the rest does not. Collective. NULL is allowed, on all ranks
 * alike. */
void bpt_delivery_close(bpt_delivery *d);

/** Waits for what has to be there before the first step, but not longer than told.
 * @param at_most_s INFINITY: until something has come, or all is there
 * @param[out] n_kept samples that have come so far
 * @param[out] here   whether it is
 * @return BPT_OK, or what bpt_scatter_check() returns */
bpt_status bpt_delivery_await_first(bpt_delivery *d, double at_most_s, uint64_t *n_kept,
                                    bool *here);

/** Lets the feed draw what has come, and ask before it reads. */
void bpt_delivery_attach(bpt_delivery *d, bpt_feed *feed);

/** Before each step: asks for what is wanted by now, and lets the feed draw what has come. Waits
 * for nothing; allocates only where a round of the data is new.
 * @return BPT_OK, BPT_ENOMEM, or what bpt_scatter_check() returns */
bpt_status bpt_delivery_advance(bpt_delivery *d, bpt_feed *feed);

/** Waits until this rank's part of the test split is here. @return as bpt_scatter_wait() */
bpt_status bpt_delivery_await_test(bpt_delivery *d);

/** @return samples of both splits that were in scratch when it was opened */
uint64_t bpt_delivery_found(const bpt_delivery *d);

/** Training is over: asks for nothing more. @return as bpt_scatter_settle() */
bpt_status bpt_delivery_settle(bpt_delivery *d);

/** Copies the counts since it was opened. */
void bpt_delivery_stats(bpt_delivery *d, bpt_scatter_stats *stats);

#endif
