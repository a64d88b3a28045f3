#include "tools/train/job/layer_choice.h"

#include "base/log.h"
#include "base/memory.h"
#include "inner/layers/layer.h"
#include "inner/models/model_part.h"
#include "outer/comm/watch.h"
#include "outer/placement/layer_placement.h"
#include "outer/placement/link_speed.h"
#include "tools/synthetic.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/memory_plan.h"
#include "tools/train/options/option_uses.h"

#include <math.h>
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

/* Under allreduce the layers at the host learn from the batches of all ranks as from one:
 * statistics of a batch norm among them would be those of all samples, where without it they are
 * each rank's.
 * @return the first such layer behind layer @p cut, NULL if there is none */
static const bpt_layer *norm_behind(const bpt_model *model, size_t cut) {
    for (size_t i = cut + 1; i < model->n_layers; i++)
        if (model->layers[i].kind == &bpt_layer_batchnorm) return &model->layers[i];
    return NULL;
}

/* Says which option it was that named the layer. */
static bpt_status blame_option(const char *name) {
    bpt_error error;
    bpt_error_get(&error);
    bpt_error_record(error.status, "--placement %s: %.400s", name, error.text);
    bpt_hint("%s", error.hint[0] ? error.hint : "--dry-run shows the layers of the model");
    return error.status;
}

static bpt_status find_cut(const bpt_model *model, const char *name, bool in_step, size_t *cut) {
    if (bpt_model_find_border(model, name, cut) != BPT_OK) return blame_option(name);
    const bpt_layer *norm = in_step ? norm_behind(model, *cut) : NULL;
    if (!norm) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--placement %s: batch norm %s would have the statistics of all ranks' samples",
        name, norm->name);
    bpt_hint("name a layer behind the last batch norm, or use --update agwu");
    return status;
}

bpt_status bpt_layer_choice_check(const bpt_train_options *o, const bpt_model *model) {
    size_t cut;
    if (is_off(o) || is_auto(o) || !bpt_option_uses_any(o, "placement")) return BPT_OK;
    const bool in_step = o->update == BPT_UPDATE_ALLREDUCE || o->update == BPT_UPDATE_AUTO;
    return find_cut(model, o->placement, in_step, &cut);
}

/* ---- measuring ---- */

/* What ranks measure, or know of themselves; doubles, for they travel together. */
enum { MEMORY, BATCH, N_OWN };

/* Leaves the optimiser as it was at the start. */
static bpt_status forget_steps(bpt_job *job) {
    memset(job->flat, 0, job->model->segments.n_elements * sizeof *job->flat);
    for (size_t i = 0; i < bpt_network_n_states(job->network); i++)
        BPT_TRY(bpt_network_set(job->network, (bpt_vector)(BPT_VECTOR_STATE_0 + i), job->flat));
    bpt_network_set_updates(job->network, 0);
    return BPT_OK;
}

/* Two training steps; the first touches memory for the first time. */
static bpt_status time_layers(bpt_job *job, double *seconds) {
    const uint64_t seed = (uint64_t)job->options->seed;
    bpt_synthetic batch = {0};
    bpt_batch_result result;
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_synthetic_make(job->model, job->batch, seed, false, &batch), done);
    bpt_segments_initialise(&job->model->segments, seed, job->flat);
    BPT_TRY_GOTO(status, bpt_network_set(job->network, BPT_VECTOR_WEIGHTS, job->flat), done);
    for (int i = 0; i < 2; i++)
        BPT_TRY_GOTO(status,
                     bpt_network_train(job->network, batch.input, batch.labels, 0,
                                       (float)job->batch, &result),
                     done);
    bpt_network_layer_times(job->network, seconds);
    status = forget_steps(job);
done:
    bpt_synthetic_release(&batch);
    return status;
}

/* What the machine has for a rank, less what it needs besides the network. */
static bpt_status memory_for_layers(const bpt_job *job, double *bytes) {
    bpt_memory_plan plan;
    BPT_TRY(bpt_memory_plan_make(job, &plan));
    *bytes = (double)bpt_memory_plan_limit(job) - (double)(plan.total - plan.network.total);
    return BPT_OK;
}

