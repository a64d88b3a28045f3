#include "tools/train/job/placed.h"

#include "base/clock.h"
#include "base/memory.h"
#include "inner/models/model_part.h"
#include "inner/network/network_border.h"
#include "tools/train/job/job.h"
#include "tools/train/job/layer_choice.h"
#include "tools/train/job/memory_plan.h"
#include "tools/train/job/tail_server.h"

#include <string.h>

struct bpt_placed {
    bpt_comm *comm;
    uint32_t rank, host;
    size_t border;
    size_t n_head, n; /* elements of the head, of the model */
    bpt_model *head_model, *tail_model;
    bpt_network *head, *tail; /* tail: NULL but on the host */
    uint32_t n_ranks;
    uint64_t n_samples;  /* of a step of all ranks */
    size_t sample_bytes; /* of a sample at the border */
    bool in_step;        /* allreduce */
    bpt_relay *relay;
    bpt_step_trace *trace; /* borrowed */
    /* On the host; NULL elsewhere. */
    char *values;    /* at the border of all samples, in rank order; [n_samples][sample_bytes] */
    int32_t *labels; /* [n_samples] */
    uint64_t *first; /* where those of each rank begin; [n_ranks + 1] */
    void **places;   /* where that is in values, and in labels; [n_ranks] */
    int32_t **label_places;
    bpt_pool *pool; /* agwu: of the tail */
    bpt_border_log *log;
    bpt_tail_server *server;
};

static bpt_status answer(void *context, const bpt_batch_result *r);

/* ---- life ---- */

static bool hosts(const bpt_placed *p) {
    return p->rank == p->host;
}

/* Under agwu it learns while the rank trains its head, at the rate of one rank. */
static bpt_status make_tail(bpt_placed *p, const bpt_job *job) {
    const int64_t batch = p->in_step ? (int64_t)p->n_samples : job->batch;
    if (!p->in_step) BPT_TRY(bpt_pool_open(job->options->policy, job->n_threads, &p->pool));
    return bpt_network_create(p->tail_model, batch, bpt_train_activations(job->options, NULL),
                              bpt_train_learning(job->options, 1), p->in_step ? job->pool : p->pool,
                              &p->tail);
}

static bpt_status make_networks(bpt_placed *p, const bpt_job *job) {
    const bpt_value_type type = bpt_train_activations(job->options, NULL);
    const bpt_learning learning = bpt_train_learning(job->options, job->lr_factor);
    BPT_TRY(bpt_model_part(job->model, p->border, BPT_MODEL_HEAD, &p->head_model));
    BPT_TRY(bpt_model_part(job->model, p->border, BPT_MODEL_TAIL, &p->tail_model));
    p->n_head = p->head_model->segments.n_elements;
    BPT_TRY(bpt_network_create(p->head_model, job->batch, type, learning, job->pool, &p->head));
    if (!hosts(p)) return BPT_OK;
    BPT_TRY(make_tail(p, job));
    return p->in_step ? bpt_network_hand_border(p->tail, answer, p) : BPT_OK;
}

/* The network that was there makes room first. */
static bpt_status make_parts(bpt_placed *p, bpt_job *job) {
    job->parting = (bpt_parting){.stage = BPT_PARTING_DONE, .host = hosts(p), .border = p->border};
    BPT_TRY(bpt_memory_plan_check(job));
    bpt_network_free(job->network);
    job->network = NULL;
    BPT_TRY(make_networks(p, job));
    return bpt_network_create_forward(job->model, job->batch,
                                      bpt_train_activations(job->options, NULL), job->pool,
                                      &job->network);
}

/* What ranks may not have in common. */
typedef struct {
    uint64_t samples, sample_bytes;
} own_side;

/* Scratch: of all ranks. */
typedef struct {
    own_side *sides;
    uint32_t *samples;
} all_sides;

