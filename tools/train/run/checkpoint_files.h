/** @file tools/train/run/checkpoint_files.h
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

/** Measures a file that was written.
 * @param name shorter than BPT_CHECKPOINT_NAME_SIZE
 * @param[out] file set on success only
 * @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_measure(const char *folder, const char *name, bpt_checkpoint_file *file);

/** Writes DONE, which makes a checkpoint whole.
 * @param serial larger than that of every checkpoint before: it orders them, since the steps in
 *               their names may shrink when a run goes on with other ranks
 * @param files  shape [n] */
bpt_status bpt_checkpoint_write_done(const char *folder, uint64_t serial,
                                     const bpt_checkpoint_file *files, size_t n);

/** Checks the files of DONE's list that one rank reads: its own, and the weights on rank 0. The
 * hint names another whole checkpoint, if there is one; where this one, which was found whole, is
 * whole no more, it says that a run has removed it.
 * @return BPT_OK, BPT_ECORRUPT (names the file, or DONE itself), BPT_ENOENT (no DONE: not a whole
 * checkpoint), BPT_EDATA (also another format), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_verify(const char *folder, uint32_t rank);

/** Finds the newest whole checkpoint.
 * @param folder the folder of checkpoints
 * @param before NULL, or the name of a checkpoint that is of no use: then the newest of those
 *               that are older, or else of all others, and none whose list is damaged
 * @param[out] path caller owns, bpt_free(); NULL if there is none
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_find(const char *folder, const char *before, char **path);

/** What checkpoints take on the disk.
 * @param step  of all ranks, where the job stands: the checkpoints of later ones are replaced as it
 *              comes to them
 * @param[out] bytes of whole checkpoints up to that step, newest first, shape [n]; caller owns,
 *              bpt_free(); set on success only
 * @param[out] goes  bytes of all others: later ones, and those that are not whole
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_bytes(const char *folder, uint64_t step, uint64_t **bytes, size_t *n,
                                uint64_t *goes);

/** Names the checkpoints whose lists are damaged, for people.
 * @param found  name of the checkpoint that was taken instead
 * @param[out] names shape [size], cut where they are too many; "" if there are none
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_passed_over(const char *folder, const char *found, char *names,
                                      size_t size);

/** Names the checkpoints that are not whole, for people: "step-00000010, step-00000020.part".
 * @param[out] names shape [size], cut where they are too many; "" if there are none
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_torn(const char *folder, char *names, size_t size);

/** @param[out] serial of the next checkpoint in @p folder */
bpt_status bpt_checkpoint_next_serial(const char *folder, uint64_t *serial);

/** @param folder a path, of a checkpoint, a run, or nothing
 * @param[out] whole whether it is a checkpoint that is whole: it has DONE
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_is_whole(const char *folder, bool *whole);

/** @return whether an entry of such a folder is a checkpoint by its name, or what is made of one
 * for a moment: others are the user's */
bool bpt_checkpoint_is_name(const char *name);

/** Puts a checkpoint that is whole at @p from in the place of what may be at @p to, both in
 * @p folder, for good; at every moment one of them is there whole. Warns where what was there stays
 * beside it, as TO.old.
 * @return BPT_OK, BPT_EIO, BPT_ENOMEM; on error what was at @p to is there again, unless the system
 *         fails at that too */
bpt_status bpt_checkpoint_place(const char *folder, const char *from, const char *to);

/** Removes a checkpoint; from the first moment on it does not count as whole. A missing one is no
 * error. @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_remove(const char *folder);

/** Makes room for one that is to be built at @p part and placed at @p to. What an interrupted job
 * left at @p part is removed; or placed, if it is whole and nothing at @p to is, since it may be
 * the only one. @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_clear(const char *folder, const char *part, const char *to);

/** Removes all but the newest @p keep whole checkpoints, and every one that is not whole. Damaged
 * ones do not count: a newer one stays as well, an older one goes first. */
bpt_status bpt_checkpoint_prune(const char *folder, size_t keep);

#endif
