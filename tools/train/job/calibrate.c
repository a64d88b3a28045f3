#include "tools/train/job/calibrate.h"

#include "base/clock.h"
#include "outer/comm/watch.h"
#include "tools/synthetic.h"

/* Steps that do not count: the first touches memory for the first time; of a device's the second is
 * run part by part, and the third is captured. */
enum { N_WARM = 1, N_WARM_OF_DEVICE = 3 };

/* @param last else the batch comes again: a device has it brought meanwhile, as in training */
static bpt_status step(bpt_job *job, const bpt_synthetic *batch, bool last) {
    bpt_batch_result result;
    if (job->device) bpt_network_set_next(job->network, last ? NULL : batch->input);
    return bpt_network_gradient(job->network, batch->input, batch->labels, (float)job->batch,
                                &result);
}

static bpt_status time_steps(bpt_job *job, const bpt_synthetic *batch, double least_s,
                             double *images_per_s) {
    const int n_warm = job->device ? N_WARM_OF_DEVICE : N_WARM;
    for (int i = 0; i < n_warm; i++) BPT_TRY(step(job, batch, false));
    const uint64_t start_ns = bpt_clock_ns();
    double seconds = 0;
    uint64_t n = 0;
    for (; n == 0 || seconds < least_s; n++) {
        BPT_TRY(step(job, batch, false));
        seconds = bpt_clock_seconds_since(start_ns);
    }
    *images_per_s = (double)(n * job->batch) / seconds;
    return job->device ? step(job, batch, true) : BPT_OK; /* nothing is brought from it any more */
}

static bpt_status prepare(bpt_job *job, bpt_synthetic *batch) {
    const uint64_t seed = (uint64_t)job->options->seed;
    BPT_TRY(bpt_synthetic_make(job->model, job->batch, seed, bpt_device_takes_images(job->device),
                               batch));
    bpt_segments_initialise(&job->model->segments, seed, job->flat);
    return bpt_network_set(job->network, BPT_VECTOR_WEIGHTS, job->flat);
}

bpt_status bpt_calibrate(bpt_job *job, double *images_per_s) {
    bpt_synthetic batch = {0};
    double mine = 0, least_s = job->options->calibrate;
    bpt_status status = BPT_OK;
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, &least_s, sizeof least_s)); /* all do or none does */
    if (least_s > 0) {
        bpt_comm_doing(job->comm, "the calibration");
        const bool trains = !bpt_job_is_server(job);
        status = bpt_comm_agree(job->comm, trains ? prepare(job, &batch) : BPT_OK);
        if (status == BPT_OK)
            status = bpt_comm_agree(job->comm,
                                    trains ? time_steps(job, &batch, least_s, &mine) : BPT_OK);
        bpt_synthetic_release(&batch);
        bpt_comm_doing(job->comm, "the start");
    }
    BPT_TRY(status);
    return bpt_comm_allgather(job->comm, &mine, sizeof mine, images_per_s);
}