/* @param[out] mine shape [n_layers + N_OWN] */
static bpt_status measure(bpt_job *job, double *mine) {
    double *own = mine + job->model->n_layers;
    BPT_TRY(time_layers(job, mine));
    own[BATCH] = job->batch;
    return memory_for_layers(job, &own[MEMORY]);
}

/* ---- the decision, on rank 0 ---- */

/* What ranks have measured. */
typedef struct {
    double *mine;             /* seconds of each layer on this rank, then its own figures; shape
                                 [n_layers + N_OWN] */
    double *all;              /* of each rank, shape [n_ranks][n_layers + N_OWN] */
    double *links;            /* bytes a second, shape [n_ranks] */
    bpt_placed_layer *layers; /* shape [n_layers] */
} measured;

static bpt_status reserve(const bpt_job *job, measured *m) {
    const size_t n = job->model->n_layers;
    BPT_TRY(BPT_NEW("times of layers", n + N_OWN, &m->mine));
    BPT_TRY(BPT_NEW("times of layers", (n + N_OWN) * job->n_ranks, &m->all));
    BPT_TRY(BPT_NEW("speeds of links", job->n_ranks, &m->links));
    return BPT_NEW("layers", n, &m->layers);
}

static void release(measured *m) {
    bpt_free(m->layers);
    bpt_free(m->links);
    bpt_free(m->all);
    bpt_free(m->mine);
}

/* The rank that is fastest by itself, as far as that is known. Collective. */
static bpt_status find_host(bpt_job *job, uint64_t *host) {
    double *speeds = NULL;
    bpt_status status = bpt_comm_agree(job->comm, BPT_NEW("speeds", job->n_ranks, &speeds));
    if (status == BPT_OK) status = bpt__job_speeds(job, speeds);
    *host = 0;
    for (uint32_t r = 1; r < job->n_ranks && status == BPT_OK; r++)
        if (speeds[r] > speeds[*host]) *host = r;
    bpt_free(speeds);
    return status;
}

static uint64_t elements_of(const bpt_model *model, const bpt_layer *l) {
    uint64_t n = 0;
    for (size_t i = 0; i < l->n_segments; i++)
        n += model->segments.items[l->first_segment + i].count;
    return n;
}

/* A figure of rank @p r: of a layer, or own figure n_layers + which. */
static double figure(const bpt_job *job, const measured *m, uint64_t r, size_t i) {
    return m->all[r * (job->model->n_layers + N_OWN) + i];
}

/* Ranks' batches may differ: that of a worker is the mean. */
static double mean_batch(const bpt_job *job, const measured *m) {
    double sum = 0;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        sum += figure(job, m, r, job->model->n_layers + BATCH);
    return sum / job->n_ranks;
}

static void describe_layer(const bpt_job *job, const measured *m, size_t i, uint64_t host) {
    const bpt_layer *l = &job->model->layers[i];
    const bool in_step = job->update == BPT_UPDATE_ALLREDUCE;
    const double of_host = figure(job, m, host, job->model->n_layers + BATCH);
    double slowest = 0;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (figure(job, m, r, i) > slowest) slowest = figure(job, m, r, i);
    m->layers[i] = (bpt_placed_layer){
        .name = l->name,
        .parameters = elements_of(job->model, l),
        .values = (uint64_t)(l->out.c * l->out.h * l->out.w),
        .border = bpt_model_border(job->model, i, NULL) == BPT_BORDER_POSSIBLE &&
                  !(in_step && norm_behind(job->model, i)),
        .worker_s = slowest,
        .server_s = figure(job, m, host, i) * mean_batch(job, m) / of_host,
    };
}

static double slowest_link(const bpt_job *job, const measured *m) {
    double least = no_link;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (m->links[r] > 0 && m->links[r] < least) least = m->links[r];
    return least;
}

