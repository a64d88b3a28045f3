/** @file tools/train/job/placed.h
 * A network in two parts, for allreduce and agwu: every rank has the first layers, its head; one
 * rank, the host, has the last ones for all, the tail. What travels in a step is what crosses the
 * border (outer/placement/relay.h); what ranks exchange is of the head alone.
 *
 * Under allreduce all ranks compute what one network would: a step's batch is that of all ranks, in
 * their order, and the tail learns from it as a whole. Under agwu the tail learns from the batch of
 * each rank as it comes, by a thread and with a pool of its own (tools/train/job/tail_server.h),
 * and a rank waits for its own answer alone.
 *
 * The head of a rank advances by its rate r at each of its steps, and by agwu the global head by
 * the mean of what the m ranks do: by r / m for each batch of any of them. So that is what a batch
 * advances the tail by, which learns from all of them one after the other.
 *
 * Evaluations and files want all weights in one place: bpt_placed_gather() brings them there, when
 * the ranks have met.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_PLACED_H
#define BPT_TOOLS_PLACED_H

#include "inner/network/network.h"
#include "outer/placement/relay.h"
#include "storage/loader/loader.h"

typedef struct bpt_job bpt_job;
typedef struct bpt_placed bpt_placed;

/** Parts a job's network; job->network, which was whole, then evaluates and nothing else. Batches
 * are cut. Weights and states are undefined. Collective.
 * @param border behind this layer of the model: BPT_BORDER_POSSIBLE
 * @param host   rank
 * @return BPT_OK, BPT_EUSAGE (ranks with unlike activations, more memory than there is), or as
 * bpt_network_create() and bpt_relay_create(), agreed on */
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

/** Under agwu, on the host: begins to serve, and logs it in job->run; elsewhere nothing. No batch
 * is answered before. @return as bpt_border_log_open() and bpt_tail_server_begin() */
bpt_status bpt_placed_serve(const bpt_job *job);

/** Ends it, when every rank has its answers, and closes the log. @return BPT_OK, BPT_EIO,
 * BPT_ENOSPC */
bpt_status bpt_placed_rest(bpt_placed *p);

/** A step: forward, across the border and back, and backward. Under allreduce it is collective, and
 * the gradients of the head can be read; the tail has its own. Under agwu both have learnt.
 * @param draw of this rank's samples; under allreduce that of rank 0 names all on the host
 * @param rate of the step
 * @param denominator samples that the gradient is the mean of: all ranks', under agwu this one's
 * @param[out] result likewise of the samples of all ranks, everywhere, or of this one's
 * @param[out] wait_ns of this, spent waiting for others
 * @return BPT_OK, BPT_ENUMERIC, BPT_EDATA, BPT_EBACKEND, BPT_ECOMM; under agwu what the host could
 *         not do with this rank's batch, also BPT_EIO, BPT_ENOSPC */
bpt_status bpt_placed_step(bpt_placed *p, const bpt_batch *batch, bpt_draw draw, float rate,
                           float denominator, bpt_batch_result *result, uint64_t *wait_ns);

/** Under allreduce, on the host: updates the tail, once a step; elsewhere nothing. The gradients of
 * the head may be on their way meanwhile. @return BPT_OK, BPT_ENUMERIC */
bpt_status bpt_placed_learn(bpt_placed *p, float rate);

/** Brings the weights of both parts to job->network of all ranks; uses job->flat. Collective.
 * @return BPT_OK, BPT_EBACKEND, BPT_ECOMM */
bpt_status bpt_placed_gather(bpt_job *job);

/** Reads or writes a vector of the optimiser's state as this rank has it, while the tail rests: the
 * tail's part is that of the host, elsewhere zero and not read.
 * @param flat shape [elements of the model]
 * @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_placed_get(bpt_placed *p, bpt_vector which, float *flat);
bpt_status bpt_placed_set(bpt_placed *p, bpt_vector which, const float *flat);

/** Updates made so far of the tail; 0 but on the host. */
uint64_t bpt_placed_tail_updates(const bpt_placed *p);

/** Sets them, and those of the head. */
void bpt_placed_set_updates(bpt_placed *p, uint64_t head, uint64_t tail);

/** @return what has crossed the border */
bpt_relay_stats bpt_placed_stats(const bpt_placed *p);

#endif
