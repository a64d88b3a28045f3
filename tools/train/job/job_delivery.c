/* How samples come to the ranks that do not have the dataset. */
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/train/job/job_parts.h"

#include <math.h>
#include <stdio.h>

bpt_record_range bpt_job_test_part(const bpt_job *job) {
    const uint64_t count = job->test->count;
    const uint64_t first = count * job->rank / job->n_workers;
    const uint64_t end = count * (job->rank + 1) / job->n_workers;
    return (bpt_record_range){.first = (uint32_t)first, .count = (uint32_t)(end - first)};
}

static bpt_delivery_options options_of(const bpt_job *job) {
    const bpt_shape in = job->shape.input;
    const bool server = bpt_job_is_server(job);
    const uint64_t done = job->count.progress, total = job->total_samples;
    return (bpt_delivery_options){
        .rank = job->rank,
        .dataset = job->dataset,
        .record_bytes = (size_t)(in.c * in.h * in.w),
        .scratch = job->scratch,
        .train = job->train,
        .test = job->test,
        .identity = job->scratch_identity,
        .test_part = server ? (bpt_record_range){0} : bpt_job_test_part(job),
        .shares = job->shares,
        .order = bpt_train_order(job->options),
        .batch_all = job->batch_all,
        .first_sample = job->first_sample,
        .steps = done < total ? (total - done + job->batch_all - 1) / job->batch_all : 0,
        .batch = job->batch,
        .prefetch = (uint32_t)job->options->prefetch,
        .start = server ? (bpt_sampler_state){0} : bpt_feed_state(job->feed),
    };
}

/* What a rank tells the others while samples travel. */
typedef struct {
    uint64_t n_kept;
    uint64_t n_found; /* that were there before */
    uint64_t waits;   /* 1: for samples */
} arrival;

/* @param all scratch, shape [n_ranks]
 * @param[out] sum over all ranks */
static bpt_status compare(bpt_job *job, const arrival *mine, arrival *all, arrival *sum) {
    *sum = (arrival){0};
    BPT_TRY(bpt_comm_allgather(job->comm, mine, sizeof *mine, all));
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        sum->n_kept += all[r].n_kept;
        sum->n_found += all[r].n_found;
        sum->waits += all[r].waits;
    }
    return BPT_OK;
}

/* The ranks compare notes now and then. So those that have what they need do not take the others,
 * whose samples still come, for ones that hang; where nothing has come to anybody since they last
 * did, waiting has no end, and the watch will say for whom. */
static bpt_status await_first(bpt_job *job, arrival *all, arrival *sum) {
    const double a_moment_s = 1;
    uint64_t before = 0;
    bool moves = true;
    for (;;) {
        arrival mine = {.n_found = bpt_delivery_found(job->delivery)};
        bool here = true;
        const bpt_status status = bpt_delivery_await_first(
            job->delivery, moves ? a_moment_s : INFINITY, &mine.n_kept, &here);
        mine.waits = !here;
        BPT_TRY(bpt_comm_agree(job->comm, status));
        BPT_TRY(bpt__job_stop_if_told(job));
        BPT_TRY(compare(job, &mine, all, sum));
        if (sum->waits == 0) return BPT_OK;
        moves = sum->n_kept > before;
        before = sum->n_kept;
    }
}

static void say_arrivals(const arrival *sum) {
    char before[80] = "";
    if (sum->n_found > 0)
        snprintf(before, sizeof before, "; %llu from before are not sent again",
                 (unsigned long long)sum->n_found);
    bpt_info("%llu samples have come from rank 0 to begin with%s", (unsigned long long)sum->n_kept,
             before);
}

bpt_status bpt__job_open_delivery(bpt_job *job) {
    if (!bpt_job_scatters(job)) return BPT_OK;
    const bpt_delivery_options options = options_of(job);
    arrival *all = NULL, sum = {0};
    BPT_TRY(bpt_delivery_open(job->comm, &options, &job->delivery));
    bpt_status status = BPT_NEW("arrivals", job->n_ranks, &all);
    status = bpt_comm_agree(job->comm, status);
    if (status == BPT_OK) {
        bpt_comm_doing(job->comm, "the first samples");
        status = await_first(job, all, &sum);
        bpt_comm_doing(job->comm, "the start");
    }
    bpt_free(all);
    BPT_TRY(status);
    say_arrivals(&sum);
    bpt_delivery_attach(job->delivery, job->feed);
    return BPT_OK;
}
