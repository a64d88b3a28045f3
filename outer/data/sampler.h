/** @file outer/data/sampler.h
 * The order in which a rank sees samples: an endless stream of indices.
 *
 * A local stream makes passes over what the rank holds, each in an order (bpt_order_pass()) given
 * by (seed, rank, pass); samples that arrive by a new allotment join at the next pass. The global
 * stream is one order for all ranks, given by (seed, epoch): every rank takes its part of each
 * global batch, so that the samples of step t are the same for any number of ranks.
 *
 * Threads: one thread at a time. */
#ifndef BPT_OUTER_SAMPLER_H
#define BPT_OUTER_SAMPLER_H

#include "base/status.h"
#include "outer/data/partition.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bpt_sampler bpt_sampler;

/** Where a stream stands: a plain value that a checkpoint stores. */
typedef struct bpt_sampler_state {
    uint64_t pass;        /* local: passes completed; global: 0 */
    uint64_t position;    /* local: samples taken of the current pass; global: steps * batch */
    uint32_t rounds;      /* local: rounds of the partition that the current pass covers, 0 if it
                             has not begun; global: 0 */
    uint32_t covered;     /* local: rounds that the last completed pass covered, 0 before one;
                             global: 0 */
    uint32_t next_rounds; /* local: rounds that the next pass will cover; 0: those known when it
                             begins; global: 0 */
} bpt_sampler_state;

/** The local stream of one rank.
 * @param partition borrowed while the sampler lives; rounds may be allotted between calls
 * @param[out] s caller owns, bpt_sampler_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_sampler_create_local(bpt_order order, uint32_t rank, const bpt_partition *partition,
                                    bpt_sampler **s);

/** The global stream. Step t covers positions t*batch .. (t+1)*batch-1; position p is sample
 * p % n_samples of the order of epoch p / n_samples.
 * @param n_samples 1..2^32-1
 * @param batch     samples of a step over all ranks
 * @param offset    first position of this rank's part within the batch
 * @return BPT_OK, BPT_EUSAGE (out of range), BPT_ENOMEM */
bpt_status bpt_sampler_create_global(bpt_order order, uint64_t n_samples, uint64_t batch,
                                     uint64_t offset, bpt_sampler **s);

void bpt_sampler_free(bpt_sampler *s);

/** @return bytes that a stream over @p n_samples takes, but for a header */
size_t bpt_sampler_bytes(bpt_order order, uint64_t n_samples);

/** Lets passes of a local stream that begin from now on cover at most so many rounds, since the
 * samples of later ones are not at hand yet. Without it they cover all that are known.
 * @param rounds in each of which the rank holds samples; at least next_rounds of the state */
void bpt_sampler_admit(bpt_sampler *s, uint32_t rounds);

/** Takes the next @p n indices; a global stream then goes on to the next step. Allocates nothing,
 * unless a pass is to cover fewer rounds than are known (next_rounds, admit); where a pass or epoch
 * begins its order is drawn, which takes time linear in its size.
 * @param n       global: offset + n is at most the batch
 * @param indices shape [n]
 * @param passes  shape [n]: the pass (or, of a global stream, the epoch) that each is of, modulo
 *                2^32; NULL if not wanted
 * @return BPT_OK, BPT_EUSAGE (this rank holds no samples; or the part leaves the batch), BPT_ENOMEM
 */
bpt_status bpt_sampler_next(bpt_sampler *s, size_t n, uint32_t *indices, uint32_t *passes);

/** @return where the stream stands */
bpt_sampler_state bpt_sampler_state_get(const bpt_sampler *s);

/** Continues from @p state; a local stream's partition holds the rounds it speaks of.
 * @return BPT_OK, BPT_EDATA (no state of such a stream), BPT_ENOMEM */
bpt_status bpt_sampler_state_set(bpt_sampler *s, const bpt_sampler_state *state);

#endif
