/** @file outer/placement.h
 * How large a shard each rank hosts: a pure rule.
 *
 * A host spends on every push of every rank what its shard is large, and a rank pushes as often as
 * it is fast. So shards go by speed: a slow rank then spends the same part of its time on the
 * others' pushes as a fast one, and less goes over the wires, for a rank's part of its own shard
 * does not.
 *
 * Threads: any. */
#ifndef BPT_OUTER_PLACEMENT_H
#define BPT_OUTER_PLACEMENT_H

#include <stdint.h>

/** @return the largest part that a rank may get: twice an even one, so that memory can be planned
 * before speeds are known */
double bpt_place_largest(uint32_t n_ranks);

/** Gives every rank its part: by speed, none more than bpt_place_largest(); even where the slowest
 * has two thirds of the fastest one's speed, since measurements differ from run to run by as much.
 * @param speed of each rank, in any unit, shape [n_ranks], > 0
 * @param[out] part of the whole, shape [n_ranks]; their sum is 1; may be @p speed */
void bpt_place_shards(const double *speed, uint32_t n_ranks, double *part);

#endif
