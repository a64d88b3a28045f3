/** @file outer/comm/watch.h
 * Notices that a rank waits for too long, finds out for whom, and says so.
 *
 * Four times a second the MPI thread looks what its rank is at. Where that is a wait that does not
 * end, or a push that is not answered while the rank trains on, it asks the MPI threads of all
 * other ranks what these are at: one that is frozen does not answer, one that works or hangs
 * elsewhere says with what. One rank speaks for all that wait. Nobody is asked while nothing
 * stalls, and the thread that trains only counts its changes.
 *
 * Time in which this process itself did not run (it was stopped, or the whole machine was) is not
 * waiting. While MPI starts nobody can be asked: then ranks 0 and 1 speak, and name nobody.
 *
 * Threads: the marks are set by one thread, that which makes the collective calls; what a thread
 * inside of outer/ that helps it is at has marks of its own (bpt__comm_help_begin()). */
#ifndef BPT_OUTER_WATCH_H
#define BPT_OUTER_WATCH_H

#include "outer/comm/comm.h"

#include <stdbool.h>

/** A stall, to be told to people. */
typedef struct bpt_stall {
    bool ends; /* the job ends for it, once it is told */
    /** "rank 0 on a has waited 60 s at an exchange of weights for rank 2 on c (does not answer)" */
    const char *text;
    const char *hint;
} bpt_stall;

typedef struct bpt_watch_options {
    double warning_s; /* told of waits that last as long, and again at each doubling; 0: never */
    double timeout_s; /* a wait that lasts as long ends the job; 0: never */
    int exit_status;  /* of a job that is ended, 1..255 */
    /** Tells it. Runs on the MPI thread, or on the caller of bpt_comm_start_watched(); takes no
     * lock that a thread may hold while it writes to a file. */
    void (*tell)(const bpt_stall *stall);
} bpt_watch_options;

/** As bpt_comm_start(), with a watch over this rank from then until bpt_comm_stop().
 * @param options copied */
bpt_status bpt_comm_start_watched(const bpt_watch_options *options, bpt_comm **comm);

/** Marks what this rank is at from now on, for those who wait for it, and for its own waits in
 * collective calls.
 * @param what "an evaluation", "training"; borrowed for ever, cut after 47 bytes */
void bpt_comm_doing(bpt_comm *comm, const char *what);

/** Between these calls this rank waits for something of its own that may hang: a file system, the
 * loader. Does not nest; collective calls may lie in between.
 * @param what "data from the loader"; as above */
void bpt_comm_operation_begin(bpt_comm *comm, const char *what);
void bpt_comm_operation_end(bpt_comm *comm);

#endif
