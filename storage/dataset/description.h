/** @file storage/dataset/description.h
 * The `meta` database of a dataset as one block of bytes: to send it, to compare it, and to write
 * the same one elsewhere. For storage/ only.
 *
 * Each entry, in the order of the keys: its lengths of key and value (32 bits each, little-endian),
 * key, value.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_DESCRIPTION_H
#define BPT_STORAGE_DESCRIPTION_H

#include "base/status.h"

#include <lmdb.h>
#include <stddef.h>

/** Reads all entries.
 * @param path for messages
 * @param[out] description shape [*size]; caller owns, bpt_free(); empty where there is no `meta`
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO, BPT_ECORRUPT */
bpt_status bpt__description_read(MDB_txn *txn, const char *path, char **description, size_t *size);

/** Writes all entries into a new `meta`.
 * @param[out] code LMDB's, whose status is the caller's to make; 0 unless LMDB is what failed
 * @return BPT_OK, BPT_EDATA (not such a block) */
bpt_status bpt__description_write(MDB_txn *txn, const char *description, size_t size, int *code);

#endif
