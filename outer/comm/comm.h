/** @file outer/comm/comm.h
 * The ranks of a job, and the one thread per rank that calls MPI.
 *
 * That thread initialises MPI, serves everything that moves between ranks, and finalises it. Every
 * other thread asks it and sleeps, so that MPI_THREAD_FUNNELED suffices. It does not spin: where
 * nothing has moved it sleeps on a semaphore between polls, the longer the longer nothing does
 * (outer/comm/nap.h).
 *
 * Caveats: MPI can be started once in a process. Without mpirun a process is a world of one rank.
 * An MPI error is BPT_ECOMM on the rank that sees it; what to do then is bpt_comm_abort(), since
 * Open MPI cannot go on without a rank.
 * Threads: any thread may ask; the collective calls (allgather, table, any, broadcast, barrier,
 * agree) are made by one thread at a time and in the same order on all ranks. All signals but those
 * of a fault of the thread itself (bpt_thread_start()) are blocked in the MPI thread and in those
 * that MPI starts. */
#ifndef BPT_OUTER_COMM_H
#define BPT_OUTER_COMM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_comm bpt_comm;

/** Starts MPI and its thread; collective over the job. outer/comm/watch.h has one that cannot hang
 * unseen. Sets variables of the environment that MPI reads, unless they are set: to be called while
 * the process has one thread.
 * @param[out] comm caller owns, bpt_comm_stop()
 * @return BPT_OK, BPT_EUSAGE (MPI was started before), BPT_ENOMEM, BPT_ECOMM */
bpt_status bpt_comm_start(bpt_comm **comm);

/** Finalises MPI and ends its thread; collective over the job. Nothing may be under way. NULL is
 * allowed. */
void bpt_comm_stop(bpt_comm *comm);

/** @return this rank, in [0, bpt_comm_size()) */
uint32_t bpt_comm_rank(const bpt_comm *comm);

/** @return the number of ranks, at least 1 */
uint32_t bpt_comm_size(const bpt_comm *comm);

/** @param rank in [0, bpt_comm_size())
 * @return the name of the host that runs @p rank; borrowed */
const char *bpt_comm_host(const bpt_comm *comm, uint32_t rank);

/** @return whether two ranks run on one machine: by what MPI reaches through memory, since machines
 * may share a name. @param a,b in [0, bpt_comm_size()) */
bool bpt_comm_together(const bpt_comm *comm, uint32_t a, uint32_t b);

/** @return the MPI library, "Open MPI v4.1.4"; borrowed */
const char *bpt_comm_library(const bpt_comm *comm);

/** @return what MPI allows threads on this rank: "funneled", "serialized" or "multiple" */
const char *bpt_comm_thread_level(const bpt_comm *comm);

/** Gives every rank what each has. Blocks the caller only.
 * @param mine  shape [bytes]
 * @param bytes the same on all ranks, below 2^31; may be 0
 * @param[out] all shape [n_ranks][bytes], in rank order; may not overlap @p mine
 * @return BPT_OK, BPT_EUSAGE (too large), BPT_ECOMM */
bpt_status bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all);

/** The same into memory of its own, which all ranks have, or none goes on.
 * @param what names it in an error of memory
 * @param[out] all shape [n_ranks][bytes]; caller owns, bpt_free(); set on success only
 * @return as bpt_comm_allgather(); BPT_ENOMEM, BPT_EPEER */
bpt_status bpt_comm_table(bpt_comm *comm, const char *what, const void *mine, size_t bytes,
                          void **all);

/** @param[out] any whether any rank came with true @return BPT_OK, BPT_ECOMM */
bpt_status bpt_comm_any(bpt_comm *comm, bool mine, bool *any);

/** Gives every rank what @p root has. Blocks the caller only.
 * @param[in,out] data shape [bytes]; read on @p root, written elsewhere; any size
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes);

/** Returns when every rank has called it. Blocks the caller only. @return BPT_OK, BPT_ECOMM */
bpt_status bpt_comm_barrier(bpt_comm *comm);

/** Tells all ranks whether all succeeded, so that the error of one cannot leave the others waiting.
 * Call it after work that may fail on one rank alone and before the next collective step.
 * @param mine this rank's status; its text is this thread's last error
 * @return BPT_OK if every rank came with BPT_OK; @p mine (its text untouched) if this rank failed;
 *         BPT_EPEER (text names rank, host and what failed there) if only others did; BPT_ECOMM */
bpt_status bpt_comm_agree(bpt_comm *comm, bpt_status mine);

/** Ends all ranks at once. For errors that the others cannot learn of in another way; print first.
 * Where MPI hangs this process ends by itself, after some seconds, and mpirun ends the others.
 * @param exit_status of the whole job, 1..255 */
_Noreturn void bpt_comm_abort(bpt_comm *comm, int exit_status);

/** @return processor seconds that the MPI thread has used */
double bpt_comm_cpu_seconds(const bpt_comm *comm);

#endif
