/* Where a job starts from: weights, exchange and order of samples, of a checkpoint or anew. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "inner/weights/safetensors.h"
#include "outer/placement/link_speed.h"
#include "outer/placement/placement.h"
#include "tools/train/data/held_out.h"
#include "tools/train/exchange/statistic_spans.h"
#include "tools/train/job/agreement.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/memory_plan.h"
#include "tools/train/job/signals.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/run/initial_weights.h"
#include "tools/train/run/shard_log.h"

#include <stdio.h>

/* The velocity of the server's momentum, where that of a checkpoint goes on: on all ranks. */
static bpt_status read_velocity(bpt_job *job, const bpt_checkpoint *c, const float **velocity) {
    if (!c || !c->exact || !(job->terms.momentum > 0)) return BPT_OK;
    const size_t bytes = job->model->segments.n_elements * sizeof *job->flat;
    BPT_TRY(bpt_comm_agree(job->comm, bpt_checkpoint_velocity(c, job, job->flat)));
    *velocity = job->flat + bpt_model_frozen_elements(job->model);
    return bpt_comm_broadcast(job->comm, 0, job->flat, bytes);
}

/* Whether data and shards go by speed. Equal shares have equal shards, and where gradients are
 * summed there are neither. */
static bool goes_by_speed(const bpt_job *job) {
    return job->partition == BPT_PARTITION_IDPA && bpt_job_rounds(job) > 0;
}

static bpt_status make_exchange(bpt_job *job, const float *weights, const bpt_checkpoint *c,
                                const double *speeds, const double *parts, const char *log_path) {
    const bpt_train_options *o = job->options;
    const bool async = bpt_update_is_async(job->update);
    const bool idpa = goes_by_speed(job);
    const bool shares = bpt_job_rounds(job) > 0;
    const bpt_coordinator_options coordinator = {
        .n_ranks = job->n_workers,
        .total_samples = job->total_samples,
        .checkpoint_every = job->checkpoint_every,
        .eval_every = async && !job->placed ? 0 : job->eval_every,
        .progress = c && !c->exact ? c->count.progress : 0,
        .n_samples = shares ? job->epoch_samples : 0,
        .n_rounds = bpt_job_rounds(job),
        .speed = idpa ? speeds : NULL,
        .rebalance = idpa ? o->rebalance : 0,
    };
    bpt_exchange_options options = BPT_EXCHANGE_OPTIONS_INIT;
    options.rule = bpt_train_rule(o, job->update);
    options.terms = job->terms;
    options.statistics = (bpt_statistics){job->statistics, job->n_statistics};
    BPT_TRY(read_velocity(job, c, &options.velocity));
    const bpt_model *trained = bpt_job_trained_model(job);
    options.n_elements = bpt_model_learned_elements(trained);
    options.n_servers = job->n_servers;
    options.wants = bpt_job_is_server(job) ? bpt_signals_wants : NULL;
    if (job->update == BPT_UPDATE_ALLREDUCE) { /* values travel as sums */
        options.n_elements = 0;
        options.statistics = (bpt_statistics){0};
    }
    options.initial = weights + bpt_model_frozen_elements(trained);
    if (o->max_staleness >= 0) options.max_staleness = (uint32_t)o->max_staleness;
    options.coordinator = &coordinator;
    options.partition = job->shares;
    options.log_path = log_path;
    options.part = idpa ? parts : NULL;
    if (c && c->exact) {
        options.snapshot_doc = c->state;
        options.snapshot = c->exchange;
    }
    return bpt_exchange_create(job->comm, &options, &job->exchange);
}

/* Where the samples are given out: who has which, and where the updates are logged. */
static bpt_status open_shares(bpt_job *job, char **log_path) {
    char name[48];
    if (!bpt_job_rounds(job)) return BPT_OK;
    if (!bpt_job_is_server(job))
        BPT_TRY(bpt_partition_create(bpt_train_order(job->options), job->epoch_samples,
                                     job->n_workers, bpt_job_rounds(job), &job->shares));
    snprintf(name, sizeof name, "exchange/updates.rank-%u.jsonl", job->rank);
    return bpt_run_folder_entry(job->run, name, log_path);
}

/* What a replay has to know and cannot work out. */
static bpt_status log_shards(const bpt_job *job) {
    if (job->rank != 0 || !bpt_update_is_async(job->update)) return BPT_OK;
    return bpt_shard_log_write(job->run, bpt_exchange_shards(job->exchange));
}

/* The bytes a second of what all ranks push, should each exchange as often as it may at first. */
static double pushed_bytes_per_s(const bpt_job *job, const double *speeds) {
    double speed = 0;
    for (uint32_t r = 0; r < job->n_workers; r++) speed += speeds[r];
    const double pushes = speed / (double)(job->options->batch_size * (int64_t)job->pace.least);
    return pushes *
           (double)(bpt_model_learned_elements(bpt_job_trained_model(job)) * sizeof(float));
}

