/** @file tools/train/job/rank_threads.h
 * How many threads a rank runs, and what they are worth.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RANK_THREADS_H
#define BPT_TOOLS_RANK_THREADS_H

#include "outer/comm/comm.h"

#include <stdbool.h>

/** @return whether a rank may not use as much as it wants. A core may have several processors: as
 * many threads as these are no mistake, and bpt-tune may have found them to be faster */
bool bpt_rank_threads_lack(unsigned wanted, unsigned cores, unsigned processors);

/** Threads of a rank that wants no number of them. Ranks may be bound to cores of their own, but a
 * quota of processor time is for all of a host together.
 * @param cores that the rank may use, at least 1
 * @param sharing ranks that may use the same ones, at least 1
 * @param quota of bpt_pool_quota_cores()
 * @param n_workers ranks of the host that compute, at least 1
 * @return at least 1 */
unsigned bpt_rank_threads_share(unsigned cores, unsigned sharing, unsigned quota,
                                unsigned n_workers);

/** Chooses the number of threads, and warns where the rank is bound to fewer cores than it wants or
 * could have, or the host has fewer than it wants. Collective over the job.
 * @param wanted 0: the cores that the rank may use, shared with the ranks that may use the same
 * ones
 * @param n_workers ranks from this number on compute next to nothing: they have one thread, and the
 * cores are the others'
 * @param on_device whether a device computes for this rank: it has one thread, unless it wants
 * more, and all cores but one are the others'
 * @param[out] chosen at least 1
 * @param[out] cores  what is chosen where nothing is wanted: those that the rank has for itself
 * @param[out] on_host ranks on this rank's host, at least 1
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_rank_threads_choose(bpt_comm *comm, unsigned wanted, uint32_t n_workers,
                                   bool on_device, unsigned *chosen, unsigned *cores,
                                   unsigned *on_host);

/** Tells the cores that bpt_rank_threads_choose() finds, without a warning. Collective.
 * @param[out] cores at least 1
 * @return as that */
bpt_status bpt_rank_threads_cores(bpt_comm *comm, uint32_t n_workers, bool on_device,
                                  unsigned *cores);

/** Tells, before there is a job, what bpt_rank_threads_choose() will choose where all ranks of the
 * host may use the same cores; where they are bound to cores of their own it chooses more.
 * @param on_host workers of the job on this host, at least 1
 * @return at least 1 */
unsigned bpt_rank_threads_expected(unsigned wanted, unsigned on_host);

/** @return a guess of speed, comparable between machines: threads x clock rate in GHz */
double bpt_rank_threads_speed(unsigned n_threads);

#endif
