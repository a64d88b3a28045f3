/** @file storage/environment/environment_guard.h
 * What an LMDB environment takes along as its user context: its files, watched for pages that are
 * gone (lost_pages.h), and its lock file, reserved on the disk. For environment.c; others know how
 * large a lock file is.
 *
 * Threads: bpt__guard_lost() and bpt__guard_settle() from any, the others one at a time. */
#ifndef BPT_STORAGE_ENVIRONMENT_GUARD_H
#define BPT_STORAGE_ENVIRONMENT_GUARD_H

#include "storage/environment/environment.h"
#include "storage/environment/lost_pages.h"

enum { BPT__LOCK_FILE_BYTES = 32768 }; /* room for some 500 readers at a time */

typedef struct bpt__guard {
    char *data, *lock;   /* paths of its files */
    bpt__watched *pages; /* of the data file, */
    bpt__watched *slots; /* of the lock file; NULL: it has none */
    int lock_fd;     /* -1: none. Open as long as LMDB's own: closing one ends the locks of all */
    uint64_t bytes;  /* of the data file when it was opened. LMDB never makes it shorter */
    uint64_t pinned; /* by bpt__environment_read(): the transaction whose state it is */
    const bpt__environment_kind *kind;
} bpt__guard;

/** @param path of the environment's folder
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__guard_create(const bpt__environment_kind *kind, const char *path, bpt__guard **out);
/** Once LMDB has closed the files. NULL is allowed. */
void bpt__guard_free(bpt__guard *guard);

/** Makes the lock file where it is missing, with all of its pages on the disk: LMDB maps it for
 * writing, and a hole in it would be a page that is lost once the disk is full.
 * @return BPT_OK, BPT_EUSAGE (it is a link, which is not followed; with hint), BPT_ENOSPC, BPT_EIO,
 *         BPT_ENOMEM */
bpt_status bpt__guard_lock(bpt__guard *guard);
/** As above, for readers: leaves it (lock_fd is -1) where there can be none, on read-only media and
 * full disks, where it may not be written, and where it is a link.
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__guard_lock_if_can(bpt__guard *guard);

/** Keeps other processes of bpt from opening and closing an environment of the same files until
 * bpt__guard_leave(): LMDB's last one destroys the mutexes when it closes (0.9.31 does, 0.9.24 does
 * not), also where one that opens waits for its turn just then and takes them for good. Waits; does
 * nothing where there is no lock file. By flock on the data file, on which LMDB has no locks: on
 * the lock file, network file systems would take it for one of LMDB's.
 * @return what bpt__guard_leave() is to be given */
int bpt__guard_enter(const bpt__guard *guard);
void bpt__guard_leave(int turn);

/** Watches the data file, where it is there, before LMDB opens it: it reads pages meanwhile.
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__guard_watch(bpt__guard *guard);
/** Watches the data file that LMDB has opened: it may have made it, or somebody has put another one
 * there since. @return likewise */
bpt_status bpt__guard_watch_opened(bpt__guard *guard, MDB_env *env);

/** @return whether a page could not be read so far */
bool bpt__guard_lost(const bpt__guard *guard);

/** bpt__environment_settle() */
bpt_status bpt__guard_settle(const bpt__guard *guard, MDB_env *env, bpt_status status);

#endif
