/** @file tools/train/momentum_share.h
 * A rank's momentum becomes that of all whenever fresh global weights have come; a run and its
 * replay do it by the same calls.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_MOMENTUM_SHARE_H
#define BPT_TOOLS_MOMENTUM_SHARE_H

#include "inner/network.h"
#include "outer/shared_momentum.h"

/** Where a rank stands when an answer has come. */
typedef struct bpt_share_point {
    uint64_t steps;    /* its own */
    uint64_t progress; /* samples of all ranks, as the answer says */
    double rate;       /* of its next step */
} bpt_share_point;

typedef struct bpt_momentum_share {
    bpt_shared_momentum rule;
    bpt_share_point last; /* at the answer before, or at the start */
} bpt_momentum_share;

/** @param before global weights at the answer before, shape [n]
 * @param now     those of this answer, shape [n]
 * @param scratch shape [n]
 * @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_momentum_share_take(bpt_momentum_share *s, bpt_share_point here,
                                   bpt_network *network, const float *before, const float *now,
                                   float *scratch, size_t n);

#endif