/* @param[out] links bytes a second of each rank's, 0 where it is not known; largest part of the
 * weights that each has memory for; shape [n_ranks] */
static bpt_status gather_bounds(const bpt_job *job, double *links, double *largest) {
    bpt_memory_plan plan;
    BPT_TRY(bpt_comm_agree(job->comm, bpt_memory_plan_make(job, &plan)));
    const double mine = bpt_memory_plan_hosts(job, &plan);
    BPT_TRY(bpt_comm_allgather(job->comm, &mine, sizeof mine, largest));
    if (!(job->solo[0] > 0)) return BPT_OK; /* speeds are guesses: links are none */
    BPT_TRY(bpt_comm_link_speeds(job->comm, links));
    for (uint32_t r = 0; r < job->n_ranks && job->rank == 0; r++)
        if (links[r] > 0)
            bpt_info("global weights: rank %u on %s, its link carries %.3g MB/s each way", r,
                     bpt_comm_host(job->comm, r), links[r] * 1e-6);
    return BPT_OK;
}

/* @param[out] parts of the weights that each host has, which are servers where there are any;
 * shape [n_ranks] */
static bpt_status place_shards(const bpt_job *job, const double *speeds, double *parts) {
    const bool measured = job->solo[0] > 0;
    const bool apart = job->n_servers > 0;
    const uint32_t first = apart ? job->n_workers : 0;
    double *links = NULL, *largest = NULL;
    bpt_status status = BPT_NEW("speeds of links", job->n_ranks, &links);
    if (status == BPT_OK) status = BPT_NEW("rooms for shards", job->n_ranks, &largest);
    status = bpt_comm_agree(job->comm, status);
    if (status == BPT_OK) status = gather_bounds(job, links, largest);
    if (status == BPT_OK)
        bpt_place_shards(&(bpt_place_inputs){.n_ranks = job->n_ranks - first,
                                             .speed = speeds + first,
                                             .bytes_per_s = measured ? links + first : NULL,
                                             .pushed_bytes_per_s = pushed_bytes_per_s(job, speeds),
                                             .largest = largest + first,
                                             .apart = apart,
                                             .in_rounds = !bpt_update_is_async(job->update),
                                             .guessed = !measured},
                         parts);
    bpt_free(largest);
    bpt_free(links);
    return status;
}

static bpt_status open_exchange(bpt_job *job, const float *weights, const bpt_checkpoint *c) {
    if (job->update == BPT_UPDATE_LOCAL) return BPT_OK;
    char *log_path = NULL;
    double *speeds = NULL, *parts = NULL;
    bpt_status status = open_shares(job, &log_path);
    if (status == BPT_OK) status = BPT_NEW("speeds", job->n_ranks, &speeds);
    if (status == BPT_OK) status = BPT_NEW("parts of the shards", job->n_ranks, &parts);
    if (status == BPT_OK)
        status =
            bpt_statistic_spans(bpt_job_trained_model(job), &job->statistics, &job->n_statistics);
    status = bpt_comm_agree(job->comm, status);
    if (status == BPT_OK) status = bpt__job_speeds(job, speeds);
    if (status == BPT_OK && goes_by_speed(job)) status = place_shards(job, speeds, parts);
    if (status == BPT_OK) status = make_exchange(job, weights, c, speeds, parts, log_path);
    if (status == BPT_OK && job->update == BPT_UPDATE_ALLREDUCE)
        status = bpt_gradient_sums_open(job->comm, bpt_job_trained_model(job), bpt_job_trained(job),
                                        &job->sums);
    if (status == BPT_OK) status = bpt_comm_agree(job->comm, log_shards(job));
    if (status == BPT_OK && c && c->exact && job->shares) /* the part before has told of these */
        job->noted_rounds = bpt_partition_rounds(job->shares);
    bpt_free(parts);
    bpt_free(speeds);
    bpt_free(log_path);
    return status;
}

static bpt_status open_feed(bpt_job *job, const bpt_checkpoint *c) {
    if (bpt_job_is_server(job)) return BPT_OK;
    const bpt_train_options *o = job->options;
    const bpt_order order = bpt_train_order(o);
    bpt_sampler *sampler;
    if (job->shares)
        BPT_TRY(bpt_sampler_create_local(order, job->rank, job->shares, &sampler));
    else
        BPT_TRY(bpt_sampler_create_global(order, job->epoch_samples, (uint64_t)o->batch_size,
                                          job->first_sample, &sampler));
    bpt_sampler_state state = {0};
    if (c && c->exact)
        state = c->sampler;
    else if (c && !job->shares) /* the global order is that of any number of ranks */
        state.position = c->count.progress / (uint64_t)o->batch_size * (uint64_t)o->batch_size;
    const bpt_status status = c ? bpt_sampler_state_set(sampler, &state) : BPT_OK;
    if (status != BPT_OK) {
        bpt_sampler_free(sampler);
        return status;
    }
    const bpt_loader_options options =
        bpt_feed_options(o, job->train, job->batch, bpt_device_takes_images(job->device));
    return bpt_feed_create(job->dataset, job->train, &options, job->records, job->held_out, sampler,
                           &job->feed);
}

