/** @file storage/environment/directory.h
 * The directory of a dataset or of scratch, held by one writer. For storage/ only.
 *
 * The lock is the kernel's (flock on writer.lock): it ends with the process, however that ends.
 *
 * Threads: any. */
#ifndef BPT_STORAGE_DIRECTORY_H
#define BPT_STORAGE_DIRECTORY_H

#include "base/status.h"
#include "storage/environment/environment.h"

#include <stddef.h>

/** Creates the directory where it is missing and takes its writer lock.
 * @param[out] lock   file descriptor; closing it releases the lock
 * @param[out] n_made 0: it was there; else what bpt_dir_take_back() removes; set on error too
 * @return BPT_OK, BPT_EEXIST (something else is there), BPT_EIO (also: somebody else holds the
 *         lock), BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt__directory_lock(const bpt__environment_kind *kind, const char *path, int *lock,
                               size_t *n_made);

/** Whether such a directory may be there or become one: nothing is touched.
 * @return BPT_OK, BPT_EEXIST (something else is there), BPT_EIO, as bpt__directory_lock() */
bpt_status bpt__directory_check(const bpt__environment_kind *kind, const char *path);

/** Removes the files of an environment that nothing came of, with the lock held. Nothing else.
 * @param n_made of bpt__directory_lock(): the directory goes too, once it is empty, and so do
 *               parents that were made for it */
void bpt__directory_clear(const bpt__environment_kind *kind, const char *path, size_t n_made);

#endif
