/** @file outer/exchange/shard.h
 * How the flat vector of weights is cut in shards, and which rank hosts which.
 *
 * Shards are contiguous and in order. All borders but the last are multiples of
 * BPT_SHARD_ALIGNMENT elements, so that every shard starts on a cache line.
 *
 * Threads: a table is constant once made. */
#ifndef BPT_OUTER_SHARD_H
#define BPT_OUTER_SHARD_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { BPT_SHARD_ALIGNMENT = 16 }; /* elements: 64 bytes of floats */

/** One shard: elements [begin, end). Empty where the host is to have none of the vector. */
typedef struct bpt_shard {
    size_t begin, end;
    uint32_t host; /* rank */
} bpt_shard;

typedef struct bpt_shard_table bpt_shard_table;

/** Cuts @p n_elements in one shard a host, as near to the parts as the alignment allows.
 * @param n_shards at least 1
 * @param first_host rank that hosts shard 0; the next one hosts shard 1, and so on
 * @param part of the whole that each shard is, shape [n_shards], >= 0, sum 1; NULL: all alike
 * @param[out] table caller owns, bpt_shard_table_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_shard_table_create(size_t n_elements, uint32_t n_shards, uint32_t first_host,
                                  const double *part, bpt_shard_table **table);

/** The same by the shards' first elements.
 * @param begin shape [n_shards]
 * @return BPT_OK, BPT_EDATA (not ascending from 0 to n_elements, or not aligned), BPT_ENOMEM */
bpt_status bpt_shard_table_at(size_t n_elements, uint32_t n_shards, uint32_t first_host,
                              const uint64_t *begin, bpt_shard_table **table);
void bpt_shard_table_free(bpt_shard_table *table);

/** @return number of shards, at least 1 */
uint32_t bpt_shard_count(const bpt_shard_table *table);

/** @return shard @p i; borrowed */
const bpt_shard *bpt_shard_at(const bpt_shard_table *table, uint32_t i);

/** @param versions of each shard, shape [n_shards]: updates that it has taken
 * @return by how many updates the newest shard is ahead of the oldest, of those that are not empty
 */
uint64_t bpt_shard_spread(const bpt_shard_table *table, const uint64_t *versions);

/** Writes shard @p i as a line for people, "shard 1 of 4 on rank 1: elements 160..319 (640 bytes)".
 * @param text shape [size]; cut if too short */
void bpt_shard_describe(const bpt_shard_table *table, uint32_t i, char *text, size_t size);

#endif
