/* Whether the disk of the run's folder has room for what the run learns. */
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/checkpoint_files.h"
#include "tools/train/checkpoint_state.h"
#include "tools/train/job_parts.h"
#include "tools/train/run_need.h"

static bpt_status count_there(const bpt_run_folder *run, uint64_t *n) {
    char *checkpoints;
    *n = 0;
    if (bpt_run_folder_replaces(run)) return BPT_OK;
    BPT_TRY(bpt_run_folder_entry(run, "checkpoints", &checkpoints));
    const bpt_status status = bpt_checkpoint_count(checkpoints, n);
    bpt_free(checkpoints);
    return status;
}

/* Ranks that merge save at an exchange: the one under way, or the one after it. */
static uint64_t late(const bpt_job *job) {
    const bool merges = job->update != BPT_UPDATE_LOCAL && job->update != BPT_UPDATE_ALLREDUCE;
    return merges ? 2 * job->pace.limit * job->batch_all : 0;
}

static bpt_status refuse(const char *path, const bpt_run_need *need, uint64_t there) {
    const double mb = 1e-6;
    const bpt_status status = bpt_fail(
        BPT_ENOSPC, "no room for the run in %s: its weights%s take %.1f MB, %.1f MB are free", path,
        need->checkpoints > 0 ? " and a checkpoint" : "", mb * (double)need->least,
        mb * (double)there);
    bpt_hint("make room there, or name an --output on another disk");
    return status;
}

static void warn(const char *path, const bpt_run_need *need, uint64_t there, bool fewer) {
    const double mb = 1e-6;
    bpt_warn(
        "checkpoints and weights of the run take %.1f MB, %.1f MB are free on the disk of %s: "
        "make room meanwhile%s",
        mb * (double)need->most, mb * (double)there, path,
        fewer ? ", or lower --checkpoint-keep" : "");
}

/* Where nothing is free, or the file system does not tell, the first file that is written says so.
 */
bpt_status bpt__job_check_room(const bpt_job *job) {
    const char *path = bpt_run_folder_path(job->run);
    bpt_run_writes writes = {
        .weights = job->model->segments.n_elements * sizeof(float),
        .vectors = 1 + bpt_checkpoint_velocities(job) + job->n_workers * bpt_job_n_states(job),
        .progress = job->count.progress,
        .total = job->total_samples,
        .every = job->checkpoint_every,
        .late = late(job),
        .keep = (uint64_t)job->options->checkpoint_keep,
    };
    BPT_TRY(count_there(job->run, &writes.there));
    const bpt_run_need need = bpt_run_need_of(&writes);
    const uint64_t unused = bpt_file_system_at(path).free_bytes;
    const uint64_t there = unused + bpt_run_folder_frees(job->run);
    if (unused == 0 || there >= need.most) return BPT_OK;
    if (there < need.least) return refuse(path, &need, there);
    warn(path, &need, there, writes.keep > 1);
    return BPT_OK;
}
