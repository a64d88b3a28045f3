/** @file base/checksum.h
 * The checksum of every stored byte: XXH3 with 64 bits (xxHash).
 *
 * Threads: any. */
#ifndef BPT_BASE_CHECKSUM_H
#define BPT_BASE_CHECKSUM_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define BPT_CHECKSUM_NAME "xxh3-64"

/** @return the checksum of @p size bytes */
uint64_t bpt_checksum(const void *data, size_t size);

/** Measures a file, a piece at a time.
 * @param[out] bytes, checksum of the whole file; set on success only
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA (not a regular file), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checksum_file(const char *path, uint64_t *bytes, uint64_t *checksum);

#endif
