/** @file tools/checkpoint_files.h
 * The folder of checkpoints as a folder: names, the list in DONE, checksums. Knows no job.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHECKPOINT_FILES_H
#define BPT_TOOLS_CHECKPOINT_FILES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_CHECKPOINT_NAME_SIZE = 40 };

/** One file of a checkpoint, as DONE lists it. */
typedef struct bpt_checkpoint_file {
    char name[BPT_CHECKPOINT_NAME_SIZE];
    uint64_t bytes, checksum;
} bpt_checkpoint_file;

/** Measures a file that was written. @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_measure(const char *folder, const char *name, bpt_checkpoint_file *file);

/** Writes DONE. @param files shape [n] */
bpt_status bpt_checkpoint_write_done(const char *folder, const bpt_checkpoint_file *files,
                                     size_t n);

/** Checks every file that DONE lists. The hint names the whole checkpoint before, if there is one.
 * @return BPT_OK, BPT_ECORRUPT (names the file), BPT_ENOENT (no DONE: not a whole checkpoint),
 *         BPT_EDATA, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_verify(const char *folder);

/** Finds the newest whole checkpoint.
 * @param folder the folder of checkpoints
 * @param before NULL, or a name (step-NNNNNNNN): only older ones count
 * @param[out] path caller owns, bpt_free(); NULL if there is none
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_find(const char *folder, const char *before, char **path);

/** Removes all but the newest @p keep whole checkpoints, and every older one that is not whole. */
bpt_status bpt_checkpoint_prune(const char *folder, size_t keep);

#endif
