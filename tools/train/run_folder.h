/** @file tools/train/run_folder.h
 * The folder of a run: where its configuration, logs, metrics, checkpoints and weights lie.
 *
 *     RUN/config.yaml  log.rank-N.txt  metrics.jsonl  summary.json  model.safetensors  checkpoints/
 *     RUN/exchange/  what an agwu run is replayed from
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RUN_FOLDER_H
#define BPT_TOOLS_RUN_FOLDER_H

#include "base/json.h"
#include "base/options.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct bpt_run_folder bpt_run_folder;

/** What may be at the path already. */
typedef enum bpt_run_folder_mode {
    BPT_RUN_NEW,     /* nothing */
    BPT_RUN_REPLACE, /* a run, which is removed; anything else is left alone */
    BPT_RUN_GO_ON,   /* a run, an empty folder, or nothing */
    BPT_RUN_JOIN,    /* the run that rank 0 has just made */
} bpt_run_folder_mode;

/** Makes or opens the folder. Rank 0 first, and its configuration; then the others with
 * BPT_RUN_JOIN.
 * @param[out] run caller owns, bpt_run_folder_close()
 * @return BPT_OK, BPT_EEXIST (with hint), BPT_EUSAGE (not a run), BPT_ENOSPC, BPT_EIO, BPT_ENOMEM
 */
bpt_status bpt_run_folder_open(const char *path, bpt_run_folder_mode mode, bpt_run_folder **run);
void bpt_run_folder_close(bpt_run_folder *run);

/** @return whether @p path is the run folder @p run or lies in it; both exist, else false */
bool bpt_run_folder_holds(const char *run, const char *path);

const char *bpt_run_folder_path(const bpt_run_folder *run);

/** @return whether the run came to its end: its summary is there */
bool bpt_run_folder_finished(const bpt_run_folder *run);

/** Makes a run unfinished that goes on. @return BPT_OK, BPT_EIO */
bpt_status bpt_run_folder_go_on(bpt_run_folder *run);

/** Removes what an attempt without a checkpoint left: metrics and logs. @return BPT_OK, BPT_EIO */
bpt_status bpt_run_folder_restart(bpt_run_folder *run);

/** @return the path of an entry, "<run>/<name>"; caller owns *out, bpt_free() */
bpt_status bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out);

/** Writes config.yaml. @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_run_folder_config(const bpt_run_folder *run, const bpt_command *command,
                                 const void *values);

/** Appends one finished JSON text as a line to metrics.jsonl; flushed to the file system at once. A
 * line that an earlier process left half-written is removed first.
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_run_folder_metric(bpt_run_folder *run, bpt_json_writer *event);

/** Writes a finished JSON text as a file, whole or not at all. @return as above */
bpt_status bpt_run_folder_json(const bpt_run_folder *run, const char *name, bpt_json_writer *json);

#endif