/* The records that are held out, if any are, and where the rank is in them. */
static bpt_status open_quality(bpt_job *job, const bpt_checkpoint *c) {
    const uint32_t held_out = (uint32_t)job->held_out;
    if (held_out == 0 || bpt_job_is_server(job)) return BPT_OK;
    const bpt_quality_state state = c && c->exact ? c->quality : (bpt_quality_state){0};
    BPT_TRY(bpt_held_out_draw((uint64_t)job->options->seed, job->train->count, held_out,
                              &job->records));
    return bpt_quality_create(job->dataset, job->train, job->records, held_out, job->batch,
                              bpt_device_takes_images(job->device), state, &job->quality);
}

/* @return the first layer that is frozen with weights of --init-except, as they are drawn; NULL:
 * there is none */
static const bpt_layer *find_drawn(const bpt_job *job) {
    const bpt_model *m = job->model;
    for (size_t i = 0; i < m->n_frozen; i++) {
        const bpt_layer *l = &m->layers[i];
        if (l->n_segments > 0 && bpt_safetensors_excepts(job->options->init_except,
                                                         m->segments.items[l->first_segment].name))
            return l;
    }
    return NULL;
}

/* What a run that begins anew begins with. */
static void say_weights(const bpt_job *job) {
    const bpt_train_options *o = job->options;
    if (!o->init_weights) {
        if (job->model->n_frozen > 0)
            bpt_warn(
                "the layers before %s stay as they are drawn: --init-weights names weights "
                "that have learnt",
                o->freeze_before);
        return;
    }
    bpt_info("weights begin as those of %s%s%s", o->init_weights,
             o->init_except ? ", but not those of " : "", o->init_except ? o->init_except : "");
    const bpt_layer *drawn = find_drawn(job);
    if (drawn)
        bpt_warn(
            "layer %s stays as it is drawn: --init-except names it, and --freeze-before %s "
            "freezes it",
            drawn->name, o->freeze_before);
}

/* Weights, the optimiser's state and counters: from a checkpoint, or as at the start of a run. The
 * weights of rank 0 go to all: initial values may differ in the last bit between unlike machines.
 */
static bpt_status set_state(bpt_job *job, const bpt_checkpoint *c, float *weights) {
    const size_t n = job->model->segments.n_elements;
    bpt_status status = BPT_OK;
    if (c) {
        status = bpt_checkpoint_read(c, job, weights);
        job->count = c->count;
        if (!c->exact) job->seconds_before = c->count.seconds;
    } else if (job->rank == 0) {
        status = bpt_initial_weights(job->options, &job->model->segments, weights);
        if (status == BPT_OK) say_weights(job);
    }
    BPT_TRY(bpt_comm_agree(job->comm, status));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, weights, n * sizeof *weights));
    return bpt_comm_agree(job->comm, bpt_job_set_weights(job, weights));
}

bpt_status bpt__job_open_state(bpt_job *job) {
    float *weights = NULL;
    bpt_checkpoint checkpoint = {0};
    bool found = false;
    bpt_status status = BPT_OK;
    if (job->options->resume) status = bpt_checkpoint_open(job, &found, &checkpoint);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, status), done);
    if (found) BPT_TRY_GOTO(status, bpt_agree_on_checkpoint(job, checkpoint.path), done);
    status = BPT_NEW("initial weights", job->model->segments.n_elements, &weights);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, status), done);
    BPT_TRY_GOTO(status, bpt__job_settle(job, &found, &checkpoint), done);
    const bpt_checkpoint *c = found ? &checkpoint : NULL;
    BPT_TRY_GOTO(status, set_state(job, c, weights), done);
    BPT_TRY_GOTO(status, bpt__job_begin_run(job, !c), done);
    BPT_TRY_GOTO(status, open_exchange(job, weights, c), done);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, open_quality(job, c)), done);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, open_feed(job, c)), done);
    BPT_TRY_GOTO(status, bpt__job_open_delivery(job), done);
    job->next_eval = bpt_coordinator_next(job->count.progress, job->eval_every);
    job->next_checkpoint = bpt_coordinator_next(job->count.progress, job->checkpoint_every);
    if (job->rank == 0)
        job->checkpoint_clock =
            bpt_checkpoint_clock_begin(job->options->checkpoint_minutes, bpt_clock_ns());
    job->eval_due = c && c->eval_due;
    BPT_TRY_GOTO(status, bpt_comm_broadcast(job->comm, 0, &job->eval_due, sizeof job->eval_due),
                 done);
    if (c) bpt_info("going on from %s at epoch %.2f", c->path, bpt_job_epoch(job));
    if (job->rank == 0 && job->count.progress >= job->total_samples)
        bpt_warn("nothing is left to train: --epochs has %g", job->options->epochs);
    bpt_checkpoint_warn(job, c);
done:
    bpt_free(weights);
    bpt_checkpoint_close(&checkpoint);
    return status;
}
