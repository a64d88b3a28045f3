#include "tools/train/loop/train_loop.h"

/* What is due after this step: the coordinator's part, where there is none. */
static uint32_t due(bpt_job *job) {
    uint32_t reasons = bpt_job_wants(job);
    if (job->count.progress >= job->total_samples) reasons |= BPT_MEET_END;
    if (job->count.progress >= job->next_eval) {
        reasons |= BPT_MEET_EVAL;
        job->next_eval = bpt_coordinator_next(job->count.progress, job->eval_every);
    }
    if (job->count.progress >= job->next_checkpoint) {
        reasons |= BPT_MEET_CHECKPOINT;
        job->next_checkpoint = bpt_coordinator_next(job->count.progress, job->checkpoint_every);
    }
    return reasons;
}

bpt_status bpt_train_local(bpt_job *job) {
    for (bool over = job->count.progress >= job->total_samples; !over;) {
        BPT_TRY(bpt_job_step(job, false));
        job->count.progress += job->count.unreported;
        job->count.unreported = 0;
        BPT_TRY(bpt_job_report(job));
        BPT_TRY(bpt_train_meet(job, due(job), &over));
    }
    return BPT_OK;
}
