/* Whether the disk of the run's folder has room for what the run learns, and that of its
 * checkpoints. */
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "tools/train/job/checkpoint_state.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/run/checkpoint_files.h"

/* A disk that the run writes to: one, or another by a link to its checkpoints. */
typedef struct {
    const char *path;
    bool has_weights, has_checkpoints;
} disk;

/* What the run has there, bytes. */
typedef struct {
    uint64_t *checkpoints; /* newest first; NULL: none */
    size_t n;
    uint64_t goes; /* of what is removed or replaced */
} contents;

/* @param[out] goes bytes of those that are not whole, or of a later step */
static bpt_status list_checkpoints(const bpt_job *job, uint64_t step, contents *h, uint64_t *goes) {
    char *checkpoints;
    BPT_TRY(bpt_run_folder_entry(job->run, "checkpoints", &checkpoints));
    const bpt_status status = bpt_checkpoint_bytes(checkpoints, step, &h->checkpoints, &h->n, goes);
    bpt_free(checkpoints);
    return status;
}

static bpt_status look_at_checkpoints(const bpt_job *job, contents *h) {
    uint64_t goes = 0;
    const uint64_t step = job->count.progress / job->batch_all;
    const bpt_status status = list_checkpoints(job, step, h, &goes);
    h->goes += goes;
    while (bpt_run_folder_replaces(job->run) && h->n > 0) h->goes += h->checkpoints[--h->n];
    return status;
}

static bpt_status look(const bpt_job *job, const disk *d, contents *h) {
    *h = (contents){.goes = d->has_weights ? bpt_run_folder_frees(job->run) : 0};
    return d->has_checkpoints ? look_at_checkpoints(job, h) : BPT_OK;
}

/* Ranks that merge save at an exchange: the one under way, or the one after it. */
static uint64_t late(const bpt_job *job) {
    return bpt_update_merges(job->update) ? 2 * job->pace.limit * job->batch_all : 0;
}

static bpt_run_writes writes_of(const bpt_job *job, const disk *d, const contents *h) {
    const uint64_t weights = job->model->segments.n_elements * sizeof(float);
    const bpt_learning learning = bpt_train_learning(job->options, job->lr_factor);
    const uint64_t vectors = 1 + bpt_checkpoint_velocities(job) +
                             job->n_workers * learning.optimizer->n_states(&learning);
    return (bpt_run_writes){
        .weights = d->has_weights ? weights : 0,
        .checkpoint = vectors * weights,
        .progress = job->count.progress,
        .total = job->total_samples,
        .every = d->has_checkpoints ? job->checkpoint_every : 0,
        .late = late(job),
        .keep = (uint64_t)job->options->checkpoint_keep,
        .there = h->checkpoints,
        .n_there = h->n,
    };
}

static bpt_run_need need_of(const bpt_job *job, const disk *d, const contents *h) {
    const bpt_run_writes writes = writes_of(job, d, h);
    return bpt_run_need_of(&writes);
}

bpt_run_need bpt_job_need(const bpt_job *job, bool apart) {
    return need_of(job, &(disk){.has_weights = true, .has_checkpoints = !apart}, &(contents){0});
}

static const char *with_what_goes(const contents *h) {
    return h->goes > 0 ? " with what is removed" : "";
}

static const char *what_takes(const disk *d, const bpt_run_need *need) {
    if (!d->has_weights) return "a checkpoint takes";
    return need->checkpoints > 0 ? "its weights and a checkpoint take" : "its weights take";
}

static bpt_status refuse(const disk *d, const bpt_run_need *need, uint64_t there,
                         const contents *h) {
    const double mb = 1e-6;
    const bpt_status status = bpt_fail(
        BPT_ENOSPC, "no room for the run in %s: %s %.1f MB, %.1f MB are free%s", d->path,
        what_takes(d, need), mb * (double)need->least, mb * (double)there, with_what_goes(h));
    static const char resume[] =
        "make room there, or go on with an --output on another disk and --resume";
    char word[BPT_ERROR_HINT_SIZE - sizeof resume];
    const bool named = bpt_text_quote(d->path, word, sizeof word);
    if (!d->has_weights)
        bpt_hint("make room there, or let it lead to another disk");
    else if (h->n > 0)
        bpt_hint("%s %s", resume, named ? word : "RUN");
    else
        bpt_hint("make room there, or name an --output on another disk");
    return status;
}

