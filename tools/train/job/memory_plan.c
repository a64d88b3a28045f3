#include "tools/train/job/memory_plan.h"

#include "base/memory.h"
#include "inner/models/model_part.h"
#include "outer/placement/placement.h"
#include "storage/dataset/scratch.h"
#include "storage/loader/loader.h"
#include "tools/evaluate.h"
#include "tools/train/data/held_out.h"
#include "tools/train/options/train_rule.h"

#include <inttypes.h>
#include <math.h>

/* Without a dataset it is not known of how many samples. */
static bool holds_out(const bpt_job *job) {
    return bpt_held_out(job->options, job->update, job->n_workers, UINT32_MAX) > 0;
}

/* A bench does not; without a dataset it is planned for. */
static bool evaluates(const bpt_job *job) {
    return !job->dataset || job->test;
}

/* Images of both splits, which are loaded at the same time, and of those that judge. */
static size_t decoding_bytes(const bpt_job *job, size_t values) {
    const uint32_t n = (uint32_t)job->options->loader_threads;
    if (!job->dataset) return 0;
    const size_t training =
        bpt_loader_decoding_bytes(job->train, n + (holds_out(job) ? 1 : 0), values);
    if (!evaluates(job)) return training;
    return bpt_size_add(training, bpt_loader_decoding_bytes(job->test, n, values));
}

/* Two batches, pinned, on their way to a device; images with room for moves. */
static size_t pinned_bytes(const bpt_job *job, size_t values) {
    const bool as_images = bpt_device_takes_images(job->device);
    const size_t sample = as_images ? sizeof(bpt_image_move) : 0;
    size_t bytes;
    if (!job->device) return 0;
    if (__builtin_mul_overflow(values, as_images ? sizeof(uint8_t) : sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, sample, &bytes) ||
        __builtin_mul_overflow(bytes, 2 * (size_t)job->batch, &bytes))
        return SIZE_MAX;
    return bytes;
}

/* Batches on their way to the training step, and meanwhile those of an evaluation. */
static size_t batch_bytes(const bpt_job *job) {
    if (bpt_job_is_server(job)) return 0;
    const bpt_shape in = job->model->input;
    const bool as_images = bpt_device_takes_images(job->device);
    const bpt_loader_options training = {
        .batch = job->batch,
        .as_images = as_images,
        .n_threads = (uint32_t)job->options->loader_threads,
        .depth = (uint32_t)job->options->prefetch,
        .augment = bpt_train_augment(job->options),
    };
    const bpt_loader_options evaluating = {.batch = job->batch,
                                           .as_images = as_images,
                                           .n_threads = training.n_threads,
                                           .depth = BPT_EVALUATION_DEPTH};
    const size_t values = (size_t)(in.c * in.h * in.w);
    size_t bytes = bpt_size_add(bpt_loader_bytes(&training, values), decoding_bytes(job, values));
    bytes = bpt_size_add(bytes, pinned_bytes(job, values));
    if (evaluates(job)) bytes = bpt_size_add(bytes, bpt_loader_bytes(&evaluating, values));
    if (!holds_out(job)) return bytes;
    const bpt_loader_options judging = bpt_quality_loader(NULL, job->batch, as_images);
    return bpt_size_add(bytes, bpt_loader_bytes(&judging, values));
}

/* One to read and write through; then either the initial weights, which are gone when training
 * begins, or what a merge of weights compares with.
 * @param n elements of what this rank exchanges */
static size_t vector_bytes(const bpt_job *job, size_t n) {
    const size_t all = job->model->segments.n_elements;
    const bool compares = bpt_update_merges(job->update) && !bpt_job_is_server(job);
    const size_t merged = compares ? 2 * n : 0;
    return (all + (merged > all ? merged : all)) * sizeof(float);
}

