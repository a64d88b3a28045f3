/** @file tools/train/run/run_folder_state.h
 * Inside of run_folder.c and run_files.c: a run's folder.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RUN_FOLDER_STATE_H
#define BPT_TOOLS_RUN_FOLDER_STATE_H

#include "tools/train/run/run_folder.h"
#include "tools/train/run/run_lock.h"

#include <stdio.h>

#define BPT__RUN_METRICS "metrics.jsonl"

struct bpt_run_folder {
    char *path;
    bpt_run_folder_mode mode;
    bpt_run_lock *lock; /* of rank 0 */
    size_t n_made;      /* folders that this process made: the last so many parts of the path */
    bool kept;
    FILE *metrics; /* opened at the first event */
};

/** Writes an entry of the folder, whole or not at all.
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__run_folder_write(const bpt_run_folder *run, const char *name, const char *text,
                                 size_t size);

#endif
