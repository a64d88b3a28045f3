/** @file storage/importers/gz_file.h
 * Reads a file from start to end, through gzip where its content (not its name) says so.
 * For importers only.
 *
 * Threads: an open file belongs to one thread. */
#ifndef BPT_STORAGE_IMPORTERS_GZ_FILE_H
#define BPT_STORAGE_IMPORTERS_GZ_FILE_H

#include "base/status.h"

#include <stddef.h>

typedef struct bpt__gz_file bpt__gz_file;

/** @param path copied
 * @param[out] out caller owns, bpt__gz_close()
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA (an empty file), BPT_EIO, BPT_ENOMEM */
bpt_status bpt__gz_open(const char *path, bpt__gz_file **out);
void bpt__gz_close(bpt__gz_file *file);

/** Reads exactly @p size bytes.
 * @param what what is read, for messages: "the header", "image 17"
 * @return BPT_OK, BPT_EDATA (the file ends before, or is no sound gzip), BPT_EIO */
bpt_status bpt__gz_read(bpt__gz_file *file, void *data, size_t size, const char *what);

/** Checks that nothing follows what has been read, and gzip's own checksum.
 * @return BPT_OK, BPT_EDATA, BPT_EIO */
bpt_status bpt__gz_expect_end(bpt__gz_file *file);

#endif
