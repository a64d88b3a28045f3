/** @file tools/train/run_lock.h
 * The lock of a run's folder: one job at a time writes there.
 *
 * Rank 0 takes it for the whole job. It is the kernel's (flock() on RUN/run.lock) and ends with the
 * process, however that ends: a file that a killed run left holds nobody back. What the file says
 * is information for people.
 *
 * Caveats: what holds between machines is up to the file system. Linux makes flock() on NFS a lock
 * of the server, which all clients see (not with the mount options nolock and local_lock); so do
 * Lustre mounted with -o flock and CIFS. Where locks stay on one machine, or where there are none
 * (then a warning says so), nothing keeps jobs of two machines apart. A server may hold the lock of
 * a machine that crashed until that is back, or until its lease is over.
 * Threads: one. */
#ifndef BPT_TOOLS_RUN_LOCK_H
#define BPT_TOOLS_RUN_LOCK_H

#include "base/status.h"

#include <stdbool.h>

#define BPT_RUN_LOCK_NAME "run.lock"

typedef struct bpt_run_lock bpt_run_lock;

/** Takes the lock of a folder that is there; does not wait.
 * @param[out] lock caller owns, bpt_run_lock_release()
 * @return BPT_OK, BPT_EUSAGE (somebody else has it: names folder and process, with hint), BPT_EIO,
 *         BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_run_lock_take(const char *run, bpt_run_lock **lock);

/** Gives the lock back and removes its file. NULL is allowed. */
void bpt_run_lock_release(bpt_run_lock *lock);

#endif
