/** @file tools/train/momentum_of_all.h
 * A rank's momentum becomes that of all whenever fresh global weights have come
 * (outer/shared_momentum.h). A run and its replay do it by the same calls, so that they end in the
 * same bits.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_MOMENTUM_OF_ALL_H
#define BPT_TOOLS_MOMENTUM_OF_ALL_H

#include "inner/network.h"
#include "outer/shared_momentum.h"

typedef struct bpt_momentum_of_all {
    bpt_shared_momentum rule;
    uint64_t steps;    /* of the rank, at the answer before or at the start */
    uint64_t progress; /* samples of all ranks, then */
    double rate;       /* mean of the steps that were pushed last; 0: none were */
} bpt_momentum_of_all;

/** The rank pushes.
 * @param rates sum of the learning rates of its steps since the last push
 * @param steps how many these are; of none the rate is that of the push before */
void bpt_momentum_of_all_push(bpt_momentum_of_all *m, double rates, uint64_t steps);

/** An answer has come: sets the momentum of the network, unless there is nothing to be learnt.
 * @param steps,progress of the rank, and of all as the answer says; at least those before
 * @param network of an optimiser whose first state is the momentum, where there is a gain
 * @param before  global weights at the answer before or at the start, shape [n]
 * @param now     those of this answer, shape [n]
 * @param scratch shape [n], elements of the network
 * @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_momentum_of_all_take(bpt_momentum_of_all *m, uint64_t steps, uint64_t progress,
                                    bpt_network *network, const float *before, const float *now,
                                    float *scratch, size_t n);

#endif
