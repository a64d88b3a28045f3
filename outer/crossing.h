/** @file outer/crossing.h
 * A network of which one rank, the host, computes the last layers for all: what crosses the border.
 *
 * In each step every rank computes the first layers of its own samples and sends the host what they
 * come to, and the labels; the host computes the rest for the samples of all as one batch, and
 * sends back the gradient of what it got. The weights behind the border never travel. (After RALP;
 * Park, Kim, Lee, Jeon, Noh: arXiv 1901.05803.)
 *
 * On all ranks a step is bpt_crossing_send(); then on the host bpt_crossing_collect() and, when the
 * gradients are computed, bpt_crossing_return(); then on all ranks bpt_crossing_wait(). Messages
 * travel while the callers compute, from and to where the networks have their values.
 *
 * Payload of a rank and step: samples x (2 x value_bytes + 4) bytes, of which samples x value_bytes
 * come back; that of the host is on no wire. With the gradients everybody gets a note from the
 * host.
 *
 * Memory: on the host the values and labels of all samples of a step; nothing is allocated after
 * create. Errors: as for an exchange, a rank on which a call fails ends the job with
 * bpt_comm_abort(). Threads: one, the training thread. */
#ifndef BPT_OUTER_CROSSING_H
#define BPT_OUTER_CROSSING_H

#include "outer/comm.h"

typedef struct bpt_crossing bpt_crossing;

/** What a crossing is made from. All pointers are borrowed for its life, but for `first`. */
typedef struct bpt_crossing_options {
    uint32_t host;             /* rank */
    size_t value_bytes;        /* of a sample at the border, at least 1 */
    const uint64_t *first;     /* where the samples of each rank begin among those of a step of all,
                                  shape [n_ranks + 1], ascending from 0; the last is how many they are.
                                  Copied */
    const void *values;        /* of this rank's samples; read between send and wait */
    void *gradients;           /* likewise; written between send and wait */
    const void *all_gradients; /* on the host: of the samples of all; read from return on until the
                                  next collect */
} bpt_crossing_options;

/** The samples of all ranks, in rank order. */
typedef struct bpt_crossing_batch {
    const void *values;
    const int32_t *labels;
    uint64_t n_samples;
} bpt_crossing_batch;

/** What the host has to tell of a step: numbers, whatever they mean. */
typedef struct bpt_crossing_note {
    double number[4];
} bpt_crossing_note;

/** Payload of this rank since create, as worker and as host. Summed over the ranks as much is sent
 * as received. */
typedef struct bpt_crossing_stats {
    uint64_t steps;
    uint64_t sent_bytes, received_bytes;
    uint64_t local_sent_bytes; /* of these, to the rank itself: on no wire */
} bpt_crossing_stats;

/** @param n_samples of all ranks @return bytes that it takes on the host */
size_t bpt_crossing_bytes(size_t value_bytes, uint64_t n_samples);

/** Makes one; collective over the job.
 * @param comm    borrowed while it lives
 * @param options host, value_bytes and first the same on all ranks
 * @param[out] c  caller owns, bpt_crossing_destroy()
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_crossing_create(bpt_comm *comm, const bpt_crossing_options *options,
                               bpt_crossing **c);

/** Ends it, when what was sent has left; not within a step. NULL is allowed.
 * @return BPT_OK, BPT_ECOMM; @p c is gone in any case */
bpt_status bpt_crossing_destroy(bpt_crossing *c);

/** Begins a step; returns at once. @param labels of this rank's samples; as they are until the step
 * has ended */
void bpt_crossing_send(bpt_crossing *c, const int32_t *labels);

/** On the host: waits for the samples of all.
 * @param[out] batch borrowed, valid until the next bpt_crossing_send()
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_crossing_collect(bpt_crossing *c, bpt_crossing_batch *batch);

/** On the host: sends everybody its gradients, and the note; returns at once. */
void bpt_crossing_return(bpt_crossing *c, bpt_crossing_note note);

/** Ends a step: the gradients of this rank's samples are there then.
 * @param[out] note what the host said
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_crossing_wait(bpt_crossing *c, bpt_crossing_note *note);

/** @return the counts */
bpt_crossing_stats bpt_crossing_stats_of(const bpt_crossing *c);

#endif
