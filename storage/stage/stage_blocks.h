/** @file storage/stage/stage_blocks.h
 * A file that is copied block by block, with a list of the blocks' checksums beside it. For this
 * folder only.
 *
 * What an earlier process left is checked against its list, up to the first block that is not
 * right; from there on it is copied anew. A block is written before it is listed; whether both
 * reached the disk before a power cut is seen when they are checked.
 *
 * Threads: one at a time; who uses it holds the lock of the copy. */
#ifndef BPT_STORAGE_STAGE_BLOCKS_H
#define BPT_STORAGE_STAGE_BLOCKS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { BPT__BLOCK_BYTES = 4 << 20 };

typedef struct bpt__blocks bpt__blocks;

/** What is copied, and where to. Everything is borrowed while the blocks are open. */
typedef struct bpt__blocks_job {
    const char *from;   /* file */
    const char *to;     /* file, made where it is missing */
    const char *list;   /* file of its checksums; likewise */
    const char *header; /* its first line, without the end: a list with another one counts for
                           nothing */
    uint64_t bytes;     /* of the file that is copied */
} bpt__blocks_job;

/** @param[out] blocks caller owns, bpt__blocks_close()
 * @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt__blocks_open(const bpt__blocks_job *job, bpt__blocks **blocks);
/** NULL is allowed. */
void bpt__blocks_close(bpt__blocks *blocks);

/** Checks the next block that is listed; behind the last right one it cuts off file and list.
 * @param[out] over nothing is left to check
 * @return BPT_OK, BPT_EIO */
bpt_status bpt__blocks_check(bpt__blocks *blocks, bool *over);

/** Copies the next block, once all are checked.
 * @param[out] over the file is whole; not flushed yet
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt__blocks_copy(bpt__blocks *blocks, bool *over);

/** Flushes the file and its list to disk. @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt__blocks_flush(const bpt__blocks *blocks);

/** @return bytes of the list of a file of @p bytes, without its first line */
uint64_t bpt__blocks_list_bytes(uint64_t bytes);

/** @return bytes that are right, found or copied */
uint64_t bpt__blocks_done(const bpt__blocks *blocks);

/** @return bytes that were copied */
uint64_t bpt__blocks_copied(const bpt__blocks *blocks);

#endif
