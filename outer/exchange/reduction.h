/** @file outer/exchange/reduction.h
 * Sums of vectors over all ranks, bucket by bucket, while the rest of the vector is still computed.
 *
 * A bucket is a range of the vector. It is cut in one piece a rank; each rank sends its pieces to
 * those whose they are, sums its own over the ranks in rank order, and sends the sum back. So the
 * same bits are everywhere, whatever comes when. A bucket may be given by any thread, in any order,
 * once a step; when it is summed a function of the caller's is called.
 *
 * Payload of a rank and step: 4 n bytes there and 4 n bytes back, in both directions, of which one
 * part in n_ranks stays on the rank.
 *
 * Memory: the vector, and n_ranks - 1 pieces of each bucket; nothing is allocated after create.
 * Errors: a rank on which something fails ends the job with bpt_comm_abort().
 * Threads: see the functions. */
#ifndef BPT_OUTER_REDUCTION_H
#define BPT_OUTER_REDUCTION_H

#include "outer/comm/comm.h"

typedef struct bpt_reduction bpt_reduction;

enum { BPT_REDUCTION_BUCKETS = 8000 }; /* at most */

typedef struct bpt_reduction_options {
    uint32_t n_buckets;  /* 1 to BPT_REDUCTION_BUCKETS */
    const size_t *begin; /* of each bucket, ascending from 0; shape [n_buckets + 1], the last is n.
                            Only read by create */

    /** Called once for each time that a bucket is given: when it is summed, by the MPI thread, or
     * has failed (said with bpt_fail()); after a failure of any bucket all do, and it may be the
     * thread that gives which calls. Must not wait. */
    void (*summed)(void *context, uint32_t bucket, bpt_status status);
    void *context;
} bpt_reduction_options;

/** Counts of this rank since create. */
typedef struct bpt_reduction_stats {
    uint64_t buckets;                    /* summed */
    uint64_t sent_bytes, received_bytes; /* payload, what stays on the rank included */
} bpt_reduction_stats;

/** @return bytes that a reduction takes on a rank */
size_t bpt_reduction_bytes(size_t n_elements, uint32_t n_buckets, uint32_t n_ranks);

/** Makes one; collective over the job.
 * @param comm    borrowed while the reduction lives
 * @param options the same buckets on all ranks
 * @param[out] r  caller owns, bpt_reduction_destroy()
 * @return BPT_OK, BPT_EUSAGE (ranks differ in n or in buckets; too many of them), BPT_ENOMEM,
 * BPT_EPEER, BPT_ECOMM */
bpt_status bpt_reduction_create(bpt_comm *comm, const bpt_reduction_options *options,
                                bpt_reduction **r);

/** Ends it; collective over the job, when all that was given is summed on every rank: buckets that
 * the others have given and this one never will are waited for. So in the middle of a step, after
 * an error, only a rank by itself may end it. NULL is allowed.
 * @return BPT_OK, BPT_ECOMM; @p r is gone in any case */
bpt_status bpt_reduction_destroy(bpt_reduction *r);

/** @return the vector, shape [n]: a bucket is the caller's until it is given, and again when it is
 * summed; then it holds the sum */
float *bpt_reduction_vector(bpt_reduction *r);

/** Gives a bucket, and again only after .summed was called for it; returns at once. Any thread;
 * what it has written is seen by the MPI thread. */
void bpt_reduction_give(bpt_reduction *r, uint32_t bucket);

/** Between these calls all there is to do is to wait for sums, so that messages are looked for
 * sooner. The training thread. */
void bpt_reduction_wait_begin(bpt_reduction *r);
void bpt_reduction_wait_end(bpt_reduction *r);

/** Copies the counts; not while buckets are under way. */
void bpt_reduction_stats_get(bpt_reduction *r, bpt_reduction_stats *stats);

#endif
