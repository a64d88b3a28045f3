/** @file tools/eval/result_file.h
 * Files that bpt-eval writes beside its result: tried before anything is computed, and written when
 * all is.
 *
 * Threads: the main one. */
#ifndef BPT_TOOLS_RESULT_FILE_H
#define BPT_TOOLS_RESULT_FILE_H

#include "base/status.h"

#include <stddef.h>

/** A kind of such files. */
typedef struct bpt_result_file {
    const char *option;  /* "predictions", of --predictions */
    const char *what;    /* what a file of another kind is not: "file of predictions" */
    const char *example; /* a name: "predictions.jsonl" */
    const char *head;    /* what files of this kind begin with, and no others; shape [head_bytes] */
    size_t head_bytes;   /* 1 to 16 */
} bpt_result_file;

/** Tries whether a file can be made at @p path. One of its kind that is there, or an empty one,
 * will be replaced; anything else is left alone.
 * @return BPT_OK, BPT_EEXIST (something else is there), BPT_EUSAGE ("-"), BPT_EIO, BPT_ENOSPC,
 *         BPT_ENOMEM */
bpt_status bpt_result_file_try(const bpt_result_file *kind, const char *path);

#endif
