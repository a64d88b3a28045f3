/** @file storage/importers/encoded_file.h
 * Fetches whole image files, or pieces of files, into memory that is used again.
 * For importers only.
 *
 * Threads: any; a buffer belongs to one thread. */
#ifndef BPT_STORAGE_IMPORTERS_ENCODED_FILE_H
#define BPT_STORAGE_IMPORTERS_ENCODED_FILE_H

#include "base/status.h"
#include "storage/importers/importer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/** Reads a whole file of at most BPT_IMPORT_MAX_ENCODED bytes.
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA (empty, too large, or no file), BPT_EIO, BPT_ENOMEM */
bpt_status bpt__encoded_file_read(const char *path, bpt_import_buffer *buffer, size_t *size);

/** @return whether the file is there; then @p when is when it was changed last, or put there, or
 * its owner, rights or names were changed: the system does not tell these apart */
bool bpt__encoded_file_changed(const char *path, struct timespec *when);

/** Reads @p size bytes from @p offset on.
 * @param size 1 to BPT_IMPORT_MAX_ENCODED
 * @param what in the file, for messages
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA (the file ends before), BPT_EIO, BPT_ENOMEM */
bpt_status bpt__encoded_piece_read(const char *path, const char *what, uint64_t offset, size_t size,
                                   bpt_import_buffer *buffer);

#endif