/* The order in which samples come, who has which, and which are held out. */
static size_t order_bytes(const bpt_job *job) {
    if (bpt_job_is_server(job)) return 0;
    const size_t shares = bpt_job_rounds(job) ? bpt_partition_bytes(job->epoch_samples) : 0;
    const uint64_t n_records = job->held_out ? job->epoch_samples + job->held_out : 0;
    const size_t records = n_records * sizeof *job->records;
    return bpt_size_add(
        bpt_size_add(bpt_sampler_bytes(bpt_train_order(job->options), job->epoch_samples), shares),
        records);
}

static size_t delivery_bytes(const bpt_job *job) {
    if (!job->dataset || !bpt_job_scatters(job)) return 0;
    const bpt_shape in = job->model->input;
    const size_t kept = job->rank == 0 ? 0 : bpt_scratch_bytes(bpt_dataset_describe(job->dataset));
    const size_t delivered =
        bpt_delivery_bytes(job->epoch_samples, bpt_job_test_part(job).count,
                           (size_t)(in.c * in.h * in.w), job->n_ranks, job->rank);
    return bpt_size_add(kept, delivered);
}

/* Of this rank, as a worker or as a server.
 * @param part of the weights that it hosts */
static size_t weights_bytes(const bpt_job *job, size_t n_elements, double part) {
    if (bpt_job_is_server(job))
        return bpt_exchange_server_bytes(n_elements, job->n_workers, part, &job->terms);
    if (job->n_servers)
        return 2 * n_elements * sizeof(float); /* what is sent, and what comes back */
    return bpt_exchange_bytes(n_elements, job->n_ranks, part, &job->terms);
}

/* Speeds, which shards may go by, are not known yet. */
static double planned_part(const bpt_job *job) {
    const uint32_t n_hosts = job->n_servers ? job->n_servers : job->n_ranks;
    return job->partition == BPT_PARTITION_IDPA ? bpt_place_planned(n_hosts) : 1.0 / n_hosts;
}

/* @param trained model of what is exchanged */
static size_t exchange_bytes(const bpt_job *job, const bpt_model *trained) {
    if (job->update == BPT_UPDATE_LOCAL) return 0;
    if (job->update == BPT_UPDATE_ALLREDUCE) return bpt_gradient_sums_bytes(trained, job->n_ranks);
    return weights_bytes(job, bpt_model_learned_elements(trained), planned_part(job));
}

/* ---- the network, and what goes by its size ---- */

/* To train on the cores. */
static bpt_status plan_model(const bpt_job *job, const bpt_model *model, bpt_network_memory *plan) {
    return bpt_network_plan(model, job->batch, bpt_train_activations(job->options, NULL),
                            bpt_train_learning(job->options, job->lr_factor), job->n_threads, plan);
}

static bpt_status plan_trained(const bpt_job *job, const bpt_model *trained, bpt_memory_plan *p) {
    p->vectors = vector_bytes(job, bpt_model_learned_elements(trained));
    p->exchange = exchange_bytes(job, trained);
    return job->device ? BPT_OK /* it is there */ : plan_model(job, trained, &p->network);
}

/* Beside the vector to read and write through there is that of the initial weights. */
static bpt_status plan_before(const bpt_job *job, bpt_memory_plan *plan) {
    *plan = (bpt_memory_plan){.batch = job->batch};
    plan->vectors = 2 * job->model->segments.n_elements * sizeof(float);
    return plan_model(job, job->model, &plan->network);
}

static void add_network(bpt_network_memory *sum, const bpt_network_memory *more) {
    sum->parameters = bpt_size_add(sum->parameters, more->parameters);
    sum->gradients = bpt_size_add(sum->gradients, more->gradients);
    sum->state = bpt_size_add(sum->state, more->state);
    sum->activations = bpt_size_add(sum->activations, more->activations);
    sum->activation_gradients = bpt_size_add(sum->activation_gradients, more->activation_gradients);
    sum->workspaces = bpt_size_add(sum->workspaces, more->workspaces);
    sum->total = bpt_size_add(sum->total, more->total);
    sum->unshared = bpt_size_add(sum->unshared, more->unshared);
}

