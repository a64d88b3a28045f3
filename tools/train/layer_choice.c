#include "tools/train/layer_choice.h"

#include "base/log.h"
#include "base/memory.h"
#include "inner/model_part.h"
#include "outer/layer_placement.h"
#include "outer/link_speed.h"
#include "outer/watch.h"
#include "tools/synthetic.h"
#include "tools/train/memory_plan.h"

#include <string.h>

/* Of shared memory, and of links that nobody has measured: bytes a second, each way. */
static const double no_link = 4e9;

/* What is decided; the same on all ranks. */
typedef struct {
    uint64_t cut; /* or BPT_PLACEMENT_NONE */
    uint64_t host;
} choice;

static bool is_off(const bpt_train_options *o) {
    return strcmp(o->placement, "off") == 0;
}

static bool is_auto(const bpt_train_options *o) {
    return strcmp(o->placement, "auto") == 0;
}

bpt_status bpt_layer_choice_check(const bpt_train_options *o, const bpt_model *model) {
    size_t cut;
    if (is_off(o) || is_auto(o)) return BPT_OK;
    return bpt_model_find_border(model, o->placement, &cut);
}

/* ---- measuring ---- */

typedef struct {
    const bpt_model *model;
    double *seconds; /* of each layer */
} layer_times;

static void add_time(void *context, const char *label, const char *kind, unsigned n_tasks,
                     uint64_t ns) {
    const layer_times *t = context;
    (void)kind;
    (void)n_tasks;
    for (size_t i = 0; i < t->model->n_layers; i++)
        if (strcmp(label, t->model->layers[i].name) == 0) t->seconds[i] += (double)ns * 1e-9;
}

/* Two training steps that change nothing, since the rate is 0; the first touches memory for the
 * first time. Updates carry the names of weights, not of layers, and every plan has them. */
static bpt_status time_layers(bpt_job *job, double *seconds) {
    const uint64_t seed = (uint64_t)job->options->seed;
    bpt_synthetic batch = {0};
    bpt_batch_result result;
    BPT_TRY(bpt_synthetic_make(job->model, job->batch, seed, &batch));
    bpt_segments_initialise(&job->model->segments, seed, job->flat);
    bpt_status status = bpt_network_set(job->network, BPT_VECTOR_WEIGHTS, job->flat);
    for (int i = 0; i < 2 && status == BPT_OK; i++)
        status = bpt_network_train(job->network, batch.pixels, batch.labels, 0, (float)job->batch,
                                   &result);
    bpt_synthetic_release(&batch);
    if (status == BPT_OK)
        bpt_network_visit_times(job->network, add_time, &(layer_times){job->model, seconds});
    for (size_t i = 0; i < job->model->n_layers; i++) seconds[i] /= job->n_threads;
    return status;
}

/* ---- the decision, on rank 0 ---- */

/* What ranks have measured. */
typedef struct {
    double *mine;             /* seconds of each layer on this rank, shape [n_layers] */
    double *seconds;          /* on each rank, shape [n_ranks][n_layers] */
    double *links;            /* bytes a second, shape [n_ranks] */
    bpt_placed_layer *layers; /* shape [n_layers] */
} measured;

static bpt_status reserve(const bpt_job *job, measured *m) {
    const size_t n = job->model->n_layers;
    BPT_TRY(BPT_NEW("times of layers", n, &m->mine));
    BPT_TRY(BPT_NEW("times of layers", n * job->n_ranks, &m->seconds));
    BPT_TRY(BPT_NEW("speeds of links", job->n_ranks, &m->links));
    return BPT_NEW("layers", n, &m->layers);
}

static void release(measured *m) {
    bpt_free(m->layers);
    bpt_free(m->links);
    bpt_free(m->seconds);
    bpt_free(m->mine);
}

static uint32_t fastest_rank(const bpt_job *job) {
    uint32_t best = 0;
    for (uint32_t r = 1; r < job->n_ranks; r++)
        if (job->solo[r] > job->solo[best]) best = r;
    return best;
}

static uint64_t parameters_of(const bpt_model *model, const bpt_layer *l) {
    uint64_t n = 0;
    for (size_t i = 0; i < l->n_segments; i++)
        n += model->segments.items[l->first_segment + i].count;
    return n;
}

static void describe_layer(const bpt_job *job, const measured *m, size_t i, uint32_t host) {
    const size_t n = job->model->n_layers;
    const bpt_layer *l = &job->model->layers[i];
    double slowest = 0;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (m->seconds[r * n + i] > slowest) slowest = m->seconds[r * n + i];
    m->layers[i] = (bpt_placed_layer){
        .name = l->name,
        .parameters = parameters_of(job->model, l),
        .values = (uint64_t)(l->out.c * l->out.h * l->out.w),
        .border = bpt_model_border(job->model, i, NULL) == BPT_BORDER_POSSIBLE,
        .worker_s = slowest,
        .server_s = m->seconds[host * n + i],
    };
}

static double slowest_link(const bpt_job *job, const measured *m) {
    double least = no_link;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (m->links[r] > 0 && m->links[r] < least) least = m->links[r];
    return least;
}

