/** @file outer/data/partition.h
 * Which rank trains on which samples: a table of how many samples each rank holds, one row a round.
 *
 * The samples of a split are dealt in one order (bpt_order_deal()). Each of the first A rounds
 * gives out the next A-th of that order, in consecutive ranges in rank order; what was given out
 * before stays where it is. Later rounds, as many as there need be, move samples from ranks that
 * hold too many to ranks that hold too few, and nothing else. So a table of counts says it all:
 * every rank that knows it can name its samples.
 *
 * Threads: one thread at a time. */
#ifndef BPT_OUTER_PARTITION_H
#define BPT_OUTER_PARTITION_H

#include "base/status.h"
#include "outer/data/order.h"

#include <stddef.h>
#include <stdint.h>

enum { BPT_PARTITION_ROUNDS_MAX = 64 }; /* of A */

typedef struct bpt_partition bpt_partition;

/** Tells whether a split can be given out, before anything is made for it.
 * @param n_samples in the split, 1..2^32-1
 * @param n_ranks   at least 1
 * @param n_rounds  A, 1..BPT_PARTITION_ROUNDS_MAX; 1 gives everything at once
 * @return BPT_OK, BPT_EUSAGE (out of range, or fewer samples a round than ranks) */
bpt_status bpt_partition_check(uint64_t n_samples, uint32_t n_ranks, uint32_t n_rounds);

/** Makes a table without any round.
 * @param n_samples,n_ranks,n_rounds as above
 * @param[out] p caller owns, bpt_partition_free()
 * @return BPT_OK, BPT_EUSAGE (as above), BPT_ENOMEM */
bpt_status bpt_partition_create(bpt_order order, uint64_t n_samples, uint32_t n_ranks,
                                uint32_t n_rounds, bpt_partition **p);
void bpt_partition_free(bpt_partition *p);

/** @return bytes that the table takes, but for a header and its rows */
size_t bpt_partition_bytes(uint64_t n_samples);

/** Adds the next round.
 * @param held samples of each rank from then on, shape [n_ranks], the sum
 *             bpt_partition_given() of all rounds with this one; in the first A rounds none less
 *             than before
 * @return BPT_OK, BPT_EDATA (wrong sum, or less than before), BPT_ENOMEM (@p p is unusable) */
bpt_status bpt_partition_allot(bpt_partition *p, const uint32_t *held);

/** @return samples that @p rounds rounds of a split in @p n_rounds give out in all: the rounds
 * differ by at most one; all of them once there are n_rounds */
uint64_t bpt_partition_given(uint64_t n_samples, uint32_t n_rounds, uint32_t rounds);

/** Tells whether a round may come next: what it gives out in all, and that the first rounds take
 * from nobody.
 * @param round   its number, from 0
 * @param before  samples of each rank until then, shape [n_ranks]; NULL for round 0
 * @param held    from then on, shape [n_ranks]
 * @return BPT_OK, BPT_EDATA */
bpt_status bpt_partition_check_round(uint64_t n_samples, uint32_t n_rounds, uint32_t round,
                                     const uint32_t *before, const uint32_t *held,
                                     uint32_t n_ranks);

/** @return rounds so far */
uint32_t bpt_partition_rounds(const bpt_partition *p);

/** @return number of ranks that share the split */
uint32_t bpt_partition_n_ranks(const bpt_partition *p);

/** @return samples in the split */
uint64_t bpt_partition_n_samples(const bpt_partition *p);

/** @return how many samples @p rank holds after the first @p rounds rounds, of which there are as
 * many; 0 for 0 rounds */
uint64_t bpt_partition_held(const bpt_partition *p, uint32_t rank, uint32_t rounds);

/** @return of how many equal ranks the mean of what they learn is as noisy as that of these after
 * @p rounds rounds: 1 / sum of squares of what each holds of all that is given out. The number of
 * ranks where all hold as much, near 1 where one has nearly everything; before the first round the
 * number of ranks */
double bpt_partition_equal_ranks(const bpt_partition *p, uint32_t rounds);

/** @return the part of all that is given out which @p rank holds after @p rounds rounds; before the
 * first round that of equal ranks */
double bpt_partition_part(const bpt_partition *p, uint32_t rank, uint32_t rounds);

/** Cuts @p total steps among the ranks in proportion to what each holds by now, after at least one
 * round.
 * @param total at most 2^32 - 1
 * @return whole steps of @p rank, less than one from its exact part; of all ranks, @p total */
uint64_t bpt_partition_steps(const bpt_partition *p, uint32_t rank, uint64_t total);

/** Names the samples of a rank after @p rounds rounds; those that it got first come first. After
 * all rounds so far it takes no memory.
 * @param[out] samples indices in the split, shape [bpt_partition_held()]
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_partition_samples(const bpt_partition *p, uint32_t rank, uint32_t rounds,
                                 uint32_t *samples);

#endif
