/** @file outer/placement/relay.h
 * Batches of all ranks on their way through one of them, the server: what is at a border of a
 * network goes there with its labels, and its gradient comes back
 * (outer/placement/layer_placement.h).
 *
 * Every rank is a worker: it sends a batch and waits for its answer. The server takes the batches
 * in the order in which they have arrived, and answers each, in any order. Sizes are those that
 * were agreed on: a rank's batches have one number of samples. Nothing is copied but what stays on
 * the server's rank: batches arrive where the server wants them, gradients where the worker does,
 * and both are sent from where they are.
 *
 * A step of a worker with n samples puts n (2 a A + 4) bytes on the wires, with sample_bytes = a A,
 * the label's 4 among them; headers are counted apart, and so is what stays on a rank.
 *
 * Errors: a rank on which a call fails reports and ends the job with bpt_comm_abort(). A server
 * that cannot make anything of a batch hands its error to the worker that waits for it, whose wait
 * fails with it: bpt_relay_refuse(). Nothing is allocated after create. Threads: send and wait are
 * called by one thread of a rank, the training thread; next by one of the server's rank, the same
 * or another (bpt_relay_options.own_thread); answer and refuse by any, one at a time. */
#ifndef BPT_OUTER_RELAY_H
#define BPT_OUTER_RELAY_H

#include "base/status.h"
#include "outer/comm/comm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_relay bpt_relay;

#define BPT_RELAY_NOBODY UINT32_MAX /* a worker */

/** What a relay is made from. */
typedef struct bpt_relay_options {
    uint32_t server;         /* rank, the same on all */
    size_t sample_bytes;     /* of a sample's values, and of their gradient; at least 1; the same on
                              * all */
    const uint32_t *samples; /* of each rank's batches, at least 1, shape [n_ranks]; the same on
                              * all; copied */
    /** On the server: where each rank's batches arrive, shape [n_ranks] of [samples * sample_bytes]
     * and of [samples]. The places are borrowed; they are the server's from next to answer. */
    void *const *values;
    int32_t *const *labels;
    bool own_thread; /* on the server: next is called by another thread than send and wait */
} bpt_relay_options;

/** Goes with a batch, for the server to read; nothing here looks at it. */
typedef struct bpt_relay_note {
    uint64_t seed, step, first_sample; /* names of random numbers */
    float denominator;                 /* of the loss */
    float rate;                        /* at which the server is to learn from it */
} bpt_relay_note;

/** What the server made of a batch. */
typedef struct bpt_relay_result {
    double loss_sum;
    uint64_t n_correct, n_samples;
} bpt_relay_result;

/** Counts of this rank since create. What stays on the server's rank is on no wire and counted as
 * local alone. */
typedef struct bpt_relay_stats {
    uint64_t batches;                                    /* sent and answered */
    uint64_t payload_sent_bytes, payload_received_bytes; /* values, labels and gradients */
    uint64_t header_sent_bytes, header_received_bytes;   /* all else */
    uint64_t local_bytes;                                /* of payload, there and back */
    uint64_t wait_ns;                                    /* inside of bpt_relay_wait() */
} bpt_relay_stats;

/** Makes the relay; collective over the job.
 * @param comm    borrowed while the relay lives
 * @param[out] r  caller owns, bpt_relay_destroy()
 * @return BPT_OK, BPT_EUSAGE (ranks differ in the server, or in sizes), BPT_ENOMEM, BPT_EPEER,
 *         BPT_ECOMM */
bpt_status bpt_relay_create(bpt_comm *comm, const bpt_relay_options *options, bpt_relay **r);

/** Ends it; collective over the job, once every batch is answered and no other thread is in a call
 * of it. NULL is allowed.
 * @return BPT_OK, BPT_ECOMM; @p r is gone in any case */
bpt_status bpt_relay_destroy(bpt_relay *r);

/** Sends a batch of this rank's number of samples; returns at once. The one before has been waited
 * for.
 * @param values,labels shape [samples]; borrowed until bpt_relay_wait() has returned
 * @param[out] gradient where the answer is put, shape [samples * sample_bytes]; borrowed likewise
 * @return BPT_OK, or the error that ended the relay on this rank */
bpt_status bpt_relay_send(bpt_relay *r, const bpt_relay_note *note, const void *values,
                          const int32_t *labels, void *gradient);

/** Waits for the answer of the batch that was sent. @return BPT_OK, BPT_ECOMM, or what the server
 * refused it with */
bpt_status bpt_relay_wait(bpt_relay *r, bpt_relay_result *result);

/** Server: waits for the next batch, and takes it.
 * @param[out] worker whose it is; it lies where options.values and .labels say. BPT_RELAY_NOBODY if
 *                    no batch is here and bpt_relay_stop() was called
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_relay_next(bpt_relay *r, uint32_t *worker, bpt_relay_note *note);

/** Server: answers a batch that was taken. Its place is given back: once the answer has left, MPI
 * waits for the next there, and it arrives when the worker sends it. Until then the place may still
 * be read.
 * @param gradient shape [samples * sample_bytes], borrowed until the worker's next batch was taken
 *                 or the relay is gone; may be the place of the batch itself
 * @return BPT_OK, or the error that ended the relay on this rank */
bpt_status bpt_relay_answer(bpt_relay *r, uint32_t worker, const bpt_relay_result *result,
                            const void *gradient);

/** Server: as bpt_relay_answer(), of a batch from which nothing came: the worker's wait returns the
 * status and the text (its first 200 bytes) of this thread's last error.
 * @param gradient as there; what it holds does not matter */
bpt_status bpt_relay_refuse(bpt_relay *r, uint32_t worker, const void *gradient);

/** Server: lets bpt_relay_next() return when no batch is here, now and in future; any thread. */
void bpt_relay_stop(bpt_relay *r);

/** Copies the counts. */
void bpt_relay_stats_get(bpt_relay *r, bpt_relay_stats *stats);

#endif
