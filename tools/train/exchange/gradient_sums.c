#include "tools/train/exchange/gradient_sums.h"

#include "base/memory.h"
#include "tools/train/exchange/gradient_buckets.h"

#include <pthread.h>

struct bpt_gradient_sums {
    bpt_network *network;
    bpt_reduction *reduction;
    uint32_t n_buckets;
    pthread_mutex_t mutex; /* guards what is below */
    pthread_cond_t over;   /* all buckets are summed, or one has failed */
    uint32_t left;         /* of this step, not yet summed */
    bpt_error error;       /* .status is BPT_OK: none */
};

size_t bpt_gradient_sums_bytes(const bpt_model *model, uint32_t n_ranks) {
    const size_t n = bpt_model_learned_elements(model);
    return bpt_reduction_bytes(n, bpt_gradient_buckets_most(n), n_ranks);
}

/* ---- whoever computes gradients, and the MPI thread ---- */

static void take(void *context, uint32_t bucket) {
    bpt_gradient_sums *s = context;
    bpt_reduction_give(s->reduction, bucket);
}

static void summed(void *context, uint32_t bucket, bpt_status status) {
    bpt_gradient_sums *s = context;
    (void)bucket;
    pthread_mutex_lock(&s->mutex);
    if (status != BPT_OK && s->error.status == BPT_OK) {
        bpt_error_get(&s->error);
        s->error.status = status;
    }
    s->left--;
    if (s->left == 0 || status != BPT_OK) pthread_cond_signal(&s->over);
    pthread_mutex_unlock(&s->mutex);
}

/* ---- training thread ---- */

void bpt_gradient_sums_begin(bpt_gradient_sums *s) {
    pthread_mutex_lock(&s->mutex);
    s->left = s->n_buckets;
    pthread_mutex_unlock(&s->mutex);
}

bpt_status bpt_gradient_sums_wait(bpt_gradient_sums *s) {
    bpt_reduction_wait_begin(s->reduction);
    pthread_mutex_lock(&s->mutex);
    while (s->left > 0 && s->error.status == BPT_OK) pthread_cond_wait(&s->over, &s->mutex);
    const bpt_status status = s->error.status;
    pthread_mutex_unlock(&s->mutex);
    bpt_reduction_wait_end(s->reduction);
    if (status != BPT_OK) return bpt_error_put(&s->error);
    return bpt_network_set_learned(s->network, BPT_VECTOR_GRADIENTS,
                                   bpt_reduction_vector(s->reduction));
}

bpt_reduction_stats bpt_gradient_sums_stats(const bpt_gradient_sums *s) {
    bpt_reduction_stats stats;
    bpt_reduction_stats_get(s->reduction, &stats);
    return stats;
}

/* ---- life ---- */

static bpt_status connect(bpt_gradient_sums *s, bpt_comm *comm, const size_t *begin) {
    const bpt_reduction_options options = {
        .n_buckets = s->n_buckets, .begin = begin, .summed = summed, .context = s};
    BPT_TRY(bpt_reduction_create(comm, &options, &s->reduction));
    const bpt_gradient_parts parts = {.n = s->n_buckets,
                                      .begin = begin,
                                      .flat = bpt_reduction_vector(s->reduction),
                                      .take = take,
                                      .context = s};
    return bpt_comm_agree(comm, bpt_network_hand_out(s->network, &parts));
}

bpt_status bpt_gradient_sums_open(bpt_comm *comm, const bpt_model *model, bpt_network *network,
                                  bpt_gradient_sums **sums) {
    bpt_gradient_sums *s = NULL;
    size_t *begin = NULL;
    *sums = NULL;
    bpt_status status = BPT_NEW("sums of gradients", 1, &s);
    if (status == BPT_OK) {
        pthread_mutex_init(&s->mutex, NULL);
        pthread_cond_init(&s->over, NULL);
        s->network = network;
        *sums = s;
        status = BPT_NEW("buckets", model->segments.n + 1, &begin);
    }
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK) {
        s->n_buckets =
            bpt_gradient_buckets_cut(&model->segments, bpt_model_frozen_segments(model), begin);
        status = connect(s, comm, begin);
    }
    bpt_free(begin);
    return status;
}

void bpt_gradient_sums_close(bpt_gradient_sums *s) {
    if (!s) return;
    (void)bpt_reduction_destroy(s->reduction);
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->mutex);
    bpt_free(s);
}
