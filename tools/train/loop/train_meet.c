#include "base/clock.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/loop/train_loop.h"

/* Where workers meet for a reason servers are told of it, and of how far the job is. */
static bpt_status tell_servers(bpt_job *job, uint32_t *reasons) {
    struct {
        uint64_t progress, reasons;
    } told = {job->count.progress, *reasons};
    if (job->n_servers == 0) return BPT_OK;
    if (!bpt_job_is_server(job))
        return *reasons ? bpt_comm_broadcast(job->comm, 0, &told, sizeof told) : BPT_OK;
    BPT_TRY(bpt_exchange_serve(job->exchange, 0, &told, sizeof told));
    job->count.progress = told.progress;
    *reasons = (uint32_t)told.reasons;
    return BPT_OK;
}

/* @param asked by somebody: then a checkpoint that cannot be made ends the job */
static bpt_status save(bpt_job *job, bool asked) {
    const uint64_t start_ns = bpt_clock_ns();
    const bpt_status status = bpt_checkpoint_save(job);
    if (status != BPT_OK) BPT_TRY(asked ? status : bpt_checkpoint_forgo(job, status));
    const uint64_t now_ns = bpt_clock_ns();
    bpt_checkpoint_clock_put_off(&job->checkpoint_clock, now_ns, now_ns - start_ns);
    return BPT_OK;
}

bpt_status bpt_train_meet(bpt_job *job, uint32_t reasons, bool *over) {
    BPT_TRY(tell_servers(job, &reasons));
    *over = (reasons & BPT_MEET_END) != 0;
    /* The end has its own evaluation, and needs no checkpoint. */
    if (*over) return bpt_job_report_rest(job);
    bool stop = (reasons & BPT_MEET_STOP) != 0;
    if (reasons & BPT_MEET_EVAL) {
        job->eval_due = true;
        if (!stop) BPT_TRY(bpt_job_evaluate(job, true, &stop));
    }
    if (stop) BPT_TRY(bpt_job_report_rest(job));
    const bool asked = stop || reasons & BPT_MEET_CHECKPOINT;
    if (asked || reasons & BPT_MEET_CHECKPOINT_IF_ROOM) {
        BPT_TRY(save(job, asked));
        bpt_job_draw(job, stop);
    }
    if (!stop) return BPT_OK;
    bpt_train_say_ranks(job);
    const bpt_status status =
        bpt_fail(BPT_ESTOPPED, "stopped at epoch %.2f, checkpoint saved", bpt_job_epoch(job));
    bpt_hint("go on with the same command and --resume auto%s",
             job->options->force ? " in place of --force" : "");
    return status;
}

bpt_status bpt_train_serve(bpt_job *job) {
    for (bool over = job->count.progress >= job->total_samples; !over;)
        BPT_TRY(bpt_train_meet(job, 0, &over));
    return BPT_OK;
}

bpt_status bpt_train_catch_up(bpt_job *job) {
    bool over;
    if (!job->eval_due || job->count.progress >= job->total_samples) return BPT_OK;
    return bpt_train_meet(job, BPT_MEET_EVAL, &over);
}
