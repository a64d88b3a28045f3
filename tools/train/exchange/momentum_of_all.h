/** @file tools/train/exchange/momentum_of_all.h
 * A rank's momentum becomes that of all whenever fresh global weights have come
 * (outer/rules/shared_momentum.h). A run and its replay do it by the same calls, so that they end
 * in the same bits.
 *
 * Where the gain follows what ranks are worth, and the others bring nothing for long, as while one
 * evaluates or stands still, the way of the weights is this rank's own: followed with the gain of
 * all it would lead away, to chance in the end, and the rank keeps its own momentum. Ranks that
 * wait for each other are never alone, however little the others bring: there nothing is counted,
 * which a resumed job would count anew.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_MOMENTUM_OF_ALL_H
#define BPT_TOOLS_MOMENTUM_OF_ALL_H

#include "inner/network/network.h"
#include "outer/rules/shared_momentum.h"

#include <stdbool.h>
#include <stdint.h>

/** Where a rank stands when an answer has come. */
typedef struct bpt_answer_point {
    uint64_t steps;     /* its own */
    uint64_t progress;  /* samples of all ranks, as the answer says */
    double rate;        /* of its next step */
    double equal_ranks; /* bpt_partition_equal_ranks() of the rounds that it has heard of */
    double part;        /* bpt_partition_part() of this rank, likewise */
} bpt_answer_point;

typedef struct bpt_momentum_of_all {
    bpt_shared_momentum rule;
    bool synchronous;      /* the ranks wait for each other at every answer */
    bpt_answer_point last; /* at the answer before, or at the start */
    double gap;            /* answers in a row by which the others had brought nothing */
    double usual_gap;      /* a mean of such rows that have ended, the latest weighing most */
    bool alone;            /* the others stand still */
} bpt_momentum_of_all;

/** An answer has come: sets the momentum of the network, unless there is nothing to be learnt.
 * @param here    not before where the rank stood at the last answer
 * @param network of an optimiser whose first state is the momentum, where there is a gain
 * @param before  global weights at the answer before or at the start, shape [n]
 * @param now     those of this answer, shape [n]
 * @param scratch shape [n], elements of the network that learn
 * @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_momentum_of_all_take(bpt_momentum_of_all *m, bpt_answer_point here,
                                    bpt_network *network, const float *before, const float *now,
                                    float *scratch, size_t n);

#endif
