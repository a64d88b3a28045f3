#include "tools/train/update_choice.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/watch.h"

#include <string.h>

/* Of the sum of the ranks' speeds: what allreduce has to come to. */
static const double enough = 0.8;

bpt_step_costs bpt_allreduce_costs(const double *images_per_s, uint32_t n_ranks, uint64_t batch,
                                   double exchange_s) {
    double least = images_per_s[0], sum = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        if (images_per_s[r] < least) least = images_per_s[r];
        sum += images_per_s[r];
    }
    const double compute_s = (double)batch / n_ranks / least;
    return (bpt_step_costs){
        .compute_s = compute_s,
        .exchange_s = exchange_s,
        .part = (double)batch / (compute_s + exchange_s) / sum,
    };
}

bool bpt_prefers_allreduce(const bpt_step_costs *costs) {
    return costs->part >= enough;
}

/* @param[out] seconds until every rank has all the weights of rank 0: the longest of all ranks */
static bpt_status time_broadcast(bpt_job *job, double *seconds) {
    const size_t bytes = job->model->segments.n_elements * sizeof *job->flat;
    double *all = NULL;
    BPT_TRY(bpt_comm_agree(job->comm, BPT_NEW("times of ranks", job->n_ranks, &all)));
    bpt_status status = bpt_comm_barrier(job->comm);
    const uint64_t start_ns = bpt_clock_ns();
    if (status == BPT_OK) status = bpt_comm_broadcast(job->comm, 0, job->flat, bytes);
    const double mine = bpt_clock_seconds_since(start_ns);
    if (status == BPT_OK) status = bpt_comm_allgather(job->comm, &mine, sizeof mine, all);
    *seconds = 0;
    for (uint32_t r = 0; status == BPT_OK && r < job->n_ranks; r++)
        if (all[r] > *seconds) *seconds = all[r];
    bpt_free(all);
    return status;
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

static void say(const bpt_job *job, const bpt_step_costs *costs) {
    bpt_info(
        "--update auto: %s, since allreduce would come to %.2f of the sum of the ranks' speeds, "
        "%s %.2f: its steps would take %.3g ms on the slowest rank, and %.3g ms to exchange",
        bpt_prefers_allreduce(costs) ? "allreduce" : "agwu", costs->part,
        bpt_prefers_allreduce(costs) ? "which is at least" : "which is less than", enough,
        costs->compute_s * 1e3, costs->exchange_s * 1e3);
    for (uint32_t r = 0; r < job->n_ranks; r++)
        bpt_debug("rank %u on %s alone: %.0f images/s", r, bpt_comm_host(job->comm, r),
                  job->solo[r]);
}

bpt_status bpt_update_choose(bpt_job *job, bpt_update_choice *update) {
    double exchange_s;
    bpt_comm_doing(job->comm, "the choice of --update");
    BPT_TRY(measure_exchange(job, &exchange_s));
    bpt_comm_doing(job->comm, "the start");
    const bpt_step_costs costs = bpt_allreduce_costs(
        job->solo, job->n_ranks, (uint64_t)job->options->batch_size, exchange_s);
    if (job->rank == 0) say(job, &costs);
    *update = bpt_prefers_allreduce(&costs) ? BPT_UPDATE_ALLREDUCE : BPT_UPDATE_AGWU;
    return BPT_OK;
}
