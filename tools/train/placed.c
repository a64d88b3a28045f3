#include "tools/train/placed.h"

#include "base/clock.h"
#include "base/memory.h"
#include "inner/model_part.h"
#include "inner/network_border.h"
#include "tools/train/job.h"

#include <string.h>

struct bpt_placed {
    bpt_comm *comm;
    uint32_t rank, host;
    size_t border;
    size_t n_head, n; /* elements of the head, of the model */
    bpt_model *head_model, *tail_model;
    bpt_network *head, *tail; /* tail: NULL but on the host */
    uint64_t n_samples;       /* of a step of all ranks */
    bpt_crossing *crossing;
};

/* ---- life ---- */

static bool hosts(const bpt_placed *p) {
    return p->rank == p->host;
}

static bpt_status make_networks(bpt_placed *p, const bpt_job *job) {
    const bpt_value_type type = bpt_train_activations(job->options);
    const bpt_learning learning = bpt_train_learning(job->options);
    BPT_TRY(bpt_model_part(job->model, p->border, BPT_MODEL_HEAD, &p->head_model));
    BPT_TRY(bpt_model_part(job->model, p->border, BPT_MODEL_TAIL, &p->tail_model));
    p->n_head = p->head_model->segments.n_elements;
    BPT_TRY(bpt_network_create(p->head_model, job->batch, type, learning, job->pool, &p->head));
    if (!hosts(p)) return BPT_OK;
    return bpt_network_create(p->tail_model, (int64_t)p->n_samples, type, learning, job->pool,
                              &p->tail);
}

/* The network that was there makes room first. */
static bpt_status make_parts(bpt_placed *p, bpt_job *job) {
    bpt_network_free(job->network);
    job->network = NULL;
    BPT_TRY(make_networks(p, job));
    return bpt_network_create_forward(job->model, job->batch, bpt_train_activations(job->options),
                                      job->pool, &job->network);
}

/* What ranks may not have in common. */
typedef struct {
    uint64_t samples, value_bytes;
} own_side;

static bpt_status connect(bpt_placed *p, const bpt_job *job, own_side *sides, uint64_t *first) {
    const bpt_border here = bpt_network_border(p->head);
    const own_side mine = {job->batch, here.bytes / job->batch};
    BPT_TRY(bpt_comm_allgather(p->comm, &mine, sizeof mine, sides));
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        first[r + 1] = first[r] + sides[r].samples;
        if (sides[r].value_bytes == sides[0].value_bytes) continue;
        const bpt_status status =
            bpt_fail(BPT_EUSAGE,
                     "rank %u on %s has activations of another type than rank 0: no network "
                     "can be in parts on both",
                     r, bpt_comm_host(p->comm, r));
        bpt_hint("add --precision fp32");
        return status;
    }
    const bpt_crossing_options options = {
        .host = p->host,
        .value_bytes = mine.value_bytes,
        .first = first,
        .values = here.values,
        .gradients = here.gradient,
        .all_gradients = p->tail ? bpt_network_border(p->tail).gradient : NULL,
    };
    return bpt_crossing_create(p->comm, &options, &p->crossing);
}

static bpt_status open_crossing(bpt_placed *p, const bpt_job *job) {
    own_side *sides = NULL;
    uint64_t *first = NULL;
    bpt_status status = BPT_NEW("sides of the border", job->n_ranks, &sides);
    if (status == BPT_OK) status = BPT_NEW("parts of a step", job->n_ranks + 1, &first);
    status = bpt_comm_agree(p->comm, status);
    if (status == BPT_OK) status = connect(p, job, sides, first);
    bpt_free(first);
    bpt_free(sides);
    return status;
}

bpt_status bpt_placed_open(bpt_job *job, size_t border, uint32_t host) {
    bpt_placed *p = NULL;
    bpt_status status = BPT_NEW("parts of the network", 1, &p);
    if (status == BPT_OK) {
        *p = (bpt_placed){
            .comm = job->comm,
            .rank = job->rank,
            .host = host,
            .border = border,
            .n = job->model->segments.n_elements,
            .n_samples = job->batch_all,
        };
        status = make_parts(p, job);
    }
    status = bpt_comm_agree(job->comm, status);
    if (status == BPT_OK) status = open_crossing(p, job);
    if (status == BPT_OK)
        job->placed = p;
    else
        bpt_placed_close(p);
    return status;
}