/* Under allreduce a tail takes the batches of all ranks at once. */
static bpt_status plan_tail(const bpt_job *job, const bpt_model *tail, bpt_memory_plan *plan) {
    const bpt_value_type type = bpt_train_activations(job->options, NULL);
    const bpt_shape at = job->model->layers[job->parting.border].out;
    const bool in_step = job->update == BPT_UPDATE_ALLREDUCE;
    const size_t of_sample = (size_t)(at.c * at.h * at.w) * bpt_value_bytes(type) + sizeof(int32_t);
    bpt_network_memory more;
    BPT_TRY(bpt_network_plan(tail, in_step ? (int64_t)job->batch_all : job->batch, type,
                             bpt_train_learning(job->options, 1), job->n_threads, &more));
    add_network(&plan->network, &more);
    plan->border = job->batch_all * of_sample;
    return BPT_OK;
}

static bpt_status plan_parts(const bpt_job *job, bpt_memory_plan *plan) {
    const size_t border = job->parting.border;
    bpt_model *head = NULL, *tail = NULL;
    bpt_network_memory whole = {0};
    bpt_status status = bpt_model_part(job->model, border, BPT_MODEL_HEAD, &head);
    if (status == BPT_OK) status = bpt_model_part(job->model, border, BPT_MODEL_TAIL, &tail);
    if (status == BPT_OK) status = plan_trained(job, head, plan);
    if (status == BPT_OK && job->parting.host) status = plan_tail(job, tail, plan);
    if (status == BPT_OK)
        status = bpt_network_plan_forward(job->model, job->batch,
                                          bpt_train_activations(job->options, NULL), job->n_threads,
                                          &whole);
    plan->evaluation = whole.total;
    bpt_model_free(tail);
    bpt_model_free(head);
    return status;
}

/* A server has vectors and no network. */
static void plan_server(const bpt_job *job, bpt_memory_plan *plan) {
    plan->vectors = vector_bytes(job, bpt_model_learned_elements(job->model));
    plan->exchange = exchange_bytes(job, job->model);
}

static bpt_status plan_network(const bpt_job *job, bpt_memory_plan *plan) {
    switch (job->parting.stage) {
    case BPT_PARTING_BEFORE:
        return plan_before(job, plan);
    case BPT_PARTING_DONE:
        return plan_parts(job, plan);
    case BPT_PARTING_NONE:
        break;
    }
    return plan_trained(job, job->model, plan);
}

bpt_status bpt_memory_plan_make(const bpt_job *job, bpt_memory_plan *plan) {
    *plan = (bpt_memory_plan){
        .batch = job->batch,
        .batches = batch_bytes(job),
        .order = order_bytes(job),
        .delivery = delivery_bytes(job),
        .trace = bpt_step_trace_bytes(job->options, job->n_threads),
    };
    if (bpt_job_is_server(job))
        plan_server(job, plan);
    else
        BPT_TRY(plan_network(job, plan));
    plan->total = bpt_size_add(plan->network.total, plan->batches);
    plan->total = bpt_size_add(plan->total, plan->evaluation);
    plan->total = bpt_size_add(plan->total, plan->border);
    plan->total = bpt_size_add(plan->total, plan->order);
    plan->total = bpt_size_add(plan->total, plan->delivery);
    plan->total = bpt_size_add(plan->total, plan->vectors);
    plan->total = bpt_size_add(plan->total, plan->exchange);
    plan->total = bpt_size_add(plan->total, plan->trace);
    return BPT_OK;
}

void bpt_memory_plan_add(bpt_memory_plan *plan, const bpt_network_memory *on_host) {
    add_network(&plan->network, on_host);
    plan->total = bpt_size_add(plan->total, on_host->total);
}

/* ---- what fits ---- */

size_t bpt_memory_plan_limit(const bpt_job *job) {
    return bpt_memory_of_machine() / job->ranks_on_host;
}

double bpt_memory_plan_hosts(const bpt_job *job, const bpt_memory_plan *plan) {
    if (job->n_servers && !bpt_job_is_server(job)) return 0;
    const size_t n = bpt_model_learned_elements(bpt_job_trained_model(job));
    const size_t limit = bpt_memory_plan_limit(job);
    const size_t whole = weights_bytes(job, n, 1) - weights_bytes(job, n, 0);
    const size_t left = limit > plan->total ? limit - plan->total : 0;
    return bpt_place_room(planned_part(job), (double)left, (double)whole);
}

