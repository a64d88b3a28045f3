/** @file storage/environment/page_walk.h
 * Checks the structure of an LMDB data file without LMDB, so that damage is found, not executed.
 *
 * Understands what LMDB 0.9 writes on 64-bit machines for plain databases (no duplicates), named or
 * not: page headers, node offsets, key order, counts, large values and free pages. Every page
 * number and offset that LMDB would follow is checked to be in bounds first.
 *
 * Threads: any. */
#ifndef BPT_STORAGE_PAGE_WALK_H
#define BPT_STORAGE_PAGE_WALK_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** What else is no damage. */
typedef struct bpt__page_rules {
    uint64_t spare_bytes; /* the map that LMDB makes may be twice as large as the file and these */
    uint16_t flags;       /* of the environment (MDB_*), which are kept in the head pages */
    bool records_in_root; /* there are no named databases: the root holds records */
    const char *records_hint; /* where it does against the rules; NULL: no hint */
    bool any_map;             /* the map may end within a page, as whoever made it wished */
} bpt__page_rules;

/** Checks the two head pages: what LMDB reads when it opens the file.
 * @param file path of the data file, for reading and for messages
 * @return BPT_OK, BPT_ENOENT (no such file, or nothing in it yet), BPT_EDATA (not an LMDB file, or
 *         one of another LMDB format), BPT_ECORRUPT, BPT_EIO */
bpt_status bpt__page_check_heads(const char *file, const bpt__page_rules *rules);

/** Tells whether a file is no more than what LMDB begins one with and did not come to the end of:
 * it is empty, or ends before its two head pages do and the first is that of an environment in
 * which nothing was stored yet.
 * @return BPT_OK, BPT_ENOENT, BPT_EIO */
bpt_status bpt__page_is_stump(const char *file, bool *is);

/** Checks all that is reachable from the state after transaction @p txn_id. Leaf and branch pages
 * are read, large values are not.
 * @param deep also check the page headers of large values, the free pages and the spare bytes
 * @return BPT_OK, BPT_ECANCELED (a writer has replaced this state: take a newer one), BPT_EDATA
 *         (records in the root, against the rules), BPT_ECORRUPT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__page_walk(const char *file, const bpt__page_rules *rules, uint64_t txn_id,
                          bool deep);

#endif
