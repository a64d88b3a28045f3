/** @file storage/writer/terms.h
 * What an ingestion under way was asked for, and of which source, kept in the lock file of its
 * dataset: so that nobody goes on with it who makes something else. For this folder only.
 *
 * Threads: any; who calls holds the lock. */
#ifndef BPT_STORAGE_TERMS_H
#define BPT_STORAGE_TERMS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Two texts, each of lines. */
typedef struct bpt__terms {
    const char *wanted; /* what is made: options */
    const char *origin; /* of what: the source */
} bpt__terms;

/** Writes them. The file's time becomes that when the source began to be read, if it is this
 * user's.
 * @param lock open file @param path of the dataset, for messages
 * @param reading_ns bpt_clock_ns() of then
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__terms_write(int lock, const char *path, const bpt__terms *terms,
                            uint64_t reading_ns);

/** Removes what was written; what cannot be removed does no harm. */
void bpt__terms_clear(int lock);

/** Compares them with those that were written.
 * @param[out] known whether there are any, whole; if not, nothing was compared
 * @return BPT_OK, BPT_EUSAGE (something else is made), BPT_EDATA (the source differs; both name the
 *         first line that does), BPT_EIO, BPT_ENOMEM */
bpt_status bpt__terms_compare(int lock, const char *path, const bpt__terms *terms, bool *known);

#endif
