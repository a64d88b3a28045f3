/** @file outer/comm/comm_thread.h
 * Inside of outer/: jobs that the MPI thread polls until they are done.
 *
 * A job is polled in turn with all others, in the order of submission, until it says that it is
 * done or fails. Its poll function is the only place where MPI may be called. */
#ifndef BPT_OUTER_COMM_THREAD_H
#define BPT_OUTER_COMM_THREAD_H

#include "base/status.h"
#include "outer/comm/comm.h"
#include "outer/comm/transfers.h"

#include <mpi.h>
#include <stdbool.h>

typedef struct bpt__job bpt__job;

struct bpt__job {
    /** Does what can be done without waiting; runs on the MPI thread.
     * @param[out] moved set to true if anything happened: the thread then polls again soon
     * @param[out] done  set to true if this was the last call
     * @return BPT_OK, or an error, after which the job is not called again */
    bpt_status (*poll)(bpt__job *job, bool *moved, bool *done);

    bpt__job *next;  /* of the list it is in; MPI thread, or guarded by the mutex while submitted */
    bool finished;   /* guarded by the mutex */
    bpt_error error; /* written before `finished` */
};

/** A collective call, as it is asked of the MPI thread. */
typedef struct bpt__collective {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_comm *comm;
    enum { BPT__ALLGATHER, BPT__BROADCAST, BPT__BARRIER } kind;
    const void *mine;
    void *data;
    int bytes, root;
    bool posted;
    MPI_Request request;
} bpt__collective;

/** Takes part in a bpt_comm_broadcast() of another rank that may not come for hours: until then
 * this rank is idle, neither late nor waiting for anybody, as far as the watch is concerned.
 * @param o,data shape [bytes], bytes below 2^31; on an error of @p tend they stay in use
 * @param tend called now and then meanwhile; its error ends this
 * @return BPT_OK, BPT_ECOMM, or what @p tend returned */
bpt_status bpt__comm_hear(bpt_comm *comm, bpt__collective *o, uint32_t root, void *data,
                          size_t bytes, bpt_status (*tend)(void *arg), void *arg);

/** Hands a job to the MPI thread. @param job borrowed until bpt__comm_join() */
void bpt__comm_submit(bpt_comm *comm, bpt__job *job);

/** Waits until a submitted job is done. @return its status; its error is then this thread's last */
bpt_status bpt__comm_join(bpt_comm *comm, bpt__job *job);

/** The same where this rank has nothing else to do: see bpt__comm_hear(). */
bpt_status bpt__comm_join_idly(bpt_comm *comm, bpt__job *job, bpt_status (*tend)(void *arg),
                               void *arg);

/** Bytes to copy. */
typedef struct bpt__copy {
    void *to;
    const void *from;
    size_t bytes;
} bpt__copy;

/** Reads or writes what belongs to the MPI thread: that one copies all of it between two polls.
 * @param copies shape [n] */
void bpt__comm_copy(bpt_comm *comm, const bpt__copy *copies, size_t n);

/** Ends the job, with this status of the process; MPI thread. Where MPI's abort hangs, as ranks
 * that are in trouble may, the process ends by itself after some seconds, and mpirun ends the
 * others. */
_Noreturn void bpt__end_job(int exit_status);

/** Makes the MPI thread poll at once: there is something new to do. */
void bpt__comm_wake(bpt_comm *comm);

/** Between these calls a thread waits for what a job does, so that polls come sooner.
 * @param what it waits at: "an exchange of weights", borrowed for ever; NULL: at what it is doing
 */
void bpt__comm_wait_begin(bpt_comm *comm, const char *what);
void bpt__comm_wait_end(bpt_comm *comm);

/** As bpt__comm_wait_begin(), and ended by bpt__comm_wait_end(), where what holds the thread up is
 * this rank's own and may hang: another thread of it that waits for a disk. Unlike
 * bpt_comm_operation_begin() it may lie within an operation.
 * @param what "the scratch disk"; borrowed for ever */
void bpt__comm_own_begin(bpt_comm *comm, const char *what);

/** As bpt__comm_wait_begin(), and ended by bpt__comm_wait_end(), where this rank has nothing to do
 * but to serve others. */
void bpt__comm_idle_begin(bpt_comm *comm);

/** Marks within an idle time, after an operation, that this rank idles again. */
void bpt__comm_idle_again(bpt_comm *comm);

/** Between these calls a thread of this rank, one at a time, that helps the one which marks is at
 * something that may hang: where it has been for longer than that one has not got on, that is what
 * holds the rank up, and others with it.
 * @param what "a disk"; borrowed for ever */
void bpt__comm_help_begin(bpt_comm *comm, const char *what);
void bpt__comm_help_end(bpt_comm *comm);

/** Between these calls a thread has nothing to do but what a job brings, while this rank computes:
 * polls come somewhat sooner, and nobody is told that it waits. */
void bpt__comm_expect_begin(bpt_comm *comm);
void bpt__comm_expect_end(bpt_comm *comm);

/** Marks that this rank has got on, without any wait. */
void bpt__comm_got_on(bpt_comm *comm);

/** Between these calls something that this rank has sent is not answered, whatever it does
 * meanwhile. The end is the MPI thread's to mark.
 * @param what it is: "an exchange of weights"; borrowed for ever */
void bpt__comm_push_begin(bpt_comm *comm, const char *what);
void bpt__comm_push_end(bpt_comm *comm);

/** Marks that a part of it has gone, or of its answer has come; on the MPI thread. */
void bpt__comm_push_moves(bpt_comm *comm);

/** Marks that a part has moved of what the training thread may wait for without a push: such a wait
 * does not hang. On the MPI thread. */
void bpt__comm_wait_moves(bpt_comm *comm);

/** @return the communicator for messages of the exchange; collectives use another */
MPI_Comm bpt__comm_messages(const bpt_comm *comm);

/** Makes transfers of such messages: bpt__transfers_create() for this communicator and whoever
 * watches it. */
bpt_status bpt__comm_transfers(const bpt_comm *comm, const size_t *room, uint32_t n_groups,
                               bpt__transfers **t);

/** Translates what an MPI call returned. @param what "send to rank 3"
 * @return BPT_OK or BPT_ECOMM */
bpt_status bpt__mpi_check(int code, const char *what);

#endif
