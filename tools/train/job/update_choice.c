#include "tools/train/job/update_choice.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/train/job/batch_cut.h"

#include <string.h>

/* Of the sum of the ranks' speeds: what allreduce has to come to. */
static const double enough = 0.8;

bpt_step_costs bpt_allreduce_costs(const double *images_per_s, uint32_t n_ranks,
                                   const uint64_t *cut, double exchange_s) {
    double compute_s = 0, sum = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        const double seconds = (double)(cut[r + 1] - cut[r]) / images_per_s[r];
        if (seconds > compute_s) compute_s = seconds;
        sum += images_per_s[r];
    }
    return (bpt_step_costs){
        .compute_s = compute_s,
        .exchange_s = exchange_s,
        .part = (double)cut[n_ranks] / (compute_s + exchange_s) / sum,
    };
}

bool bpt_prefers_allreduce(const bpt_step_costs *costs) {
    return costs->part >= enough;
}

/* @param[out] seconds until every rank has all the weights of rank 0: the longest of all ranks */
static bpt_status time_broadcast(bpt_job *job, double *seconds) {
    const size_t bytes = bpt_model_learned_elements(job->model) * sizeof *job->flat;
    double *all;
    BPT_TRY(bpt_comm_barrier(job->comm));
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, job->flat, bytes));
    const double mine = bpt_clock_seconds_since(start_ns);
    BPT_TRY(bpt_comm_table(job->comm, "times of ranks", &mine, sizeof mine, (void **)&all));
    *seconds = 0;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (all[r] > *seconds) *seconds = all[r];
    bpt_free(all);
    return BPT_OK;
}

/* A sum of gradients takes every rank's weights out but for its own shard, and the other shards in,
 * and as a host as much: to and fro at once, 2 (m-1)/m times all weights each way. A broadcast
 * takes them once. The first opens connections and does not count. */
static bpt_status measure_exchange(bpt_job *job, double *seconds) {
    memset(job->flat, 0, job->model->segments.n_elements * sizeof *job->flat);
    BPT_TRY(time_broadcast(job, seconds));
    BPT_TRY(time_broadcast(job, seconds));
    *seconds *= 2.0 * (job->n_ranks - 1) / job->n_ranks;
    return BPT_OK;
}

/* As allreduce would: job->partition is that of agwu still, where auto stands for idpa. */
static bool cuts_by_speed(const bpt_job *job) {
    return job->options->partition == BPT_PARTITION_IDPA;
}

/* @param batch at least n_ranks
 * @param[out] cut shape [n_ranks + 1], as for bpt_batch_cut() */
static void cut_batch(const bpt_job *job, uint64_t batch, uint64_t *cut) {
    if (cuts_by_speed(job)) {
        bpt_batch_cut(job->solo, job->n_ranks, batch, cut);
        return;
    }
    for (uint32_t r = 0; r <= job->n_ranks; r++) cut[r] = batch * r / job->n_ranks;
}

static void say(const bpt_job *job, const bpt_step_costs *costs) {
    bpt_info(
        "--update auto: %s, since allreduce would come to %.2f of the sum of the ranks' speeds, "
        "%s %.2f: its steps would take %.3g ms on the slowest rank%s, and %.3g ms to exchange",
        bpt_prefers_allreduce(costs) ? "allreduce" : "agwu", costs->part,
        bpt_prefers_allreduce(costs) ? "which is at least" : "which is less than", enough,
        costs->compute_s * 1e3, cuts_by_speed(job) ? ", each batch cut by speed" : "",
        costs->exchange_s * 1e3);
    for (uint32_t r = 0; r < job->n_ranks; r++)
        bpt_debug("rank %u on %s alone: %.0f images/s", r, bpt_comm_host(job->comm, r),
                  job->solo[r]);
}

/* @param[out] costs of allreduce */
static bpt_status measure_costs(bpt_job *job, uint64_t batch, bpt_step_costs *costs) {
    double exchange_s;
    uint64_t *cut = NULL;
    bpt_status status = BPT_NEW("cuts of the batch", job->n_ranks + 1u, &cut);
    status = bpt_comm_agree(job->comm, status);
    if (status == BPT_OK) status = measure_exchange(job, &exchange_s);
    if (status == BPT_OK) {
        cut_batch(job, batch, cut);
        *costs = bpt_allreduce_costs(job->solo, job->n_ranks, cut, exchange_s);
    }
    bpt_free(cut);
    return status;
}

bpt_status bpt_update_choose(bpt_job *job, bpt_update_choice *update) {
    const uint64_t batch = (uint64_t)job->options->batch_size;
    bpt_step_costs costs;
    *update = BPT_UPDATE_AGWU;
    if (batch < job->n_ranks) {
        bpt_info("--update auto: agwu, since allreduce cannot share a batch of %llu by %u ranks",
                 (unsigned long long)batch, job->n_ranks);
        return BPT_OK;
    }
    bpt_comm_doing(job->comm, "the choice of --update");
    BPT_TRY(measure_costs(job, batch, &costs));
    bpt_comm_doing(job->comm, "the start");
    if (job->rank == 0) say(job, &costs);
    if (bpt_prefers_allreduce(&costs)) *update = BPT_UPDATE_ALLREDUCE;
    return BPT_OK;
}
