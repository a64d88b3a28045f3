/** @file base/file.h
 * Files that are there whole or not at all.
 *
 * Errors: BPT_ENOSPC where the device or a quota is full, BPT_ENOENT where what is to be read does
 * not exist, BPT_EEXIST where something may not exist yet, BPT_ENOMEM where the system lacks memory
 * (of any call), else BPT_EIO; each text names path and reason.
 * Threads: any. */
#ifndef BPT_BASE_FILE_H
#define BPT_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Fails with the meaning of @p error_number (an errno): "cannot <verb> <path>: <reason>". */
bpt_status bpt_fail_errno(int error_number, const char *verb, const char *path);

/** Likewise for what was to be written: a folder that is missing there is BPT_EIO, since no data of
 * the user's are missing. A file that is too large gets a hint. */
bpt_status bpt_fail_write(int error_number, const char *verb, const char *path);

/** Opens a regular file to read it. All else is refused (BPT_EDATA), and nothing waited for: a pipe
 * would hold the program until somebody writes to it.
 * @param[out] fd    caller closes; like the next one it is set on success only
 * @param[out] bytes the size of the file
 * @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_EDATA */
bpt_status bpt_file_open(const char *path, int *fd, uint64_t *bytes);

/** Reads a whole file.
 * @param max_bytes larger files are refused (BPT_EDATA), and so is what bpt_file_open() refuses
 * @param[out] data caller owns, bpt_free(); one 0 byte follows the content
 * @param[out] size bytes without that 0
 * @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_EDATA, BPT_ENOMEM */
bpt_status bpt_file_read(const char *path, size_t max_bytes, char **data, size_t *size);

/** Writes a file so that at any moment, also after a crash, either the old one or the whole new one
 * is at @p path: temporary name, fsync, rename, fsync of the folder.
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM; on error the temporary file is gone and the
 *         old one untouched, except where the folder's fsync fails ("cannot flush"
 *         <folder>): then the new file is in place, and a crash may still bring the old one back */
bpt_status bpt_file_write(const char *path, const void *data, size_t size);

/** @param end what a name goes on with behind that of a file
 * @return whether it is what bpt_file_write() adds until the file is whole: who is killed meanwhile
 * leaves such a part */
bool bpt_file_is_part_end(const char *end);

/** Tries whether bpt_file_write() can make a file at @p path, for what takes long before it has
 * one: makes the temporary file, empty, and removes it. What only a whole file shows is not seen: a
 * disk that gets full, a folder that cannot be read for its fsync, a file that may not be replaced.
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_file_try(const char *path);

/** Bytes of somebody else's. */
typedef struct bpt_bytes {
    const void *data;
    size_t size;
} bpt_bytes;

/** Likewise for a file whose parts, shape [n_parts], lie in several places: none is copied. */
bpt_status bpt_file_write_parts(const char *path, const bpt_bytes *parts, size_t n_parts);

/** Opens a file that lines are appended to, and makes it if it is not there. What a kill or a full
 * disk has left of a line at its end is cut off, so that the next line stands by itself; where the
 * file cannot be read or cut, and in what is no regular file, it stays.
 * @param[out] file caller closes with fclose(); set on success only
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_file_append(const char *path, FILE **file);

/** @return whether @p path leads to the file that is open as @p fd: who removes a lock file may
 * hold its lock, and who waited for it then has the lock of nothing */
bool bpt_file_is_at(int fd, const char *path);

/** Flushes a folder's entries to disk. @return BPT_OK, BPT_EIO */
bpt_status bpt_dir_sync(const char *path);

/** Creates a folder and its parents. @p must_be_new: one that is there is BPT_EEXIST.
 * @return BPT_OK, BPT_EEXIST, BPT_ENOSPC, BPT_EIO (also: a parent is no folder), BPT_ENOMEM; on
 *         error the parents that it made are gone again */
bpt_status bpt_dir_create(const char *path, bool must_be_new);

/** Likewise, for what is to leave nothing where it fails afterwards.
 * @param[out] n_made folders that were made: the last so many parts of the path */
bpt_status bpt_dir_create_counted(const char *path, bool must_be_new, size_t *n_made);

/** Removes the folder and its parents, the last @p n_made parts of the path, up to the first that
 * holds something by now: another's. Leaves this thread's last error as it is. */
void bpt_dir_take_back(const char *path, size_t n_made);

/** Removes a folder and all that is in it; symbolic links are removed, not followed. A missing
 * folder is no error. @return BPT_OK, BPT_EIO */
bpt_status bpt_dir_remove(const char *path);

/** @return bytes on the disk that bpt_dir_remove() would free: of all that is in it, symbolic links
 * not followed, files that have other names too and what cannot be read left out; 0 for what is
 * missing */
uint64_t bpt_dir_bytes(const char *path);

/** @return whether something is seen at @p path. False also where the system does not say: nothing
 * may be removed or made anew for that (bpt_path_look()) */
bool bpt_path_exists(const char *path);

/** @return whether a folder is at @p path, or what a symbolic link there leads to is one */
bool bpt_path_is_folder(const char *path);

/** Whether something is at @p path; symbolic links are not followed. Where nothing is the last
 * error stays as it is.
 * @return BPT_OK, BPT_EIO (the system does not say: no right to look, a disk that fails) */
bpt_status bpt_path_look(const char *path, bool *exists);

#endif