static bpt_status reserve(bpt_placed *p, all_sides *all) {
    BPT_TRY(BPT_NEW("sides of the border", p->n_ranks, &all->sides));
    BPT_TRY(BPT_NEW("parts of a step", p->n_ranks, &all->samples));
    if (!hosts(p)) return BPT_OK;
    BPT_TRY(BPT_NEW("places of values", p->n_ranks, &p->places));
    BPT_TRY(BPT_NEW("places of labels", p->n_ranks, &p->label_places));
    BPT_TRY(BPT_NEW("begins of parts", p->n_ranks + 1, &p->first));
    BPT_TRY(BPT_NEW("labels at the border", p->n_samples, &p->labels));
    return bpt_alloc("values at the border", p->n_samples, p->sample_bytes, (void **)&p->values);
}

static bpt_status check_alike(const bpt_placed *p, const own_side *sides) {
    for (uint32_t r = 1; r < p->n_ranks; r++) {
        if (sides[r].sample_bytes == sides[0].sample_bytes) continue;
        const bpt_status status =
            bpt_fail(BPT_EUSAGE,
                     "rank %u on %s has activations of another type than rank 0: no network "
                     "can be in parts on both",
                     r, bpt_comm_host(p->comm, r));
        bpt_hint("add --precision fp32");
        return status;
    }
    return BPT_OK;
}

/* The batches of all ranks arrive side by side, under allreduce as the one batch of the tail. */
static void lay_out(bpt_placed *p, all_sides *all) {
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        all->samples[r] = (uint32_t)all->sides[r].samples;
        if (!hosts(p)) continue;
        p->first[r + 1] = p->first[r] + all->samples[r];
        p->places[r] = p->values + p->first[r] * p->sample_bytes;
        p->label_places[r] = p->labels + p->first[r];
    }
}

static bpt_status connect(bpt_placed *p, const bpt_job *job, all_sides *all) {
    const own_side mine = {job->batch, p->sample_bytes};
    BPT_TRY(bpt_comm_allgather(p->comm, &mine, sizeof mine, all->sides));
    BPT_TRY(check_alike(p, all->sides));
    lay_out(p, all);
    const bpt_relay_options options = {
        .server = p->host,
        .sample_bytes = p->sample_bytes,
        .samples = all->samples,
        .values = p->places,
        .labels = p->label_places,
        .own_thread = !p->in_step,
    };
    return bpt_relay_create(p->comm, &options, &p->relay);
}

static bpt_status open_relay(bpt_placed *p, const bpt_job *job) {
    all_sides all = {0};
    p->sample_bytes = bpt_network_border(p->head).bytes / job->batch;
    bpt_status status = bpt_comm_agree(p->comm, reserve(p, &all));
    if (status == BPT_OK) status = connect(p, job, &all);
    bpt_free(all.samples);
    bpt_free(all.sides);
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
            .n_ranks = job->n_ranks,
            .n_samples = job->batch_all,
            .in_step = job->update == BPT_UPDATE_ALLREDUCE,
            .trace = job->trace,
        };
        status = make_parts(p, job);
    }
    status = bpt_comm_agree(job->comm, status);
    if (status == BPT_OK) status = open_relay(p, job);
    if (status == BPT_OK)
        job->placed = p;
    else
        bpt_placed_close(p);
    return status;
}

void bpt_placed_close(bpt_placed *p) {
    if (!p) return;
    (void)bpt_placed_rest(p);
    (void)bpt_relay_destroy(p->relay);
    bpt_free(p->label_places);
    bpt_free(p->places);
    bpt_free(p->first);
    bpt_free(p->labels);
    bpt_free(p->values);
    bpt_network_free(p->tail);
    bpt_pool_free(p->pool);
    bpt_network_free(p->head);
    bpt_model_free(p->tail_model);
    bpt_model_free(p->head_model);
    bpt_free(p);
}

/* ---- serving ---- */

bpt_status bpt_placed_serve(const bpt_job *job) {
    bpt_placed *p = job->placed;
    if (p->in_step || !hosts(p)) return BPT_OK;
    BPT_TRY(bpt_border_log_open(job->run, p->rank, bpt_layer_choice_name(job), &p->log));
    const bpt_tail_work work = {
        .tail = p->tail,
        .relay = p->relay,
        .log = p->log,
        .values = p->places,
        .labels = p->label_places,
    };
    return bpt_tail_server_begin(&work, &p->server);
}