/* Between a batch that fits and one that does not: where a straight line through their plans meets
 * the limit, which is nearly there as a rule, and every other time at their geometric mean: one
 * that was asked for may be a thousand times too large, and large plans take long. fits may be 0.
 */
static uint32_t guess(uint32_t fits, double fits_bytes, uint32_t fails, double fails_bytes,
                      double limit, int try) {
    const double line = (limit - fits_bytes) / (fails_bytes - fits_bytes) * (fails - fits);
    const double middle = sqrt((double)(fits + 1) * fails) - fits;
    const uint32_t next = fits + (uint32_t)(try % 2 ? middle : line);
    if (next <= fits) return fits + 1;
    return next < fails ? next : fails - 1;
}

/* The largest of what this rank may come to have: a network that is to be parted is whole at first,
 * and any rank may be the host. */
static bpt_status plan_most(const bpt_job *job, bpt_memory_plan *most) {
    bpt_job parted = *job;
    BPT_TRY(bpt_memory_plan_make(job, most));
    if (job->parting.stage != BPT_PARTING_BEFORE) return BPT_OK;
    for (int host = 0; host < 2; host++) {
        bpt_memory_plan plan;
        parted.parting = (bpt_parting){BPT_PARTING_DONE, host, job->parting.border};
        BPT_TRY(bpt_memory_plan_make(&parted, &plan));
        if (plan.total > most->total) *most = plan;
    }
    return BPT_OK;
}

/* What a rank has of a batch of all ranks: the largest of even parts; of one that is cut by speed
 * the part that it has now, as far as that leaves one sample to each of the others. */
static uint64_t part_of(const bpt_job *job, uint64_t batch) {
    if (job->partition != BPT_PARTITION_IDPA) return (batch + job->n_ranks - 1) / job->n_ranks;
    const uint64_t part = (batch * job->batch + job->batch_all - 1) / job->batch_all;
    const uint64_t left = batch - job->n_ranks + 1;
    return part < left ? part : left;
}

/* Gives a job another --batch-size. */
static void set_batch(bpt_job *other, const bpt_job *job, uint32_t batch) {
    const bool shared = job->update == BPT_UPDATE_ALLREDUCE;
    other->batch = shared ? (uint32_t)part_of(job, batch) : batch;
    other->batch_all = shared ? batch : (uint64_t)batch * job->n_workers;
}

/* Looks for the largest --batch-size whose plan fits, by planning others.
 * @param plan  of @p job, larger than @p limit
 * @param[out] batch 0: none fits */
static bpt_status find_largest(const bpt_job *job, const bpt_memory_plan *plan, size_t limit,
                               uint32_t *batch) {
    const bool shared = job->update == BPT_UPDATE_ALLREDUCE;
    const uint32_t least = shared ? job->n_ranks : 1;
    bpt_job other = *job;
    uint32_t fits = least - 1, fails = shared ? (uint32_t)job->batch_all : job->batch;
    double fits_bytes = 0.0, fails_bytes = (double)plan->total;
    for (int try = 0; fails - fits > 1; try++) {
        const uint32_t next = guess(fits, fits_bytes, fails, fails_bytes, (double)limit, try);
        bpt_memory_plan p;
        set_batch(&other, job, next);
        BPT_TRY(plan_most(&other, &p));
        if (p.total <= limit) {
            fits = next;
            fits_bytes = (double)p.total;
        } else {
            fails = next;
            fails_bytes = (double)p.total;
        }
    }
    *batch = fits < least ? 0 : fits;
    return BPT_OK;
}

