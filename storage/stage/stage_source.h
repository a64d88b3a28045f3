/** @file storage/stage/stage_source.h
 * What a copy of a dataset is made from, and how it is told from others. For this folder only.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_STAGE_SOURCE_H
#define BPT_STORAGE_STAGE_SOURCE_H

#include "base/status.h"

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

/** The file of a dataset at one moment. */
typedef struct bpt__stage_source {
    uint64_t identity; /* never 0. Of size, time and head pages of the file, and of all that the
                          dataset says of itself: a writer changes the first three, and whoever
                          makes it anew the time */
    uint64_t bytes;    /* of the file */
    uint64_t times[2]; /* seconds and nanoseconds of its last change */
    size_t head_bytes; /* its two head pages */
    uint64_t heads;    /* checksum of these */
} bpt__stage_source;

/** Looks at a dataset. Reads no records.
 * @param dataset its folder
 * @return BPT_OK, BPT_ENOENT (no dataset there), BPT_EDATA, BPT_ECORRUPT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__stage_source_look(const char *dataset, bpt__stage_source *source);

/** Looks whether it is still what it was.
 * @return BPT_OK, BPT_EIO (also: it has changed; with hint), BPT_ENOENT, BPT_ENOMEM */
bpt_status bpt__stage_source_check(const char *dataset, const bpt__stage_source *source);

/** Reads from a place in a file, as much as there is.
 * @param path for messages
 * @param[out] n bytes read; less than @p size at the end of the file alone
 * @return BPT_OK, BPT_EIO */
bpt_status bpt__read_at(int fd, const char *path, void *buffer, size_t size, uint64_t at,
                        size_t *n);

#endif