/* @param c the host is found */
static void decide(const bpt_job *job, const measured *m, choice *c) {
    for (size_t i = 0; i < job->model->n_layers; i++) describe_layer(job, m, i, c->host);
    const bool in_step = job->update == BPT_UPDATE_ALLREDUCE;
    const bpt_placement_job j = {
        .layers = m->layers,
        .n_layers = job->model->n_layers,
        .n_workers = job->n_ranks,
        .batch = (uint32_t)lround(mean_batch(job, m)),
        .steps_per_exchange = in_step ? 1 : (uint32_t)job->pace.least,
        .value_bytes = (uint32_t)bpt_value_bytes(bpt_train_activations(job->options, NULL)),
        .label_bytes = sizeof(int32_t),
        .copies = 3 + (uint32_t)bpt_network_n_states(job->network),
        .overlaps = !in_step,
        .bytes_per_s = slowest_link(job, m),
        .server_bytes = figure(job, m, c->host, job->model->n_layers + MEMORY),
    };
    const bpt_placement p = bpt_placement_choose(&j);
    c->cut = p.cut;
    bpt_info("--placement auto: %s", p.reason);
}

static bpt_status measure_and_decide(bpt_job *job, choice *c) {
    measured m = {0};
    const size_t bytes = (job->model->n_layers + N_OWN) * sizeof *m.mine;
    bpt_comm_doing(job->comm, "the choice of --placement");
    bpt_status status = bpt_comm_agree(job->comm, reserve(job, &m));
    if (status == BPT_OK) status = bpt_comm_agree(job->comm, measure(job, m.mine));
    if (status == BPT_OK) status = bpt_comm_allgather(job->comm, m.mine, bytes, m.all);
    if (status == BPT_OK) status = bpt_comm_link_speeds(job->comm, m.links);
    if (status == BPT_OK) status = find_host(job, &c->host);
    if (status == BPT_OK && job->rank == 0) decide(job, &m, c);
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
    BPT_TRY(
        find_cut(job->model, job->options->placement, job->update == BPT_UPDATE_ALLREDUCE, &cut));
    chosen->cut = cut;
    return find_host(job, &chosen->host);
}

/* sgwu would have to wait at every step for what it exchanges every few. */
static bool can_place(bpt_update_choice update) {
    return update == BPT_UPDATE_ALLREDUCE || update == BPT_UPDATE_AGWU;
}

bool bpt_layer_choice_wants_cores(const bpt_train_options *o, uint32_t n_ranks) {
    const bpt_update_choice update = bpt_update_resolve((bpt_update_choice)o->update, n_ranks);
    return !is_off(o) && !is_auto(o) && n_ranks > 1 && can_place(update);
}

static bool is_asked_for(const bpt_job *job) {
    return !is_off(job->options) && can_place(job->update) && job->n_ranks > 1;
}

static bool is_wanted(const bpt_job *job) {
    return is_asked_for(job) && !job->any_device;
}

bpt_status bpt_layer_choice_check_devices(const bpt_job *job) {
    if (!is_asked_for(job) || !job->any_device) return BPT_OK;
    if (is_auto(job->options)) {
        if (job->rank == 0)
            bpt_info(
                "--placement auto: every rank keeps all layers, a GPU has whole networks only");
        return BPT_OK;
    }
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--placement %s: a GPU has whole networks only, no parts of one",
                 job->options->placement);
    bpt_hint("leave out --placement, or give all ranks --device cpu");
    return status;
}

/* What it goes on from may be of ranks that were all on cores. */
static bpt_status check_checkpoint(const bpt_job *job, const bpt_checkpoint *c) {
    if (!job->any_device || !c || !c->exact || !c->placement[0]) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "the checkpoint is of a network in two parts, from %s on, and a GPU has whole "
                 "networks only",
                 c->placement);
    bpt_hint("go on with --device cpu");
    return status;
}

bool bpt_layer_choice_is_named(const bpt_job *job, size_t *border) {
    return is_wanted(job) && !is_auto(job->options) &&
           bpt_model_find_border(job->model, job->options->placement, border) == BPT_OK;
}

bpt_status bpt_layer_choice_make(bpt_job *job, const bpt_checkpoint *c) {
    choice chosen = {BPT_PLACEMENT_NONE, 0};
    BPT_TRY(bpt_comm_agree(job->comm, check_checkpoint(job, c)));
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
