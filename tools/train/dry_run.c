#include "tools/train/dry_run.h"

#include "tools/train/job_parts.h"
#include "tools/train/memory_plan.h"
#include "tools/train/train_model.h"

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
    const bpt_augment augment = bpt_train_augment(o);
    bpt_status status = bpt_augment_check(&augment, job.model->input.h, job.model->input.w);
    if (status == BPT_OK) status = bpt_memory_plan_make(&job, &plan);
    if (status == BPT_OK) {
        bpt_options_print(&bpt_train_command, o, stdout);
        printf("\n");
        bpt_model_print(job.model, stdout);
        printf("\n");
        bpt_memory_plan_print(&plan, stdout);
    }
    bpt_model_free(job.model);
    return status;
}
