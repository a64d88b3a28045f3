/* What measurements before training decide, unless a checkpoint does. */
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/pool.h"
#include "tools/train/job/batch_cut.h"
#include "tools/train/job/calibrate.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/layer_choice.h"
#include "tools/train/job/rank_list.h"
#include "tools/train/job/rank_threads.h"
#include "tools/train/job/update_choice.h"
#include "tools/train/options/idpa_rounds.h"

#include <string.h>

bpt_status bpt__job_speeds(bpt_job *job, double *speeds) {
    /* Of a device nothing is known either: as if its rank's cores computed. */
    const double guess =
        bpt_rank_threads_speed(job->device ? bpt_pool_bound_cores() : job->n_threads);
    const bool measured = job->solo[0] > 0; /* then all workers are */
    if (!measured || job->n_servers > 0)
        BPT_TRY(bpt_comm_allgather(job->comm, &guess, sizeof guess, speeds));
    if (measured) memcpy(speeds, job->solo, job->n_workers * sizeof *speeds);
    return BPT_OK;
}

/* A worker by itself has nobody to be compared with. */
static bpt_status measure_solo(bpt_job *job) {
    BPT_TRY(bpt_comm_agree(job->comm, BPT_NEW("speeds of ranks", job->n_ranks, &job->solo)));
    return job->n_ranks > 1 ? bpt_calibrate(job, job->solo) : BPT_OK;
}

/* The update of the job that a checkpoint is of, if ranks exchange something by it. */
static bool find_update(const char *name, bpt_update_choice *update) {
    for (int u = BPT_UPDATE_AGWU; u <= BPT_UPDATE_ALLREDUCE; u++) {
        if (strcmp(name, bpt_update_choice_name((bpt_update_choice)u)) != 0) continue;
        *update = (bpt_update_choice)u;
        return true;
    }
    return false;
}

/* Where measurements decide. With servers there is nothing to decide: allreduce has none. */
static bpt_status choose_update(bpt_job *job, bpt_update_choice *update) {
    if (job->n_servers == 0) return bpt_update_choose(job, update);
    bpt_info("--update auto: agwu, since allreduce has no use for --servers");
    *update = BPT_UPDATE_AGWU;
    return BPT_OK;
}

/* --update auto: a job that goes on keeps to what it did, where it can; else it is chosen. */
static bpt_status settle_update(bpt_job *job, bool *found, bpt_checkpoint *c) {
    bpt_update_choice update;
    if (job->options->update != BPT_UPDATE_AUTO || job->n_ranks == 1) return BPT_OK;
    bool kept = *found && find_update(c->update, &update);
    if (kept && job->n_servers > 0) kept = update != BPT_UPDATE_ALLREDUCE;
    if (!kept) BPT_TRY(choose_update(job, &update));
    if (update == job->update) return BPT_OK;
    BPT_TRY(bpt_comm_agree(job->comm, bpt__job_turn_to(job, update)));
    if (!*found) return BPT_OK;
    bpt_checkpoint_close(c); /* it was compared with a job of another kind */
    return bpt_comm_agree(job->comm, bpt_checkpoint_open(job, found, c));
}

/* Under auto a job that goes on keeps to its rounds, and another one has those of a run as long as
 * what is left of this: the last is to come in time. */
static void settle_rounds(bpt_job *job, const bpt_checkpoint *c) {
    if (!c || !bpt_job_rounds_are_free(job)) return;
    const uint64_t done = c->count.progress, all = job->total_samples;
    const double left = done < all ? (double)(all - done) / (double)job->epoch_samples : 0;
    job->rounds =
        c->exact ? c->rounds : bpt_idpa_rounds(job->options->idpa_rounds, left, job->n_workers);
}

/* @param samples overwritten with those of each rank, shape [n_ranks] */
static void say_cut(const bpt_job *job, const uint64_t *cut, double *samples) {
    char list[BPT_RANK_LIST_SIZE];
    for (uint32_t r = 0; r < job->n_ranks; r++) samples[r] = (double)(cut[r + 1] - cut[r]);
    bpt_rank_list(samples, job->n_ranks, 0, "", list);
    bpt_info("each batch is cut by speed: samples by rank %s", list);
}

/* @param[out] begin,end of this rank's samples in each batch */
static bpt_status cut_by_speed(bpt_job *job, uint64_t *begin, uint64_t *end) {
    double *speeds = NULL;
    uint64_t *cut = NULL;
    bpt_status status = BPT_NEW("speeds", job->n_ranks, &speeds);
    if (status == BPT_OK) status = BPT_NEW("cuts of the batch", job->n_ranks + 1u, &cut);
    status = bpt_comm_agree(job->comm, status);
    if (status == BPT_OK) status = bpt__job_speeds(job, speeds);
    if (status == BPT_OK) {
        bpt_batch_cut(speeds, job->n_ranks, job->batch_all, cut);
        *begin = cut[job->rank];
        *end = cut[job->rank + 1];
        if (job->rank == 0) say_cut(job, cut, speeds);
    }
    bpt_free(cut);
    bpt_free(speeds);
    return status;
}

/* allreduce with --partition idpa: which part of each batch is this rank's. A job that goes on bit
 * for bit keeps to it. */
static bpt_status settle_batch(bpt_job *job, const bpt_checkpoint *c) {
    if (job->update != BPT_UPDATE_ALLREDUCE || job->partition != BPT_PARTITION_IDPA) return BPT_OK;
    uint64_t begin = 0, end = 0;
    if (c && c->exact) {
        begin = c->first_sample;
        end = begin + c->batch;
    } else {
        BPT_TRY(cut_by_speed(job, &begin, &end));
    }
    job->first_sample = begin;
    bpt_status status = BPT_OK;
    if (end - begin != job->batch) {
        job->batch = (uint32_t)(end - begin);
        status = bpt__job_open_network(job);
    }
    return bpt_comm_agree(job->comm, status);
}

bpt_status bpt__job_settle(bpt_job *job, bool *found, bpt_checkpoint *c) {
    BPT_TRY(measure_solo(job));
    BPT_TRY(settle_update(job, found, c));
    settle_rounds(job, *found ? c : NULL);
    BPT_TRY(settle_batch(job, *found ? c : NULL));
    return bpt_layer_choice_make(job, *found ? c : NULL);
}
