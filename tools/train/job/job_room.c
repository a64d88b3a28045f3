/* Whether the disk of the run's folder has room for what the run learns. */
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/job/checkpoint_state.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/run_need.h"
#include "tools/train/run/checkpoint_files.h"

/* What the folder holds, bytes. */
typedef struct {
    uint64_t *checkpoints; /* newest first; NULL: none */
    size_t n;
    uint64_t goes; /* of what is removed or replaced */
} contents;

static bpt_status look(const bpt_job *job, contents *h) {
    char *checkpoints;
    *h = (contents){.goes = bpt_run_folder_frees(job->run)};
    if (bpt_run_folder_replaces(job->run)) return BPT_OK;
    BPT_TRY(bpt_run_folder_entry(job->run, "checkpoints", &checkpoints));
    const uint64_t step = job->count.progress / job->batch_all;
    const bpt_status status =
        bpt_checkpoint_bytes(checkpoints, step, &h->checkpoints, &h->n, &h->goes);
    bpt_free(checkpoints);
    return status;
}

/* Ranks that merge save at an exchange: the one under way, or the one after it. */
static uint64_t late(const bpt_job *job) {
    const bool merges = job->update != BPT_UPDATE_LOCAL && job->update != BPT_UPDATE_ALLREDUCE;
    return merges ? 2 * job->pace.limit * job->batch_all : 0;
}

static bpt_run_need need_of(const bpt_job *job, const contents *h) {
    return bpt_run_need_of(&(bpt_run_writes){
        .weights = job->model->segments.n_elements * sizeof(float),
        .vectors = 1 + bpt_checkpoint_velocities(job) + job->n_workers * bpt_job_n_states(job),
        .progress = job->count.progress,
        .total = job->total_samples,
        .every = job->checkpoint_every,
        .late = late(job),
        .keep = (uint64_t)job->options->checkpoint_keep,
        .there = h->checkpoints,
        .n_there = h->n,
    });
}

static const char *with_what_goes(const contents *h) {
    return h->goes > 0 ? " with what is removed" : "";
}

static bpt_status refuse(const char *path, const bpt_run_need *need, uint64_t there,
                         const contents *h) {
    const double mb = 1e-6;
    const bpt_status status = bpt_fail(
        BPT_ENOSPC, "no room for the run in %s: its weights%s take %.1f MB, %.1f MB are free%s",
        path, need->checkpoints > 0 ? " and a checkpoint" : "", mb * (double)need->least,
        mb * (double)there, with_what_goes(h));
    if (h->n > 0)
        bpt_hint("make room there, or go on with an --output on another disk and --resume %s",
                 path);
    else
        bpt_hint("make room there, or name an --output on another disk");
    return status;
}

static void warn(const char *path, const bpt_run_need *need, uint64_t there, const contents *h,
                 bool fewer) {
    const double mb = 1e-6;
    bpt_warn(
        "checkpoints and weights of the run take %.1f MB, %.1f MB are free on the disk of %s%s: "
        "make room meanwhile%s",
        mb * (double)need->most, mb * (double)there, path, with_what_goes(h),
        fewer ? ", or lower --checkpoint-keep" : "");
}

bpt_status bpt__job_check_room(const bpt_job *job) {
    const char *path = bpt_run_folder_path(job->run);
    const bpt_file_system fs = bpt_file_system_at(path);
    contents h;
    if (!fs.kind[0] || fs.free_bytes == UINT64_MAX) return BPT_OK; /* the first write will tell */
    BPT_TRY(look(job, &h));
    const bpt_run_need need = need_of(job, &h);
    const uint64_t there = fs.free_bytes + h.goes;
    bpt_status status = BPT_OK;
    if (there < need.least)
        status = refuse(path, &need, there, &h);
    else if (there < need.most)
        warn(path, &need, there, &h, job->options->checkpoint_keep > 1);
    bpt_free(h.checkpoints);
    return status;
}
