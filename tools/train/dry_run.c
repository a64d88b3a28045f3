#include "tools/train/dry_run.h"

#include "tools/train/job_parts.h"
#include "tools/train/memory_plan.h"
#include "tools/train/train_model.h"

#include <inttypes.h>

static void print_plan(const bpt_job *job, const bpt_memory_plan *plan) {
    bpt_options_print(&bpt_train_command, job->options, stdout);
    printf("\n");
    bpt_model_print(job->model, stdout);
    printf("\n");
    bpt_memory_plan_print(plan, stdout);
}

static bpt_status print_limit(const bpt_job *job, const bpt_memory_plan *plan) {
    const size_t limit = bpt_memory_of_machine(1);
    uint64_t batch;
    if (plan->total <= limit) return BPT_OK;
    BPT_TRY(bpt_memory_plan_largest(job, plan, limit, &batch));
    printf("more than the %.1f MB of this machine; the largest that fits: --batch-size %" PRIu64
           "\n",
           (double)limit * 1e-6, batch);
    return BPT_OK;
}

bpt_status bpt_train_dry_run(const bpt_train_options *o, uint32_t n_ranks) {
    bpt_job job = {
        .options = o,
        .rank = n_ranks - 1, /* of shares that are not quite equal the last is the largest */
        .n_ranks = n_ranks,
        .n_threads = o->threads ? (unsigned)o->threads : bpt_pool_allowed_cores(),
    };
    bpt_memory_plan plan;
    BPT_TRY(bpt__job_choose(&job));
    BPT_TRY(bpt_train_load_model(o, &job.model));
    bpt_status status = bpt_memory_plan_make(&job, &plan);
    if (status == BPT_OK) {
        print_plan(&job, &plan);
        status = print_limit(&job, &plan);
    }
    bpt_model_free(job.model);
    return status;
}
