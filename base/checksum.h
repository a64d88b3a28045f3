/** @file base/checksum.h
 * The checksum of every stored byte: XXH3 with 64 bits (xxHash).
 *
 * Threads: any. */
#ifndef BPT_BASE_CHECKSUM_H
#define BPT_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define BPT_CHECKSUM_NAME "xxh3-64"

/** @return the checksum of @p size bytes */
uint64_t bpt_checksum(const void *data, size_t size);

#endif
