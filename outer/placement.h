/** @file outer/placement.h
 * How large a shard each rank hosts: a pure rule.
 *
 * A host spends on every push of every rank what its shard is large, and a rank pushes as often as
 * it is fast. So shards go by speed: a slow rank then spends the same part of its time on the
 * others' pushes as a fast one, and less goes over the wires, for a rank's part of its own shard
 * does not.
 *
 * Links bound that. Let rank r make the part f of all pushes, whose vectors come to V bytes a
 * second in all, and host the part p. Its link then carries, each way, V (f (1 - p) + p (1 - f))
 * bytes a second: pushes to the others' shards and answers to theirs at its own. Where that would
 * take more than half of what the link can, the rank gets less, and ranks with faster links get
 * more; where no parts keep within that, all links are as busy as they have to be. With f = 1/2 a
 * link carries V/2 whatever the parts, so two like ranks always have halves.
 *
 * Hosts that push nothing, servers of their own, are placed by the same rule with f = 0: their
 * speeds are those of merging, and a link carries V p bytes a second each way.
 *
 * Threads: any. */
#ifndef BPT_OUTER_PLACEMENT_H
#define BPT_OUTER_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/** What is known of the ranks. */
typedef struct bpt_place_inputs {
    uint32_t n_ranks;
    const double *speed;       /* of each rank, in any unit, shape [n_ranks], > 0 */
    const double *bytes_per_s; /* of each rank's link, each way, shape [n_ranks]; 0: not known, as
                                  if without end. NULL: none is known */
    double pushed_bytes_per_s; /* V; read where links are known */
    bool apart;                /* none of these ranks pushes: all that is pushed is others' */
} bpt_place_inputs;

/** @return the largest part that a rank may get: twice an even one, so that memory can be planned
 * before speeds are known */
double bpt_place_largest(uint32_t n_ranks);

/** Gives every rank its part: by speed, none more than bpt_place_largest() nor than its link bears;
 * where the slowest has two thirds of the fastest one's speed, all count as alike, since
 * measurements differ from run to run by as much: even parts, but for what links bound.
 * @param[out] part of the whole, shape [n_ranks]; their sum is 1; may not be an input */
void bpt_place_shards(const bpt_place_inputs *in, double *part);

#endif
