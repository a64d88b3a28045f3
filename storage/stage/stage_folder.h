/** @file storage/stage/stage_folder.h
 * The folder of a copy of a dataset: its name, its lock, its seal. For this folder only.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_STAGE_FOLDER_H
#define BPT_STORAGE_STAGE_FOLDER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define BPT__STAGE_DATA "data.mdb"      /* the copy, whole */
#define BPT__STAGE_PART "data.mdb.part" /* while it is not */
#define BPT__STAGE_LIST "stage.list"    /* of its blocks */
#define BPT__STAGE_SEAL "stage.seal"
#define BPT__STAGE_LOCK "stage.lock"

/** @param dataset as the kernel resolves it
 * @param[out] path of the folder: caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__stage_folder_name(const char *dir, const char *dataset, uint64_t identity,
                                  char **path);

/** @param[out] header first line of its list, without the end: caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__stage_folder_header(const char *dataset, uint64_t identity, uint64_t bytes,
                                    char **header);

/** Opens the folder's lock file, making both where they are missing.
 * @param[out] fd without a lock on it; the caller closes it
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt__stage_folder_open(const char *path, int *fd);

typedef enum bpt__stage_lock { BPT__STAGE_USE, BPT__STAGE_MAKE } bpt__stage_lock;

/** Takes a lock or changes one into another; does not wait. Many may use a copy, or one make it.
 * @param[out] taken false: others are in the way, and no lock is held
 * @param[out] gone  the folder has been removed meanwhile: @p fd is of no use
 * @return BPT_OK, BPT_EIO (there are no locks on this file system; with hint) */
bpt_status bpt__stage_folder_lock(const char *path, int fd, bpt__stage_lock kind, bool *taken,
                                  bool *gone);

/** @return whether there is a whole copy, and its file is the one that was sealed */
bool bpt__stage_folder_sealed(const char *path, uint64_t identity);

/** Seals the copy. @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt__stage_folder_seal(const char *path, uint64_t identity);

/** Removes the copies in DIR that were made of this dataset when it was another one, but for those
 * that are in use. Says so. */
void bpt__stage_folder_clean(const char *dir, const char *dataset, uint64_t identity);

#endif
