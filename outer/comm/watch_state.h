/** @file outer/comm/watch_state.h
 * Inside of outer/: the watch as the MPI thread keeps it.
 *
 * Threads: the MPI thread, except what is said to be another's. */
#ifndef BPT_OUTER_WATCH_STATE_H
#define BPT_OUTER_WATCH_STATE_H

#include "outer/comm/comm_state.h"
#include "outer/comm/watch.h"

/** Makes the watch; the size of @p comm is known. On this rank alone: the ranks agree on it before
 * the next.
 * @param[out] watch caller owns, bpt__watch_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__watch_create(const bpt_watch_options *options, bpt_comm *comm, bpt__watch **watch);

/** Listens, until bpt__watch_end(). Collective. @return BPT_OK, BPT_ECOMM */
bpt_status bpt__watch_begin(bpt__watch *watch);

/** Looks, if it is time to: answers, asks, tells, and ends the job. NULL is allowed. */
void bpt__watch_tick(bpt__watch *watch);

/** Listens no longer. NULL is allowed. */
void bpt__watch_end(bpt__watch *watch);

/** Releases it, once MPI is finalised: what it sent may be under way until then. NULL is allowed.
 */
void bpt__watch_free(bpt__watch *watch);

/** The next limit that a wait comes to.
 * @param warned_s of the last warning of this wait, 0: there was none
 * @return seconds, INFINITY if there is none */
double bpt__watch_limit(const bpt_watch_options *options, double warned_s);

/** Seconds that count as waited of @p gap_ns between two looks: the rest the process did not run.
 */
double bpt__watch_counted(uint64_t gap_ns);

#endif