/* What the machine has for a rank, less what it needs besides the network. */
static bpt_status memory_for_layers(const bpt_job *job, double *bytes) {
    bpt_memory_plan plan;
    BPT_TRY(bpt_memory_plan_make(job, &plan));
    *bytes = (double)bpt_memory_plan_limit(job) - (double)(plan.total - plan.network.total);
    return BPT_OK;
}

static bpt_status decide(const bpt_job *job, const measured *m, choice *c) {
    c->host = fastest_rank(job);
    for (size_t i = 0; i < job->model->n_layers; i++) describe_layer(job, m, i, (uint32_t)c->host);
    const bool in_step = job->update == BPT_UPDATE_ALLREDUCE;
    bpt_placement_job j = {
        .layers = m->layers,
        .n_layers = job->model->n_layers,
        .n_workers = job->n_ranks,
        .batch = job->batch,
        .steps_per_exchange = in_step ? 1 : (uint32_t)job->pace.least,
        .value_bytes = (uint32_t)bpt_value_bytes(bpt_train_activations(job->options)),
        .label_bytes = sizeof(int32_t),
        .copies = 3 + (uint32_t)bpt_network_n_states(job->network),
        .overlaps = !in_step,
        .bytes_per_s = slowest_link(job, m),
    };
    BPT_TRY(memory_for_layers(job, &j.server_bytes));
    const bpt_placement p = bpt_placement_choose(&j);
    c->cut = p.cut;
    bpt_info("--placement auto: %s", p.reason);
    return BPT_OK;
}

static bpt_status measure_and_decide(bpt_job *job, choice *c) {
    measured m = {0};
    const size_t bytes = job->model->n_layers * sizeof *m.mine;
    bpt_comm_doing(job->comm, "the choice of --placement");
    bpt_status status = bpt_comm_agree(job->comm, reserve(job, &m));
    if (status == BPT_OK) status = bpt_comm_agree(job->comm, time_layers(job, m.mine));
    if (status == BPT_OK) status = bpt_comm_allgather(job->comm, m.mine, bytes, m.seconds);
    if (status == BPT_OK) status = bpt_comm_link_speeds(job->comm, m.links);
    if (status == BPT_OK)
        status = bpt_comm_agree(job->comm, job->rank == 0 ? decide(job, &m, c) : BPT_OK);
    if (status == BPT_OK) status = bpt_comm_broadcast(job->comm, 0, c, sizeof *c);
    bpt_comm_doing(job->comm, "the start");
    release(&m);
    return status;
}

/* ---- what is done ---- */

static bpt_status keep(const bpt_job *job, const bpt_checkpoint *c, choice *chosen) {
    size_t cut;
    if (!c->placement[0]) return BPT_OK;
    BPT_TRY(bpt_model_find_border(job->model, c->placement, &cut));
    chosen->cut = cut;
    chosen->host = c->placement_host;
    return BPT_OK;
}

static bpt_status choose(bpt_job *job, const bpt_checkpoint *c, choice *chosen) {
    size_t cut;
    if (c && c->exact) return bpt_comm_agree(job->comm, keep(job, c, chosen));
    if (is_auto(job->options)) return measure_and_decide(job, chosen);
    BPT_TRY(bpt_model_find_border(job->model, job->options->placement, &cut));
    *chosen = (choice){cut, fastest_rank(job)};
    return BPT_OK;
}

/* sgwu would have to wait at every step for what it exchanges every few. */
static bool can_place(bpt_update_choice update) {
    return update == BPT_UPDATE_ALLREDUCE || update == BPT_UPDATE_AGWU;
}

static bool is_wanted(const bpt_job *job) {
    return !is_off(job->options) && can_place(job->update) && job->n_ranks > 1;
}

bool bpt_layer_choice_is_named(const bpt_job *job, size_t *border) {
    return is_wanted(job) && !is_auto(job->options) &&
           bpt_model_find_border(job->model, job->options->placement, border) == BPT_OK;
}

bpt_status bpt_layer_choice_make(bpt_job *job, const bpt_checkpoint *c) {
    choice chosen = {BPT_PLACEMENT_NONE, 0};
    if (!is_wanted(job)) return BPT_OK;
    BPT_TRY(choose(job, c, &chosen));
    if (chosen.cut == BPT_PLACEMENT_NONE) return BPT_OK;
    const uint32_t host = (uint32_t)chosen.host;
    BPT_TRY(bpt_placed_open(job, chosen.cut, host));
    if (job->rank == 0)
        bpt_info("placement: layers from %s on, %zu of %zu parameters, on rank %u on %s for all",
                 bpt_layer_choice_name(job),
                 job->model->segments.n_elements - bpt_job_trained_model(job)->segments.n_elements,
                 job->model->segments.n_elements, host, bpt_comm_host(job->comm, host));
    return BPT_OK;
}

const char *bpt_layer_choice_name(const bpt_job *job) {
    return job->placed ? job->model->layers[bpt_placed_border(job->placed) + 1].name : "";
}
