#include "base/clock.h"
#include "tools/train/loop/train_loop.h"

/* Layers that are placed here are updated while gradients are on their way. */
static bpt_status learn_placed(bpt_job *job, float rate) {
    if (!job->placed) return BPT_OK;
    const uint64_t start_ns = bpt_clock_ns();
    const bpt_status status = bpt_placed_learn(job->placed, rate);
    const uint64_t ns = bpt_clock_ns() - start_ns;
    job->count.step_ns += ns;
    job->count.compute_ns += ns;
    return bpt_job_name_step(job, job->count.steps, status);
}

/* Tells what this rank has done and hears where all are, while gradients are still summed. */
static bpt_status exchange(bpt_job *job, float rate, bpt_reply *reply) {
    const bpt_report report = {
        .samples = job->batch,
        .quality = 1.0,
        .wants = bpt_job_wants(job),
    };
    BPT_TRY(bpt_exchange_push(job->exchange, &report));
    BPT_TRY(learn_placed(job, rate));
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_gradient_sums_wait(job->sums));
    BPT_TRY(bpt_exchange_wait(job->exchange, reply));
    job->count.wait_ns += bpt_clock_ns() - start_ns;
    bpt_step_trace_wait(job->trace, "gradients", start_ns);
    return BPT_OK;
}

bpt_status bpt_train_gradients(bpt_job *job) {
    for (bool over = job->count.progress >= job->total_samples; !over;) {
        bpt_reply reply;
        job->count.unreported = 0; /* progress is that of all ranks, in step */
        const float rate = bpt_job_rate(job);
        BPT_TRY(bpt_job_step(job, true));
        BPT_TRY(exchange(job, rate, &reply));
        BPT_TRY(bpt_job_apply(job, rate));
        bpt_job_note_reply(job, &reply);
        BPT_TRY(bpt_job_report(job));
        if (reply.met && job->placed) BPT_TRY(bpt_placed_gather(job));
        BPT_TRY(bpt_train_meet(job, reply.met, &over));
    }
    return BPT_OK;
}
