/** @file storage/environment/lost_pages.h
 * Pages of mapped files that are gone: a note to look at, not the end of the process.
 *
 * A mapped page whose file was cut short, or whose disk fails, raises SIGBUS in the thread that
 * reads it. Where the file is watched, a page of zeros takes its place, the thread goes on, and the
 * file's mark is set: who has read zeros finds it set when he looks afterwards.
 * Any other SIGBUS goes to whoever handled it before. For this folder only.
 *
 * Caveats: a thread that blocks SIGBUS is still ended by it (bpt_thread_start() leaves it
 * open). Needs /proc. Files are known by device and inode: links and new names do not matter.
 *
 * Threads: any. */
#ifndef BPT_STORAGE_LOST_PAGES_H
#define BPT_STORAGE_LOST_PAGES_H

#include "base/status.h"

#include <stdbool.h>

typedef struct bpt__watched bpt__watched;

/** @param fd open file, which may be empty and may be closed afterwards
 * @param path of it, for messages
 * @param[out] out ended by bpt__lost_pages_unwatch() when the file is not mapped any more
 * @return BPT_OK, BPT_EIO (it cannot be mapped), BPT_ENOMEM */
bpt_status bpt__lost_pages_watch(int fd, const char *path, bpt__watched **out);

/** NULL is allowed. */
void bpt__lost_pages_unwatch(bpt__watched *watched);

/** @return whether pages of the file were replaced; stays so. NULL: false */
bool bpt__lost_pages_any(const bpt__watched *watched);

#endif
