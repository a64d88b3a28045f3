/** @file tools/rank_threads.h
 * How many threads a rank runs, and what they are worth.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RANK_THREADS_H
#define BPT_TOOLS_RANK_THREADS_H

#include "outer/comm.h"

/** Chooses the number of threads and warns where the rank is bound to fewer cores than it wants.
 * Collective over the job.
 * @param wanted 0: all cores that the rank may use, shared with the other ranks of its host
 * @return at least 1 */
unsigned bpt_rank_threads_choose(const bpt_comm *comm, unsigned wanted);

/** @return a guess of speed, comparable between machines: threads x clock rate in GHz */
double bpt_rank_threads_speed(unsigned n_threads);

#endif
