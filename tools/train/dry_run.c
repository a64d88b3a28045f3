#include "tools/train/dry_run.h"

#include "tools/shaped_model.h"
#include "tools/train/job_parts.h"
#include "tools/train/layer_choice.h"
#include "tools/train/memory_plan.h"
#include "tools/train/rank_threads.h"
#include "tools/train/tuning.h"

#include <inttypes.h>

static void print_job(const bpt_job *job) {
    bpt_options_print(&bpt_train_command, job->options, stdout);
    printf("\n");
    bpt_model_print(job->model, stdout);
    printf("\n");
}

static bpt_status print_limit(const bpt_job *job, const bpt_memory_plan *plan) {
    const size_t limit = bpt_memory_plan_limit(job);
    uint64_t batch;
    if (plan->total <= limit) return BPT_OK;
    BPT_TRY(bpt_memory_plan_largest(job, plan, limit, &batch));
    printf("more than the %.1f MB of this machine%s; the largest that fits: --batch-size %" PRIu64
           "\n",
           (double)limit * 1e-6, job->ranks_on_host > 1 ? " for each rank on it" : "", batch);
    return BPT_OK;
}

/* With a layer named from which on one rank computes for all: of that rank too. Speeds are measured
 * with the whole network, so that has to fit as well.
 * @param[in,out] plan of a rank with the whole network; of what takes the most */
static bpt_status print_parts(bpt_job *job, bpt_memory_plan *plan) {
    bpt_memory_plan parts;
    for (int host = 0; host < 2; host++) {
        job->parting.host = host;
        BPT_TRY(bpt_memory_plan_make(job, &parts));
        if (host) printf("\n");
        bpt_memory_plan_print(&parts, stdout);
    }
    job->parting.is = parts.total > plan->total;
    if (job->parting.is) *plan = parts;
    return BPT_OK;
}

/* Whatever the run would refuse for its dataset's or its input's sake is refused here. */
static bpt_status open_model(bpt_job *job) {
    const bpt_augment augment = bpt_train_augment(job->options);
    if (job->options->data) {
        BPT_TRY(bpt__job_open_data(job));
        return bpt__job_load_model(job);
    }
    const bpt_train_options *o = job->options;
    const bpt_shaped_model shaped = {o->model, NULL, o->input_size, o->classes};
    BPT_TRY(bpt_shaped_model_load(&shaped, &job->model));
    return bpt_augment_check(&augment, (uint32_t)job->model->input.h,
                             (uint32_t)job->model->input.w);
}

bpt_status bpt_train_dry_run(const bpt_train_options *o, uint32_t n_ranks, uint32_t on_host) {
    bpt_job job = {
        .options = o,
        .rank = n_ranks - 1, /* of shares that are not quite equal the last is the largest */
        .n_ranks = n_ranks,
        .ranks_on_host = on_host,
        .n_threads = bpt_rank_threads_expected((unsigned)o->threads, on_host),
    };
    bpt_memory_plan plan;
    BPT_TRY(bpt__job_choose(&job));
    bpt_status status = open_model(&job);
    if (status == BPT_OK) status = bpt_layer_choice_check(o, job.model);
    if (status == BPT_OK)
        status =
            bpt_tuning_use(o, job.model, job.batch, bpt_rank_threads_expected(0, on_host), NULL);
    if (status == BPT_OK) bpt_tuning_say(o);
    if (status == BPT_OK) status = bpt_memory_plan_make(&job, &plan);
    if (status == BPT_OK) {
        print_job(&job);
        job.parting.is = bpt_layer_choice_is_named(&job, &job.parting.border);
        if (job.parting.is)
            status = print_parts(&job, &plan);
        else
            bpt_memory_plan_print(&plan, stdout);
    }
    if (status == BPT_OK) status = print_limit(&job, &plan);
    bpt_model_free(job.model);
    bpt__job_close_data(&job);
    return status;
}