bpt_status bpt_placed_rest(bpt_placed *p) {
    bpt_tail_server_end(p->server);
    p->server = NULL;
    const bpt_status status = bpt_border_log_close(p->log);
    p->log = NULL;
    return status;
}

/* ---- a step ---- */

static bpt_status collect(bpt_placed *p) {
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        uint32_t worker;
        bpt_relay_note note;
        BPT_TRY(bpt_relay_next(p->relay, &worker, &note));
    }
    return BPT_OK;
}

/* Called by the tail: everybody gets the result of the whole batch. That the places of the batches
 * are given back here, while the tail reads them for the gradients of its weights, does no harm:
 * the next batch of a rank follows the sums of this step's gradients, to which this rank comes with
 * those of its head, when the tail is done; until then nothing arrives there. */
static bpt_status answer(void *context, const bpt_batch_result *r) {
    bpt_placed *p = context;
    const bpt_relay_result result = {r->loss_sum, r->n_correct, r->n_samples};
    const char *gradients = bpt_network_border(p->tail).gradient;
    for (uint32_t worker = 0; worker < p->n_ranks; worker++)
        BPT_TRY(bpt_relay_answer(p->relay, worker, &result,
                                 gradients + p->first[worker] * p->sample_bytes));
    return BPT_OK;
}

/* When the batches of all are here, the gradients of the step before have left. */
static bpt_status compute_tail(bpt_placed *p, bpt_draw draw, float denominator, uint64_t *wait_ns) {
    bpt_batch_result result;
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(collect(p));
    *wait_ns = bpt_clock_ns() - start_ns;
    draw.first_sample = 0; /* samples are in the order of the ranks */
    bpt_network_set_draw(p->tail, draw);
    return bpt_network_gradient(p->tail, p->values, p->labels, denominator, &result);
}

bpt_status bpt_placed_step(bpt_placed *p, const bpt_batch *batch, bpt_draw draw, float rate,
                           float denominator, bpt_batch_result *result, uint64_t *wait_ns) {
    const bpt_border here = bpt_network_border(p->head);
    const bpt_relay_note note = {.seed = draw.seed,
                                 .step = draw.step,
                                 .first_sample = draw.first_sample,
                                 .denominator = denominator,
                                 .rate = p->in_step ? rate : rate / (float)p->n_ranks};
    bpt_relay_result all;
    *wait_ns = 0;
    bpt_network_set_draw(p->head, draw);
    BPT_TRY(bpt_network_forward(p->head, batch->pixels, batch->labels, denominator));
    BPT_TRY(bpt_relay_send(p->relay, &note, here.values, batch->labels, here.gradient));
    if (p->in_step && hosts(p)) BPT_TRY(compute_tail(p, draw, denominator, wait_ns));
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_relay_wait(p->relay, &all));
    *wait_ns += bpt_clock_ns() - start_ns;
    bpt_step_trace_wait(p->trace, "border", start_ns);
    *result = (bpt_batch_result){
        .loss_sum = all.loss_sum, .n_correct = all.n_correct, .n_samples = all.n_samples};
    return p->in_step ? bpt_network_backward(p->head) : bpt_network_backward_train(p->head, rate);
}

bpt_status bpt_placed_learn(bpt_placed *p, float rate) {
    return hosts(p) ? bpt_network_apply(p->tail, rate) : BPT_OK;
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

uint64_t bpt_placed_tail_updates(const bpt_placed *p) {
    return p->tail ? bpt_network_updates(p->tail) : 0;
}

void bpt_placed_set_updates(bpt_placed *p, uint64_t head, uint64_t tail) {
    bpt_network_set_updates(p->head, head);
    if (p->tail) bpt_network_set_updates(p->tail, tail);
}

bpt_relay_stats bpt_placed_stats(const bpt_placed *p) {
    bpt_relay_stats stats;
    bpt_relay_stats_get(p->relay, &stats);
    return stats;
}