static void warn(const disk *d, const bpt_run_need *need, uint64_t there, const contents *h) {
    const double mb = 1e-6;
    bpt_warn(
        "checkpoints%s of the run take %.1f MB, %.1f MB are free on the disk of %s%s: make room "
        "meanwhile%s",
        d->has_weights ? " and weights" : "", mb * (double)need->most, mb * (double)there, d->path,
        with_what_goes(h), need->fewer ? ", or lower --checkpoint-keep" : "");
}

static bpt_status check(const bpt_job *job, const disk *d) {
    const bpt_file_system fs = bpt_file_system_at(d->path);
    contents h;
    if (!fs.kind[0] || fs.free_bytes == UINT64_MAX) return BPT_OK; /* the first write will tell */
    BPT_TRY(look(job, d, &h));
    const bpt_run_need need = need_of(job, d, &h);
    const uint64_t there = fs.free_bytes + h.goes;
    bpt_status status = BPT_OK;
    if (there < need.least && (d->has_weights || need.checkpoints > 0))
        status = refuse(d, &need, there, &h);
    else if (there < need.most)
        warn(d, &need, there, &h);
    bpt_free(h.checkpoints);
    return status;
}

bpt_status bpt__job_check_room(const bpt_job *job) {
    const char *path = bpt_run_folder_path(job->run);
    char *checkpoints;
    if (!bpt_run_folder_is_apart(path, "checkpoints")) return check(job, &(disk){path, true, true});
    BPT_TRY(check(job, &(disk){path, true, false}));
    if (job->checkpoint_every == 0) return BPT_OK;
    BPT_TRY(bpt_run_folder_entry(job->run, "checkpoints", &checkpoints));
    const bpt_status status = check(job, &(disk){checkpoints, false, true});
    bpt_free(checkpoints);
    return status;
}

/* ---- one more checkpoint, while the run is under way ---- */

static const char by_time[] = "no checkpoint is made by time";

/* None makes room before it is whole: not those of later steps either, as a job with other ranks
 * had them. What --force replaces is gone. */
static bpt_status find_room(const bpt_job *job, const disk *d, bool *has) {
    const double mb = 1e-6;
    const bpt_file_system fs = bpt_file_system_at(d->path);
    contents h = {0};
    uint64_t torn;
    *has = true;
    if (!fs.kind[0] || fs.free_bytes == UINT64_MAX) return BPT_OK; /* writing it will tell */
    BPT_TRY(list_checkpoints(job, UINT64_MAX, &h, &torn));
    const bpt_run_writes writes = writes_of(job, d, &h);
    const uint64_t least = bpt_run_need_of_one(&writes);
    bpt_free(h.checkpoints);
    *has = fs.free_bytes >= least;
    if (!*has)
        bpt_warn("%s: %s %.1f MB, %.1f MB are free in %s", by_time,
                 d->has_weights ? "one and the weights at the end take" : "one takes",
                 mb * (double)least, mb * (double)fs.free_bytes, d->path);
    return BPT_OK;
}

static bpt_status find_room_of_either(const bpt_job *job, bool *has) {
    const char *path = bpt_run_folder_path(job->run);
    char *checkpoints;
    if (!bpt_run_folder_is_apart(path, "checkpoints"))
        return find_room(job, &(disk){path, true, true}, has);
    BPT_TRY(bpt_run_folder_entry(job->run, "checkpoints", &checkpoints));
    const bpt_status status = find_room(job, &(disk){checkpoints, false, true}, has);
    bpt_free(checkpoints);
    return status;
}

bool bpt__job_has_room(const bpt_job *job) {
    bool has;
    if (find_room_of_either(job, &has) == BPT_OK) return has;
    bpt_warn("%s: %s", by_time, bpt_error_last()->text);
    return false;
}