void bpt_placed_close(bpt_placed *p) {
    if (!p) return;
    (void)bpt_crossing_destroy(p->crossing);
    bpt_network_free(p->tail);
    bpt_network_free(p->head);
    bpt_model_free(p->tail_model);
    bpt_model_free(p->head_model);
    bpt_free(p);
}

/* ---- a step ---- */

static bpt_status compute_tail(bpt_placed *p, bpt_draw draw, float rate, float denominator,
                               uint64_t *wait_ns) {
    bpt_crossing_batch all;
    bpt_batch_result r;
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_crossing_collect(p->crossing, &all));
    *wait_ns = bpt_clock_ns() - start_ns;
    draw.first_sample = 0; /* samples are in the order of the ranks */
    bpt_network_set_draw(p->tail, draw);
    BPT_TRY(bpt_network_train(p->tail, all.values, all.labels, rate, denominator, &r));
    const bpt_crossing_note note = {{r.loss_sum, (double)r.n_correct, (double)r.n_samples}};
    bpt_crossing_return(p->crossing, note);
    return BPT_OK;
}

bpt_status bpt_placed_step(bpt_placed *p, const bpt_batch *batch, bpt_draw draw, float rate,
                           float denominator, bpt_batch_result *result, uint64_t *wait_ns) {
    bpt_crossing_note note;
    *wait_ns = 0;
    bpt_network_set_draw(p->head, draw);
    BPT_TRY(bpt_network_forward(p->head, batch->pixels, batch->labels, denominator));
    bpt_crossing_send(p->crossing, batch->labels);
    if (hosts(p)) BPT_TRY(compute_tail(p, draw, rate, denominator, wait_ns));
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_crossing_wait(p->crossing, &note));
    *wait_ns += bpt_clock_ns() - start_ns;
    *result = (bpt_batch_result){.loss_sum = note.number[0],
                                 .n_correct = (uint64_t)note.number[1],
                                 .n_samples = (uint64_t)note.number[2]};
    return bpt_network_backward(p->head);
}

/* ---- vectors ---- */

bpt_status bpt_placed_gather(bpt_job *job) {
    bpt_placed *p = job->placed;
    bpt_status status = bpt_placed_get(p, BPT_VECTOR_WEIGHTS, job->flat);
    BPT_TRY(bpt_comm_agree(p->comm, status));
    BPT_TRY(bpt_comm_broadcast(p->comm, p->host, job->flat + p->n_head,
                               (p->n - p->n_head) * sizeof *job->flat));
    return bpt_comm_agree(p->comm, bpt_network_set(job->network, BPT_VECTOR_WEIGHTS, job->flat));
}

bpt_status bpt_placed_get(bpt_placed *p, bpt_vector which, float *flat) {
    float *const tail = flat + p->n_head;
    BPT_TRY(bpt_network_get(p->head, which, flat));
    if (hosts(p)) return bpt_network_get(p->tail, which, tail);
    memset(tail, 0, (p->n - p->n_head) * sizeof *tail);
    return BPT_OK;
}

bpt_status bpt_placed_set(bpt_placed *p, bpt_vector which, const float *flat) {
    BPT_TRY(bpt_network_set(p->head, which, flat));
    return hosts(p) ? bpt_network_set(p->tail, which, flat + p->n_head) : BPT_OK;
}

/* ---- asking ---- */

bpt_network *bpt_placed_head(const bpt_placed *p) {
    return p->head;
}

const bpt_model *bpt_placed_head_model(const bpt_placed *p) {
    return p->head_model;
}

size_t bpt_placed_border(const bpt_placed *p) {
    return p->border;
}

uint32_t bpt_placed_host(const bpt_placed *p) {
    return p->host;
}

void bpt_placed_set_updates(bpt_placed *p, uint64_t n) {
    bpt_network_set_updates(p->head, n);
    if (p->tail) bpt_network_set_updates(p->tail, n);
}

bpt_crossing_stats bpt_placed_stats(const bpt_placed *p) {
    return bpt_crossing_stats_of(p->crossing);
}
