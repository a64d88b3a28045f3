/** @file storage/lost_pages.h
 * Pages of mapped files that are gone: a note to look at, not the end of the process.
 *
 * A mapped page whose file was cut short, or whose disk fails, raises SIGBUS in the thread that
 * reads it. Where the file lies in a watched folder, a page of zeros takes its place, the thread
 * goes on, and the folder's mark is set: who has read zeros finds it set when he looks afterwards.
 * Any other SIGBUS goes to whoever handled it before. For this folder only.
 *
 * Caveats: a thread that blocks SIGBUS is still ended by it (bpt_thread_block_signals() leaves it
 * open). Needs /proc; a folder that is renamed after it was opened is watched no longer.
 *
 * Threads: any. */
#ifndef BPT_STORAGE_LOST_PAGES_H
#define BPT_STORAGE_LOST_PAGES_H

#include "base/status.h"

#include <stdbool.h>

typedef struct bpt__watched bpt__watched;

/** Watches the files that lie in a folder, not those of its subfolders.
 * @param folder exists
 * @param[out] out ended by bpt__lost_pages_unwatch() when no file of it is mapped any more
 * @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__lost_pages_watch(const char *folder, bpt__watched **out);

/** NULL is allowed. */
void bpt__lost_pages_unwatch(bpt__watched *watched);

/** @return whether pages of a file in the folder were replaced; stays so */
bool bpt__lost_pages_any(const bpt__watched *watched);

#endif
