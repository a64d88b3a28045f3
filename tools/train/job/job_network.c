/* What a job trains: one network, or its part of one; on a server none. */
#include "tools/train/job/job.h"

bool bpt_job_is_server(const bpt_job *job) {
    return job->rank >= job->n_workers;
}

bpt_learning bpt_job_learning(const bpt_job *job) {
    return bpt_job_is_server(job) ? bpt_train_learning(job->options, job->lr_factor)
                                  : bpt_network_learning(bpt_job_trained(job));
}

bpt_shared_momentum bpt_job_shared_momentum(const bpt_job *job) {
    return bpt_train_shared_momentum(job->options, job->update, job->n_workers,
                                     job->placed != NULL);
}

size_t bpt_job_n_states(const bpt_job *job) {
    return bpt_job_is_server(job) ? 0 : bpt_network_n_states(bpt_job_trained(job));
}

bpt_network *bpt_job_trained(const bpt_job *job) {
    return job->placed ? bpt_placed_head(job->placed) : job->network;
}

const bpt_model *bpt_job_trained_model(const bpt_job *job) {
    return job->placed ? bpt_placed_head_model(job->placed) : job->model;
}

bpt_status bpt_job_set_weights(bpt_job *job, const float *weights) {
    if (bpt_job_is_server(job)) return BPT_OK;
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

uint64_t bpt_job_updates(const bpt_job *job) {
    return bpt_job_is_server(job) ? 0 : bpt_network_updates(bpt_job_trained(job));
}

void bpt_job_set_updates(bpt_job *job, uint64_t n, uint64_t tail) {
    if (bpt_job_is_server(job)) return;
    if (job->placed)
        bpt_placed_set_updates(job->placed, n, tail);
    else
        bpt_network_set_updates(job->network, n);
}
