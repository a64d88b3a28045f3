/** @file outer/placement/placement.h
 * How large a shard each rank hosts: a pure rule.
 *
 * What an exchange costs are messages: what stays on a rank takes none. Let rank r make the part f
 * of all pushes, whose vectors come to V bytes a second in all, and host the part p. Its messages
 * then carry, each way, V (f (1 - p) + p (1 - f)) = V (f + p (1 - 2 f)) bytes a second: pushes to
 * the others' shards and answers to theirs at its own. A rank pushes as often as it is fast, so
 * that as a part of what it computes this is V (1 + p (1 - 2 f) / f). Parts in proportion to
 * f / (1 - 2 f) therefore cost all ranks the same part of their time, and a rank that makes half of
 * all pushes pays nothing for what it hosts: it hosts all, and all messages are as few as they can
 * be. Where ranks are as fast as 4:2:1:1 the first hosts all, and all links together carry V each
 * way; by speed it would be 1.3 V, with even parts 1.5 V.
 *
 * A rule that works in rounds has every rank push as often as the others, all at once: there f is
 * 1/n and a host of all would be in everybody's way. Shards go by speed there, as they do where
 * speeds are guesses, and none is larger than memory is planned for on every rank.
 *
 * Links bound parts. Where the messages would take more than half of what a rank's link can, the
 * rank gets less, and ranks with faster links get more; where no parts keep within that, all links
 * are as busy as they have to be. With f = 1/2 a link carries V/2 whatever the parts, so two like
 * ranks always have halves. Memory bounds them too: a host has room for what every other rank
 * pushes to it.
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
    const double *largest;     /* part that each rank has memory for, shape [n_ranks], at least
                                  bpt_place_planned() but for rounding. NULL: for all of it */
    bool apart;                /* none of these ranks pushes: all that is pushed is others' */
    bool in_rounds;            /* all push equally often, and at once */
    bool guessed;              /* speeds are no measurements */
} bpt_place_inputs;

/** @return the part that memory is planned for on every rank, before speeds are known: twice an
 * even one. With no more than that on any rank there is room for the whole */
double bpt_place_planned(uint32_t n_ranks);

/** @param planned part of the whole that the rank has memory for in any case, up to 1
 * @param left    bytes of memory that all its plans leave, >= 0
 * @param whole   bytes that hosting the whole takes, > 0
 * @return the part that it is to host at most: what half of what is left has room for besides */
double bpt_place_room(double planned, double left, double whole);

/** Gives every rank its part: as messages cost least, or by speed (in rounds, apart, or guessed);
 * none more than its memory or its link bears. Where the slowest has two thirds of the fastest
 * one's speed, all count as alike, since measurements differ from run to run by as much: even
 * parts, but for what bounds them. As messages cost least a rank hosts nothing where it would be
 * less than a quarter of an even part, and the others have room.
 * @param[out] part of the whole, shape [n_ranks]; their sum is 1; may not be an input */
void bpt_place_shards(const bpt_place_inputs *in, double *part);

#endif
