/** @file storage/environment.h
 * LMDB environments opened with care, and LMDB's errors in our words. For this folder only.
 *
 * LMDB trusts its file: damage in it can crash the process. So the file's structure is walked
 * (page_walk.h) before LMDB follows any pointer in it.
 *
 * Threads: as for an MDB_env; the transactions opened here are not bound to a thread. */
#ifndef BPT_STORAGE_ENVIRONMENT_H
#define BPT_STORAGE_ENVIRONMENT_H

#include "base/status.h"

#include <lmdb.h>
#include <stdbool.h>

/** Fails with the meaning of LMDB's (or an errno) @p code: "cannot <verb> <path>: <reason>". */
bpt_status bpt__lmdb_fail(int code, const char *verb, const char *path);

/** Opens an environment for reading and pins its newest state.
 * @param deep also check free pages and the headers of large values
 * @param[out] env, txn closed with bpt__environment_close()
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA (not LMDB), BPT_ECORRUPT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__environment_read(const char *path, bool deep, MDB_env **env, MDB_txn **txn);

/** Opens an environment for writing, creating its files where they are missing. The caller holds
 * the dataset's writer lock.
 * @return as bpt__environment_read(), BPT_ENOSPC; never BPT_ENOENT for missing files */
bpt_status bpt__environment_write(const char *path, MDB_env **env);

/** Ends @p txn (may be NULL) and closes @p env (may be NULL). */
void bpt__environment_close(MDB_env *env, MDB_txn *txn);

#endif
