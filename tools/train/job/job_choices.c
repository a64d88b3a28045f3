/* What options leave open and what follows from them and the number of ranks. */
#include "base/log.h"
#include "tools/train/data/held_out.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/options/idpa_rounds.h"
#include "tools/train/options/option_uses.h"
#include "tools/train/options/servers.h"
#include "tools/train/options/train_rule.h"

#include <math.h>

static bpt_status choose_modes(bpt_job *job, bpt_update_choice update) {
    const bpt_train_options *o = job->options;
    job->update = bpt_update_resolve(update, job->n_ranks);
    BPT_TRY(bpt_servers_count(o, job->n_ranks, &job->n_servers));
    job->n_workers = job->n_ranks - job->n_servers;
    if (job->update == BPT_UPDATE_LOCAL && job->n_ranks > 1) {
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "--update local trains on one rank, this job has %u", job->n_ranks);
        bpt_hint("choose --update agwu, sgwu, easgd or allreduce");
        return status;
    }
    job->partition = bpt_partition_resolve((bpt_partition_choice)o->partition, job->update);
    return BPT_OK;
}

bool bpt_job_rounds_are_free(const bpt_job *job) {
    return bpt_update_merges(job->update) && job->partition == BPT_PARTITION_IDPA &&
           bpt_idpa_rounds_follow(job->options->idpa_rounds);
}

uint32_t bpt_job_rounds(const bpt_job *job) {
    if (!bpt_update_merges(job->update)) return 0;
    if (job->partition != BPT_PARTITION_IDPA) return 1;
    if (job->rounds > 0) return job->rounds;
    return bpt_idpa_rounds(job->options->idpa_rounds, job->options->epochs, job->n_workers);
}

/* Samples of a worker's step, and where they begin among those of all ranks. */
static bpt_status choose_batch(bpt_job *job) {
    const uint64_t batch = (uint64_t)job->options->batch_size;
    job->batch = (uint32_t)batch;
    job->first_sample = batch * job->rank;
    job->batch_all = batch * job->n_workers;
    if (job->update != BPT_UPDATE_ALLREDUCE) return BPT_OK;
    if (batch < job->n_ranks) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "a batch of %llu sample%s cannot be shared by %u ranks",
                     (unsigned long long)batch, batch == 1 ? "" : "s", job->n_ranks);
        bpt_hint("under allreduce --batch-size is that of all ranks together");
        return status;
    }
    const uint64_t begin = batch * job->rank / job->n_ranks;
    const uint64_t end = batch * (job->rank + 1) / job->n_ranks;
    job->first_sample = begin;
    job->batch = (uint32_t)(end - begin);
    job->batch_all = batch;
    return BPT_OK;
}

static void choose_rate(bpt_job *job) {
    const bpt_train_options *o = job->options;
    job->lr_factor = bpt_train_lr_factor(o, job->update, job->n_workers);
    job->schedule = bpt_train_schedule(o, job->lr_factor);
}

static bpt_status choose(bpt_job *job, bpt_update_choice update) {
    BPT_TRY(choose_modes(job, update));
    BPT_TRY(choose_batch(job));
    choose_rate(job);
    job->terms = bpt_train_terms(job->options, job->update, job->n_workers);
    return BPT_OK;
}

bpt_status bpt_job_choose(bpt_job *job) {
    return choose(job, (bpt_update_choice)job->options->update);
}

bpt_status bpt__job_turn_to(bpt_job *job, bpt_update_choice update) {
    BPT_TRY(choose(job, update));
    BPT_TRY(bpt_job_choose_lengths(job));
    return bpt__job_open_network(job);
}

/* Where a run may end late by a good part of itself. Under sgwu the end is a whole number of
 * exchanges; where nobody waits an answer may take until the next one. */
void bpt__job_warn_late_end(const bpt_job *job) {
    enum { GOOD_PART = 10 };
    const uint64_t every = job->pace.least * job->batch_all;
    const uint64_t total = job->total_samples;
    if (!bpt_update_merges(job->update) || every <= total / GOOD_PART) return;
    if (job->update == BPT_UPDATE_SGWU && total % every == 0) return;
    bpt_warn(
        "a short run: %llu sample%s, and the end is noticed at an exchange, every %llu; it "
        "may come up to %llu samples late%s",
        (unsigned long long)total, total == 1 ? "" : "s", (unsigned long long)every,
        (unsigned long long)(bpt_update_is_async(job->update) ? 2 * every : every),
        job->pace.least > 1 ? ": lower --sync-every" : "");
}

/* One step of all ranks is at most an epoch: a larger one would hold samples twice. */
static bpt_status check_batch(const bpt_job *job) {
    const uint64_t parts = job->update == BPT_UPDATE_ALLREDUCE ? 1 : job->n_workers;
    if (job->batch_all <= job->epoch_samples) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "--batch-size %lld: a step of %u rank%s takes %llu samples, split "
                 "\"%s\" has %llu",
                 (long long)job->options->batch_size, job->n_workers,
                 job->n_workers == 1 ? "" : "s", (unsigned long long)job->batch_all,
                 job->train->name, (unsigned long long)job->epoch_samples);
    if (job->epoch_samples < job->n_workers)
        bpt_hint("use fewer ranks");
    else
        bpt_hint("give --batch-size %llu or less",
                 (unsigned long long)(job->epoch_samples / parts));
    return status;
}

static bpt_pace_run pace_run(const bpt_job *job) {
    return (bpt_pace_run){
        .epoch_samples = job->epoch_samples,
        .total_samples = job->total_samples,
        .batch_all = job->batch_all,
        .n_workers = job->n_workers,
        .shared_momentum = bpt_train_shares_momentum(job->options, job->update, job->n_workers),
    };
}

bpt_status bpt_job_choose_lengths(bpt_job *job) {
    const bpt_train_options *o = job->options;
    job->held_out = bpt_held_out(o, job->update, job->n_workers, job->train->count);
    job->epoch_samples = job->train->count - job->held_out;
    job->total_samples = bpt_train_total_samples(o, job->epoch_samples);
    const double eval_every = round(o->eval_every * (double)job->epoch_samples);
    job->eval_every = o->eval_every > 0 ? (uint64_t)fmax(eval_every, 1.0) : 0;
    job->checkpoint_every = (uint64_t)o->checkpoint_every * job->batch_all;
    BPT_TRY(check_batch(job));
    job->pace = bpt_pace_begin(o->sync_every, pace_run(job));
    const uint32_t rounds = bpt_job_rounds(job);
    return rounds ? bpt_partition_check(job->epoch_samples, job->n_workers, rounds) : BPT_OK;
}
