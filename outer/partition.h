/** @file outer/partition.h
 * Which rank trains on which samples: a table of allotments, one row a round.
 *
 * The samples of a split are put in one order by the seed. Round a of A gives out the a-th A-th of
 * that order, cut in consecutive ranges in rank order. So a table of counts says it all, every rank
 * that knows it can name its samples, and what was given out never moves.
 *
 * Threads: one thread at a time. */
#ifndef BPT_OUTER_PARTITION_H
#define BPT_OUTER_PARTITION_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { BPT_PARTITION_ROUNDS_MAX = 64 };

typedef struct bpt_partition bpt_partition;

/** Tells whether a split can be given out, before anything is made for it.
 * @param n_samples in the split, 1..2^32-1
 * @param n_ranks   at least 1
 * @param n_rounds  A, 1..BPT_PARTITION_ROUNDS_MAX; 1 gives everything at once
 * @return BPT_OK, BPT_EUSAGE (out of range, or fewer samples a round than ranks) */
bpt_status bpt_partition_check(uint64_t n_samples, uint32_t n_ranks, uint32_t n_rounds);

/** Makes a table without any round given out.
 * @param n_samples,n_ranks,n_rounds as above
 * @param[out] p caller owns, bpt_partition_free()
 * @return BPT_OK, BPT_EUSAGE (as above), BPT_ENOMEM */
bpt_status bpt_partition_create(uint64_t seed, uint64_t n_samples, uint32_t n_ranks,
                                uint32_t n_rounds, bpt_partition **p);
void bpt_partition_free(bpt_partition *p);

/** @return bytes that the table takes, but for a header and the counts of the rounds */
size_t bpt_partition_bytes(uint64_t n_samples);

/** Gives out the next round.
 * @param count shape [n_ranks], sums to bpt_partition_round_size() of that round
 * @return BPT_OK, BPT_EDATA (wrong sum), BPT_EFULL (all rounds are given out) */
bpt_status bpt_partition_allot(bpt_partition *p, const uint32_t *count);

/** @return samples in round @p round (from 0) of @p n_rounds: they differ by at most one */
uint64_t bpt_partition_round_size(uint64_t n_samples, uint32_t n_rounds, uint32_t round);

/** @return rounds given out so far */
uint32_t bpt_partition_rounds(const bpt_partition *p);

/** @return number of ranks that share the split */
uint32_t bpt_partition_n_ranks(const bpt_partition *p);

/** @return samples in the split */
uint64_t bpt_partition_n_samples(const bpt_partition *p);

/** @return how many samples @p rank holds from its first @p rounds rounds */
uint64_t bpt_partition_held(const bpt_partition *p, uint32_t rank, uint32_t rounds);

/** Cuts @p total steps among the ranks in proportion to what each holds from the rounds so far,
 * which are at least one.
 * @param total at most 2^32 - 1
 * @return whole steps of @p rank, less than one from its exact part; of all ranks, @p total */
uint64_t bpt_partition_steps(const bpt_partition *p, uint32_t rank, uint64_t total);

/** @param[out] n number of samples that @p rank got in round @p round (given out already)
 * @return their indices in the split, shape [*n]; borrowed, they never change */
const uint32_t *bpt_partition_range(const bpt_partition *p, uint32_t round, uint32_t rank,
                                    uint32_t *n);

#endif
