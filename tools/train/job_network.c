/* What a job trains: one network, or its part of one. */
#include "tools/train/job.h"

bpt_network *bpt_job_trained(const bpt_job *job) {
    return job->placed ? bpt_placed_head(job->placed) : job->network;
}

const bpt_model *bpt_job_trained_model(const bpt_job *job) {
    return job->placed ? bpt_placed_head_model(job->placed) : job->model;
}

bpt_status bpt_job_set_weights(bpt_job *job, const float *weights) {
    BPT_TRY(bpt_network_set(job->network, BPT_VECTOR_WEIGHTS, weights));
    return job->placed ? bpt_placed_set(job->placed, BPT_VECTOR_WEIGHTS, weights) : BPT_OK;
}

bpt_status bpt_job_get(bpt_job *job, bpt_vector which, float *flat) {
    if (job->placed && which != BPT_VECTOR_WEIGHTS) return bpt_placed_get(job->placed, which, flat);
    return bpt_network_get(job->network, which, flat);
}

bpt_status bpt_job_set_state(bpt_job *job, bpt_vector which, const float *flat) {
    if (job->placed) return bpt_placed_set(job->placed, which, flat);
    return bpt_network_set(job->network, which, flat);
}

void bpt_job_set_updates(bpt_job *job, uint64_t n, uint64_t tail) {
    if (job->placed)
        bpt_placed_set_updates(job->placed, n, tail);
    else
        bpt_network_set_updates(job->network, n);
}
