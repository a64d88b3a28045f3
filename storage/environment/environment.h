/** @file storage/environment/environment.h
 * LMDB environments opened with care, and LMDB's errors in our words. For storage/ only.
 *
 * LMDB trusts its file: damage in it can crash the process. So the file's structure is walked
 * (page_walk.h) before LMDB follows any pointer in it.
 *
 * Threads: as for an MDB_env; the transactions opened here are not bound to a thread. */
#ifndef BPT_STORAGE_ENVIRONMENT_H
#define BPT_STORAGE_ENVIRONMENT_H

#include "base/status.h"
#include "storage/environment/page_walk.h"

#include <lmdb.h>
#include <stdbool.h>
#include <stddef.h>

enum { BPT__MAX_DATABASES = 1032 }; /* that an environment can hold by name */

/** Fails with the meaning of LMDB's (or an errno) @p code: "cannot <verb> <path>: <reason>". */
bpt_status bpt__lmdb_fail(int code, const char *verb, const char *path);

/** What environments of one kind have in common. */
typedef struct bpt__environment_kind {
    const char *what;         /* "dataset" */
    const char *missing_hint; /* where there is none; NULL: no hint */
    const char *damaged_hint; /* where its structure is not right */
    const char *lost_hint;    /* where the file is cut short while it is in use */
    const char *data, *lock;  /* names of the files in the folder */
    bool foreign; /* another program's, to read only: no lock file is made, so nobody may write */
    bpt__page_rules rules; /* .flags: however it is opened */
} bpt__environment_kind;

extern const bpt__environment_kind bpt__dataset_files, bpt__scratch_files;

/** Looks whether all pages that were read of an open environment's files were really theirs. To be
 * asked when what was read has been used, and before anything comes of it; cheap.
 * @param status what the work came to
 * @return @p status where nothing is wrong, else BPT_ECORRUPT: the file was cut short while it was
 *         in use, or a page could not be read. Zeros may have been read since, or in this work */
bpt_status bpt__environment_settle(MDB_env *env, bpt_status status);

/** @return whether a page could not be read so far: a part of the above, for each record */
bool bpt__environment_lost(MDB_env *env);

/** @return whether a page of the data file could not be read: what is in it cannot be trusted. (The
 * above is true for a page of the lock file, too.) */
bool bpt__environment_damaged(MDB_env *env);

/** @param env that bpt__environment_read() has opened
 * @return whether writers, who do not see this reader (of another folder, machine or container),
 * have committed since: what it reads may go. False where they do see it. Cheap; any thread */
bool bpt__environment_overtaken(MDB_env *env);

/** @return likewise whether what it reads may be gone: LMDB uses the pages that a commit gave up
 * in the next but one, so two were enough. What was read before this was asked is as it was where
 * it says no */
bool bpt__environment_gone(MDB_env *env);

/** What is read at once of the state that bpt__environment_read() has pinned.
 * @return BPT_OK; else nothing is left of what it made, for it may be run again */
typedef bpt_status (*bpt__environment_body)(void *arg, MDB_env *env, MDB_txn *txn);

/** Opens an environment for reading and pins its newest state. Where that is gone before all of
 * @p body has gone well, the newest of then.
 * @param path of its folder
 * @param deep also check free pages and the headers of large values
 * @param body NULL: nothing
 * @param[out] env, txn closed with bpt__environment_close()
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA (not LMDB), BPT_ECORRUPT, BPT_EIO, BPT_ENOMEM; of @p body
 */
bpt_status bpt__environment_read(const bpt__environment_kind *kind, const char *path, bool deep,
                                 bpt__environment_body body, void *arg, MDB_env **env,
                                 MDB_txn **txn);

/** Opens an environment for writing, creating its files where they are missing. The caller holds
 * the folder's writer lock.
 * @return as bpt__environment_read(), BPT_ENOSPC, BPT_EFULL (its table of readers); never
 * BPT_ENOENT for missing files */
bpt_status bpt__environment_write(const bpt__environment_kind *kind, const char *path,
                                  MDB_env **env);

/** Makes the map of an environment that is open for writing @p bytes large. No transaction is open.
 * @return BPT_OK; BPT_ENOMEM and what else the system says: then LMDB has no map any more, and the
 * environment may only be closed */
bpt_status bpt__environment_map(MDB_env *env, const char *path, size_t bytes);

/** Fails with the meaning of LMDB's (or an errno) @p code of a write: it says EIO of a full disk.
 * @param need_bytes that a transaction writes at most */
bpt_status bpt__environment_unwritten(MDB_env *env, const char *path, size_t need_bytes, int code);

/** Ends @p txn (may be NULL) and closes @p env (may be NULL). */
void bpt__environment_close(MDB_env *env, MDB_txn *txn);

#endif
