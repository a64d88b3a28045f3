/** @file tools/train/run/run_lock.h
 * The lock of a run's folder: one job at a time writes there.
 *
 * Rank 0 takes it for the whole job. It is the kernel's (flock() on RUN/run.lock) and ends with the
 * process, however that ends: a file that a killed run left holds nobody back. What the file says
 * is information for people.
 *
 * Caveats: what holds between machines is up to the file system. Linux makes flock() on NFS a lock
 * of the server, which all clients see (not with the mount options nolock and local_lock); so do
 * Lustre mounted with -o flock and CIFS. Where locks stay on one machine, or where there are none
 * or the locked file cannot be found again (then a warning says so), nothing keeps jobs of two
 * machines apart. A server may hold the lock of a machine that crashed until that is back, or until
 * its lease is over. Threads: one. */
#ifndef BPT_TOOLS_RUN_LOCK_H
#define BPT_TOOLS_RUN_LOCK_H

#include "base/status.h"

#define BPT_RUN_LOCK_NAME "run.lock"

enum { BPT_RUN_MARK_SIZE = 160 };

typedef struct bpt_run_lock bpt_run_lock;

/** Takes the lock of a folder that is there; does not wait.
 * @param[out] lock caller owns, bpt_run_lock_release()
 * @return BPT_OK, BPT_EUSAGE (somebody else has it: names folder and process, with hint), BPT_EIO,
 *         BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_run_lock_take(const char *run, bpt_run_lock **lock);

/** @return the line in the lock's file, "" where it could not be written; borrowed, shorter than
 * BPT_RUN_MARK_SIZE */
const char *bpt_run_lock_mark(const bpt_run_lock *lock);

/** What this host sees of a lock that another process has taken. */
typedef enum bpt_run_sight { BPT_RUN_SEEN, BPT_RUN_UNSEEN, BPT_RUN_OTHER } bpt_run_sight;

/** @param mark of the lock; "": any is taken for it
 * @return whether the folder here has that lock, none, or another's: it is another folder then */
bpt_run_sight bpt_run_lock_look(const char *run, const char *mark);

/** Gives the lock back and removes its file. NULL is allowed. */
void bpt_run_lock_release(bpt_run_lock *lock);

#endif
