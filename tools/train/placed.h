/** @file tools/train/placed.h
 * A network in two parts, for allreduce: every rank has the first layers, its head; one rank, the
 * host, has the last ones for all, the tail. What travels in a step is what crosses the border and
 * the gradients of the head, instead of those of all layers (outer/relay.h).
 *
 * All ranks compute what one network would: a step's batch is that of all ranks, in their order,
 * and the tail learns from it as a whole. Evaluations and files want all weights in one place:
 * bpt_placed_gather() brings them there.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_PLACED_H
#define BPT_TOOLS_PLACED_H

#include "inner/network.h"
#include "outer/relay.h"
#include "storage/loader.h"

typedef struct bpt_job bpt_job;
typedef struct bpt_placed bpt_placed;

/** Parts a job's network; job->network, which was whole, then evaluates and nothing else. Batches
 * are cut. Weights and states are undefined. Collective.
 * @param border behind this layer of the model: BPT_BORDER_POSSIBLE
 * @param host   rank
 * @return BPT_OK, BPT_EUSAGE (ranks with unlike activations), or as bpt_network_create() and
 *         bpt_relay_create(), agreed on */
bpt_status bpt_placed_open(bpt_job *job, size_t border, uint32_t host);

/** Releases the parts. Collective once there was a step. NULL is allowed. */
void bpt_placed_close(bpt_placed *p);

/** @return the part that this rank trains like all others */
bpt_network *bpt_placed_head(const bpt_placed *p);

/** @return its model, whose flat vector is the first elements of the whole one's */
const bpt_model *bpt_placed_head_model(const bpt_placed *p);

/** @return the layer behind which the border is, and the rank of the host */
size_t bpt_placed_border(const bpt_placed *p);
uint32_t bpt_placed_host(const bpt_placed *p);

/** A step: forward, across the border and back, and backward; the tail has learnt, the gradients of
 * the head can be read. Collective.
 * @param draw of this rank's samples; on the host that of rank 0 names all
 * @param rate of the tail
 * @param denominator samples of all ranks
 * @param[out] result of the samples of all ranks, everywhere
 * @param[out] wait_ns of this, spent waiting for others
 * @return BPT_OK, BPT_ENUMERIC, BPT_EDATA, BPT_EBACKEND, BPT_ECOMM */
bpt_status bpt_placed_step(bpt_placed *p, const bpt_batch *batch, bpt_draw draw, float rate,
                           float denominator, bpt_batch_result *result, uint64_t *wait_ns);

/** Brings the weights of both parts to job->network of all ranks; uses job->flat. Collective.
 * @return BPT_OK, BPT_EBACKEND, BPT_ECOMM */
bpt_status bpt_placed_gather(bpt_job *job);

/** Reads or writes a vector of the optimiser's state as this rank has it: the tail's part is that
 * of the host, elsewhere zero and not read.
 * @param flat shape [elements of the model]
 * @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_placed_get(bpt_placed *p, bpt_vector which, float *flat);
bpt_status bpt_placed_set(bpt_placed *p, bpt_vector which, const float *flat);

/** Updates made so far, of both parts. */
void bpt_placed_set_updates(bpt_placed *p, uint64_t n);

/** @return what has crossed the border */
bpt_relay_stats bpt_placed_stats(const bpt_placed *p);

#endif
