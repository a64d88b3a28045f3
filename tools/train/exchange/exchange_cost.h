/** @file tools/train/exchange/exchange_cost.h
 * What exchanging weights costs a rank, against what its steps cost: both in processor time, so
 * that neither a host with a part of a core nor one that is stopped for a while changes the
 * proportion.
 *
 * A span begins where an answer has been taken in, and ends where the next one has:
 *
 *     begin .. steps, with a push: copies .. steps_over .. taking the answer in: copies .. read
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_EXCHANGE_COST_H
#define BPT_TOOLS_EXCHANGE_COST_H

#include "outer/comm/comm.h"

typedef struct bpt_exchange_cost {
    bpt_comm *comm;     /* borrowed */
    unsigned n_threads; /* that train, and wait while one copies */
    /* processor seconds until the span began: of the process, of its MPI thread */
    double process_before_s, comm_before_s;
    double copy_before_s; /* of this thread, until the copies that are under way began */
    double copies_s;      /* of this thread in the span */
    double judge_process_before_s, judge_comm_before_s; /* as above, until judging began */
    double judged_s; /* of the threads that train, judging their weights in the span */
    double steps_s;  /* of the threads that train in the span */
} bpt_exchange_cost;

/** Begins a span. @param cost comm and n_threads are set */
void bpt_exchange_cost_begin(bpt_exchange_cost *cost);

/** Between these two the calling thread copies weights. */
void bpt_exchange_cost_copy(bpt_exchange_cost *cost);
void bpt_exchange_cost_copied(bpt_exchange_cost *cost);

/** Between these two the threads that train judge their weights. */
void bpt_exchange_cost_judge(bpt_exchange_cost *cost);
void bpt_exchange_cost_judged(bpt_exchange_cost *cost);

/** The steps of the span are over. What is done until it is read is no step, and counts where it is
 * copying. */
void bpt_exchange_cost_steps_over(bpt_exchange_cost *cost);

/** @return processor seconds that the exchange took, as worker and as host */
double bpt_exchange_cost_read(const bpt_exchange_cost *cost);

#endif