bpt_status bpt_memory_plan_remedy(const bpt_job *job, const bpt_memory_plan *plan, size_t limit,
                                  char remedy[BPT_MEMORY_REMEDY_SIZE]) {
    uint32_t batch;
    if (bpt_job_is_server(job)) {
        snprintf(remedy, BPT_MEMORY_REMEDY_SIZE, "give more --servers");
        return BPT_OK;
    }
    if (job->device && plan->total - plan->network.total <= limit) {
        snprintf(remedy, BPT_MEMORY_REMEDY_SIZE, "--device cuda leaves the cores out");
        return BPT_OK;
    }
    BPT_TRY(find_largest(job, plan, limit, &batch));
    if (batch)
        snprintf(remedy, BPT_MEMORY_REMEDY_SIZE, "the largest that fits is --batch-size %" PRIu32,
                 batch);
    else
        snprintf(remedy, BPT_MEMORY_REMEDY_SIZE, "not even one sample fits");
    return BPT_OK;
}

static bpt_status refuse(const bpt_job *job, const bpt_memory_plan *plan, size_t limit) {
    const double gb = 1e-9;
    if (bpt_job_is_server(job))
        return bpt_fail(BPT_EUSAGE, "a server needs %.1f GB of memory, %s %.1f GB for it",
                        gb * (double)plan->total, bpt_memory_bound(), gb * (double)limit);
    return bpt_fail(BPT_EUSAGE, "%u sample%s a step need%s %.1f GB of memory, %s %.1f GB%s",
                    job->batch, job->batch == 1 ? "" : "s", job->batch == 1 ? "s" : "",
                    gb * (double)plan->total, bpt_memory_bound(), gb * (double)limit,
                    job->ranks_on_host > 1 ? " for each rank on it" : "");
}

bpt_status bpt_memory_plan_check(const bpt_job *job) {
    const size_t limit = bpt_memory_plan_limit(job);
    char remedy[BPT_MEMORY_REMEDY_SIZE];
    bpt_memory_plan plan;
    BPT_TRY(bpt_memory_plan_make(job, &plan));
    if (plan.total <= limit) return BPT_OK;
    BPT_TRY(bpt_memory_plan_remedy(job, &plan, limit, remedy));
    const bpt_status status = refuse(job, &plan, limit);
    bpt_hint("%s; --dry-run shows what takes the memory", remedy);
    return status;
}

/* ---- the table ---- */

static void print_row(FILE *out, const char *what, size_t bytes) {
    fprintf(out, "  %-22s %16zu %12.1f MB\n", what, bytes, (double)bytes * 1e-6);
}

static void print_network(const bpt_network_memory *m, FILE *out) {
    print_row(out, "parameters", m->parameters);
    print_row(out, "gradients", m->gradients);
    print_row(out, "optimiser state", m->state);
    print_row(out, "activations", m->activations);
    print_row(out, "activation gradients", m->activation_gradients);
    print_row(out, "workspaces", m->workspaces);
}

void bpt_memory_plan_print_device(const bpt_network_memory *memory, FILE *out) {
    fprintf(out, "memory of the GPU:\n");
    print_network(memory, out);
    print_row(out, "total", memory->total);
}

void bpt_memory_plan_print_server(const bpt_memory_plan *p, FILE *out) {
    fprintf(out, "memory of a server:\n");
    print_row(out, "vectors of weights", p->vectors);
    print_row(out, "exchange", p->exchange);
    print_row(out, "total", p->total);
}

void bpt_memory_plan_print(const bpt_memory_plan *p, FILE *out) {
    const char *which = p->border ? "the rank with the layers of all" : "a rank";
    fprintf(out, "memory of %s, with %u sample%s a step:\n", which, p->batch,
            p->batch == 1 ? "" : "s");
    if (p->network.total) print_network(&p->network, out);
    if (p->evaluation) print_row(out, "network to evaluate", p->evaluation);
    if (p->border) print_row(out, "batches of all ranks", p->border);
    print_row(out, "batches", p->batches);
    print_row(out, "order of samples", p->order);
    if (p->delivery) print_row(out, "samples given out", p->delivery);
    print_row(out, "vectors of weights", p->vectors);
    print_row(out, "exchange", p->exchange);
    print_row(out, "total", p->total);
}
