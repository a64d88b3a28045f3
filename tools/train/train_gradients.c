#include "base/clock.h"
#include "tools/train/train_loop.h"

/* Sends this rank's part of the gradient and sets the sum of all. */
static bpt_status exchange_gradient(bpt_job *job, bpt_reply *reply) {
    float *const gradient = bpt_exchange_outbox(job->exchange);
    BPT_TRY(bpt_network_get(bpt_job_trained(job), BPT_VECTOR_GRADIENTS, gradient));
    const bpt_report report = {
        .samples = job->batch,
        .quality = 1.0,
        .wants = bpt_train_wants(),
    };
    BPT_TRY(bpt_exchange_push(job->exchange, &report));
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_exchange_wait(job->exchange, reply));
    job->count.wait_ns += bpt_clock_ns() - start_ns;
    bpt_step_trace_wait(job->trace, "gradients", start_ns);
    return bpt_network_set(bpt_job_trained(job), BPT_VECTOR_GRADIENTS, reply->values);
}

bpt_status bpt_train_gradients(bpt_job *job) {
    for (bool over = job->count.progress >= job->total_samples; !over;) {
        bpt_reply reply;
        job->count.unreported = 0; /* progress is that of all ranks, in step */
        const float rate = bpt_job_rate(job);
        BPT_TRY(bpt_job_step(job, true));
        BPT_TRY(exchange_gradient(job, &reply));
        BPT_TRY(bpt_job_apply(job, rate));
        bpt_job_note_reply(job, &reply);
        BPT_TRY(bpt_job_report(job));
        if (reply.met && job->placed) BPT_TRY(bpt_placed_gather(job));
        BPT_TRY(bpt_train_meet(job, reply.met, &over));
    }
    return BPT_OK;
}
