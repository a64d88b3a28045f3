/** @file outer/crossing.h
 * A network of which one rank, the host, computes the last layers for all: what crosses the border.
 *
 * In each step every rank computes the first layers of its own samples and sends the host what they
 * come to, and the labels; the host computes the rest for the samples of all as one batch, and
 * sends back the gradient of what it got. The weights behind the border never travel. (After RALP;
 * Park, Kim, Lee, Jeon, Noh: arXiv 1901.05803.)
 *
 * On all ranks a step is: fill bpt_crossing_values() and bpt_crossing_labels(),
 * bpt_crossing_send(); then on the host bpt_crossing_collect(), fill the gradients,
 * bpt_crossing_return(); then on all ranks bpt_crossing_wait(). Messages travel while the callers
 * compute; what the host has for itself is where it is needed, and takes no message.
 *
 * Payload of a rank and step: samples x (2 x values x 4 + 4) bytes, half of the first going there;
 * that of the host is on no wire.
 *
 * Memory: 2 x samples x values floats and the labels, on the host for the samples of all; nothing
 * is allocated after create. Errors: as for an exchange, a rank on which a call fails ends the job
 * with bpt_comm_abort(). Threads: one, the training thread. */
#ifndef BPT_OUTER_CROSSING_H
#define BPT_OUTER_CROSSING_H

#include "outer/comm.h"

typedef struct bpt_crossing bpt_crossing;

typedef struct bpt_crossing_options {
    uint32_t host;         /* rank */
    size_t n_values;       /* of a sample at the border, at least 1 */
    const uint64_t *first; /* where the samples of each rank begin among those of a step of all,
                              shape [n_ranks + 1], ascending from 0; the last is how many they are.
                              Copied */
} bpt_crossing_options;

/** The samples of all ranks, on the host; borrowed. */
typedef struct bpt_crossing_batch {
    const float *values;   /* [n_samples][n_values] */
    const int32_t *labels; /* [n_samples] */
    float *gradients;      /* to be filled, shape as values */
    uint64_t n_samples;
} bpt_crossing_batch;

/** Counts of this rank since create; what stays on the host is in none. */
typedef struct bpt_crossing_stats {
    uint64_t steps;
    uint64_t sent_bytes, received_bytes;
} bpt_crossing_stats;

/** @param n_samples of the rank; on the host of all @return bytes that it takes on a rank */
size_t bpt_crossing_bytes(size_t n_values, uint64_t n_samples);

/** Makes one; collective over the job.
 * @param comm    borrowed while it lives
 * @param options the same on all ranks
 * @param[out] c  caller owns, bpt_crossing_destroy()
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_crossing_create(bpt_comm *comm, const bpt_crossing_options *options,
                               bpt_crossing **c);

/** Ends it, when what was sent has left. Collective; not within a step. NULL is allowed.
 * @return BPT_OK, BPT_ECOMM; @p c is gone in any case */
bpt_status bpt_crossing_destroy(bpt_crossing *c);

/** @return where this rank puts what its samples come to at the border, shape [samples][n_values];
 * borrowed. To be filled between bpt_crossing_wait() and bpt_crossing_send() */
float *bpt_crossing_values(bpt_crossing *c);

/** @return where this rank puts their labels, shape [samples]; likewise */
int32_t *bpt_crossing_labels(bpt_crossing *c);

/** Begins a step; returns at once. @return BPT_OK, BPT_ECOMM */
bpt_status bpt_crossing_send(bpt_crossing *c);

/** On the host: waits for the samples of all.
 * @param[out] batch valid until bpt_crossing_return()
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_crossing_collect(bpt_crossing *c, bpt_crossing_batch *batch);

/** On the host: sends everybody its gradients; returns at once. @return BPT_OK, BPT_ECOMM */
bpt_status bpt_crossing_return(bpt_crossing *c);

/** Ends a step: waits for the gradients of this rank's samples.
 * @param[out] gradients shape [samples][n_values]; borrowed, valid until the next
 * bpt_crossing_send()
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_crossing_wait(bpt_crossing *c, const float **gradients);

/** @return the counts */
bpt_crossing_stats bpt_crossing_stats_of(const bpt_crossing *c);

#endif
