/** @file tools/train/run/run_folder.h
 * The folder of a run: where its configuration, logs, metrics, checkpoints and weights lie.
 *
 *     RUN/config.yaml  log.rank-N.txt  metrics.jsonl  summary.json  model.safetensors  checkpoints/
 *     RUN/chart.svg  a picture of the metrics (tools/train/chart/chart.h)
 *     RUN/exchange/  what an agwu run is replayed from
 *     RUN/model.yaml  the model's file
 *     RUN/tuned.rank-N.yaml  what rank N was tuned by, with --tuned
 *     RUN/gpu.rank-N.yaml  which kernels rank N's GPU found fastest, if it has one
 *     RUN/run.lock   while a job writes there (run_lock.h)
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RUN_FOLDER_H
#define BPT_TOOLS_RUN_FOLDER_H

#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_run_folder bpt_run_folder;

/** What may be at the path already. */
typedef enum bpt_run_folder_mode {
    BPT_RUN_NEW,     /* nothing */
    BPT_RUN_REPLACE, /* a run, which bpt_run_folder_begin() removes, an empty folder, or nothing */
    BPT_RUN_GO_ON,   /* a run, an empty folder, or nothing */
} bpt_run_folder_mode;

/** Opens the folder on rank 0: makes it where it is missing and locks it until it is closed. What
 * is in it stays as it is.
 * @param[out] run caller owns, bpt_run_folder_close()
 * @return BPT_OK, BPT_EEXIST (with hint), BPT_EUSAGE (not a run; another job writes there),
 *         BPT_ENOSPC, BPT_EIO, BPT_ENOMEM; on error what was made is gone again */
bpt_status bpt_run_folder_open(const char *path, bpt_run_folder_mode mode, bpt_run_folder **run);

/** @return of a folder that rank 0 has opened: what tells it from one of the same path on another
 * host; borrowed, shorter than BPT_RUN_MARK_SIZE (run_lock.h) */
const char *bpt_run_folder_mark(const bpt_run_folder *run);

/** Opens the folder on the other ranks, once rank 0 has; waits for some seconds until it is seen.
 * @param mark of rank 0's folder
 * @param[out] run caller owns, bpt_run_folder_close()
 * @return BPT_OK, BPT_EUSAGE (not seen on this host, or it is another one), BPT_ENOMEM */
bpt_status bpt_run_folder_join(const char *path, const char *mark, bpt_run_folder **run);

/** Whether bpt_run_folder_open() would refuse the folder for what is there; changes nothing, and
 * asks for no lock.
 * @return BPT_OK, BPT_EEXIST, BPT_EUSAGE (not a run folder), BPT_ENOMEM */
bpt_status bpt_run_folder_look(const char *path, bpt_run_folder_mode mode);

/** Rank 0: whether the folder is still there: what is written into one that somebody has removed
 * or moved would be a heap of files that is no run.
 * @return BPT_OK, BPT_EIO */
bpt_status bpt_run_folder_check(const bpt_run_folder *run);

/** Rank 0: makes room for what the run will write: removes the run that is replaced, of one that
 * goes on the summary (but not the final weights) and what ranks that are no more were tuned by and
 * how their GPUs computed, writes config.yaml and model.yaml, and makes subfolders that are
 * missing. Where a job goes on from a checkpoint, those that are not whole go, too: who had begun
 * them is no more. No rank has its log open yet. What somebody keeps there beside is left alone;
 * subfolders that are links stay links, and are emptied of what runs make.
 * @param n_ranks of this job
 * @param anew also removes what an attempt without a checkpoint left: metrics, chart and logs
 * @param values the options of @p command
 * @param model  what model.yaml holds
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_run_folder_begin(bpt_run_folder *run, uint32_t n_ranks, bool anew,
                                const bpt_command *command, const void *values,
                                const bpt_bytes *model);

/** Removes a file that the run of before may have left and this one does not write. A missing one
 * is no error. @return BPT_OK, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_run_folder_remove(const bpt_run_folder *run, const char *name);

/** @return whether a rank of the run computed on a GPU: the folder keeps how, from its start on
 * @param[out] rank one that did; set only then */
bool bpt_run_folder_had_gpu(const char *path, unsigned *rank);

/** @return on rank 0, whether the folder was there and bpt_run_folder_begin() clears it */
bool bpt_run_folder_replaces(const bpt_run_folder *run);

/** @param run the folder's path; one that is not there is not apart
 * @return whether a subfolder lies on another disk than the folder, as by a link */
bool bpt_run_folder_is_apart(const char *run, const char *name);

/** @return bytes on the disk of the run at @p run of what BPT_RUN_REPLACE removes; 0: there is none
 */
uint64_t bpt_run_folder_bytes(const char *run);

/** @return likewise, of what bpt_run_folder_begin() clears, but for checkpoints:
 * bpt_checkpoint_bytes() */
uint64_t bpt_run_folder_frees(const bpt_run_folder *run);

/** From here on there is something of value in the folder. */
void bpt_run_folder_keep(bpt_run_folder *run);

/** Unlocks the folder. One that this process made and did not keep is removed, and so are the
 * parents that it made. NULL is allowed. Leaves this thread's last error as it is. */
void bpt_run_folder_close(bpt_run_folder *run);

/** @return whether @p path is the run folder @p run or lies in it, or where the folder of its
 * checkpoints leads as a link; both exist, else false */
bool bpt_run_folder_holds(const char *run, const char *path);

/** @param resume of --resume; NULL: not given
 * @return whether it goes on in @p run itself: "auto", or a path that the folder holds */
bool bpt_run_folder_goes_on(const char *run, const char *resume);

const char *bpt_run_folder_path(const bpt_run_folder *run);

/** @param[out] finished whether the run at @p path came to its end: its summary is there
 * @return BPT_OK, BPT_EIO (it cannot be seen), BPT_ENOMEM */
bpt_status bpt_run_folder_finished(const char *path, bool *finished);

/** @return the path of an entry, "<run>/<name>"; caller owns *out, bpt_free() */
bpt_status bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out);

/** Appends one finished JSON text as a line to metrics.jsonl; flushed to the file system at once. A
 * line that an earlier process left half-written is removed first.
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_run_folder_metric(bpt_run_folder *run, bpt_json_writer *event);

/** Writes a finished JSON text as a file, whole or not at all. The writer is then as new, as it is
 * after an event. @return as above */
bpt_status bpt_run_folder_json(const bpt_run_folder *run, const char *name, bpt_json_writer *json);

#endif
