/** @file storage/importers/tar_file.h
 * The members of a tar archive, one after another, by their headers: what they hold is not read.
 * Understands ustar, GNU's long names and sizes, and pax headers (path, size). For importers only.
 *
 * Threads: an open archive belongs to one thread. */
#ifndef BPT_STORAGE_IMPORTERS_TAR_FILE_H
#define BPT_STORAGE_IMPORTERS_TAR_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt__tar_file bpt__tar_file;

/** A regular file in the archive. */
typedef struct bpt__tar_member {
    const char *name;      /* valid until the next call */
    uint64_t offset, size; /* of its content, which lies inside of the archive */
} bpt__tar_member;

/** @param path borrowed while the archive is open
 * @param[out] out caller owns, bpt__tar_close()
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA (no file, empty, or compressed), BPT_EIO, BPT_ENOMEM */
bpt_status bpt__tar_open(const char *path, bpt__tar_file **out);
/** NULL is allowed. */
void bpt__tar_close(bpt__tar_file *tar);

/** Goes to the next regular file; folders, links and devices are passed over.
 * @param[out] found false at the end of the archive
 * @return BPT_OK, BPT_EDATA (cut short, or no tar), BPT_EIO, BPT_ENOMEM */
bpt_status bpt__tar_next(bpt__tar_file *tar, bpt__tar_member *member, bool *found);

#endif
