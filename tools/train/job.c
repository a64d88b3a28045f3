/* How a job is put together; what it does is in job_step.c. */
#include "tools/train/job.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/checkpoint.h"
#include "tools/train/rank_threads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- choices that depend on the number of ranks ---- */

static bpt_status choose_modes(bpt_job *job) {
    const bpt_train_options *o = job->options;
    job->update = (bpt_update_choice)o->update;
    if (job->update == BPT_UPDATE_AUTO)
        job->update = job->n_ranks == 1 ? BPT_UPDATE_LOCAL : BPT_UPDATE_AGWU;
    if (job->update == BPT_UPDATE_LOCAL && job->n_ranks > 1) {
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "--update local trains on one rank, this job has %u", job->n_ranks);
        bpt_hint("choose --update agwu, sgwu or allreduce");
        return status;
    }
    job->partition = (bpt_partition_choice)o->partition;
    if (job->partition == BPT_PARTITION_AUTO)
        job->partition = job->update == BPT_UPDATE_ALLREDUCE || job->update == BPT_UPDATE_LOCAL
                             ? BPT_PARTITION_EVEN
                             : BPT_PARTITION_IDPA;
    if (job->update == BPT_UPDATE_LOCAL && job->partition == BPT_PARTITION_IDPA)
        return bpt_fail(BPT_EUSAGE,
                        "--partition idpa shares the data out among ranks, this job has "
                        "one that trains alone");
    return BPT_OK;
}

static bool exchanges_weights(const bpt_job *job) {
    return job->update == BPT_UPDATE_AGWU || job->update == BPT_UPDATE_SGWU;
}

uint32_t bpt_job_rounds(const bpt_job *job) {
    if (!exchanges_weights(job)) return 0;
    return job->partition == BPT_PARTITION_IDPA ? (uint32_t)job->options->idpa_rounds : 1;
}

/* Samples of this rank's step, and where they begin in a batch of all ranks. */
static bpt_status choose_batch(bpt_job *job, uint64_t *offset) {
    const uint64_t batch = (uint64_t)job->options->batch_size;
    *offset = 0;
    job->batch = (uint32_t)batch;
    job->batch_all = batch * job->n_ranks;
    if (job->update != BPT_UPDATE_ALLREDUCE) return BPT_OK;
    if (batch < job->n_ranks) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "a batch of %llu samples cannot be shared by %u ranks",
                     (unsigned long long)batch, job->n_ranks);
        bpt_hint("under allreduce --batch-size is that of all ranks together");
        return status;
    }
    const uint64_t begin = batch * job->rank / job->n_ranks;
    const uint64_t end = batch * (job->rank + 1) / job->n_ranks;
    *offset = begin;
    job->batch = (uint32_t)(end - begin);
    job->batch_all = batch;
    return BPT_OK;
}

static void choose_rate(bpt_job *job) {
    const bpt_train_options *o = job->options;
    job->schedule = bpt_train_schedule(o);
    if (o->lr_scale == BPT_LR_SCALE_LINEAR && exchanges_weights(job))
        job->schedule.base *= job->n_ranks;
}

/* ---- parts ---- */

static bpt_status open_data(bpt_job *job) {
    const bpt_train_options *o = job->options;
    BPT_TRY(bpt_dataset_open(o->data, &job->dataset));
    BPT_TRY(bpt_dataset_find(job->dataset, o->train_split, &job->train));
    BPT_TRY(bpt_dataset_find(job->dataset, o->test_split, &job->test));
    if (job->train->count == 0 || job->test->count == 0)
        return bpt_fail(BPT_EDATA, "%s: split \"%s\" is empty", o->data,
                        job->train->count == 0 ? o->train_split : o->test_split);
    job->epoch_samples = job->train->count;
    job->total_samples = (uint64_t)ceil(o->epochs * (double)job->epoch_samples);
    return BPT_OK;
}

static bpt_status open_network(bpt_job *job) {
    const bpt_dataset_info *info = bpt_dataset_describe(job->dataset);
    const bpt_train_options *o = job->options;
    const bpt_model_override shape = {
        .input = {.c = info->C, .h = info->H, .w = info->W},
        .classes = info->n_classes,
    };
    BPT_TRY(bpt_model_load(o->model, &shape, &job->model));
    bpt_pool_options pool = BPT_POOL_OPTIONS_INIT;
    pool.n_workers = job->n_threads;
    BPT_TRY(bpt_pool_create(&pool, &job->pool));
    BPT_TRY(bpt_network_create(job->model, job->batch, bpt_train_learning(o), job->pool,
                               &job->network));
    return BPT_NEW("flat vector", job->model->segments.n_elements, &job->flat);
}

/* Rank 0's part: what may be there depends on what is asked for. */
static bpt_status open_first(bpt_job *job) {
    const bpt_train_options *o = job->options;
    bpt_run_folder_mode mode = o->force ? BPT_RUN_REPLACE : BPT_RUN_NEW;
    if (o->resume && (strcmp(o->resume, "auto") == 0 || bpt_run_folder_holds(o->output, o->resume)))
        mode = BPT_RUN_GO_ON;
    if (o->resume && o->force && mode == BPT_RUN_GO_ON) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "--force would remove %s, which --resume goes on from", o->output);
        bpt_hint("leave out --force to go on, or --resume to start anew");
        return status;
    }
    BPT_TRY(bpt_run_folder_open(o->output, mode, &job->run));
    bpt_train_options repeat = *o;
    repeat.force = false; /* whoever repeats the run does not mean to lose it */
    return bpt_run_folder_config(job->run, &bpt_train_command, &repeat);
}

static bpt_status open_log(const bpt_job *job) {
    char name[32], *path;
    snprintf(name, sizeof name, "log.rank-%u.txt", job->rank);
    BPT_TRY(bpt_run_folder_entry(job->run, name, &path));
    const bpt_status status = bpt_log_file(path);
    bpt_free(path);
    return status;
}

static bpt_status open_run(bpt_job *job) {
    const bpt_train_options *o = job->options;
    bpt_status status = BPT_OK;
    if (job->rank == 0) {
        const bool automatic = o->resume && strcmp(o->resume, "auto") == 0;
        if (o->resume && !automatic) status = bpt_checkpoint_expect(o->resume);
        if (status == BPT_OK) status = open_first(job);
        job->finished = status == BPT_OK && automatic && bpt_run_folder_finished(job->run);
    }
    BPT_TRY(bpt_comm_agree(job->comm, status));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, &job->finished, sizeof job->finished));
    if (job->rank != 0) BPT_TRY(bpt_run_folder_open(o->output, BPT_RUN_JOIN, &job->run));
    return open_log(job);
}

/* The speed that IDPA believes in before it has measured any. */
static bpt_status gather_speeds(bpt_job *job, double *speeds) {
    const double mine = bpt_rank_threads_speed(job->n_threads);
    return bpt_comm_allgather(job->comm, &mine, sizeof mine, speeds);
}

static bpt_status make_exchange(bpt_job *job, const float *weights, const bpt_checkpoint *c,
                                const double *speeds, const char *log_path) {
    const bpt_train_options *o = job->options;
    const bool async = job->update == BPT_UPDATE_AGWU;
    const bool idpa = job->partition == BPT_PARTITION_IDPA;
    const bpt_coordinator_options coordinator = {
        .n_ranks = job->n_ranks,
        .total_samples = job->total_samples,
        .checkpoint_every = (uint64_t)o->checkpoint_every * job->batch_all,
        .eval_every = async ? 0 : (uint64_t)(o->eval_every * (double)job->epoch_samples),
        .progress = c && !c->exact ? c->count.progress : 0,
        .n_samples = job->shares ? job->epoch_samples : 0,
        .n_rounds = bpt_job_rounds(job),
        .speed = idpa ? speeds : NULL,
    };
    bpt_exchange_options options = BPT_EXCHANGE_OPTIONS_INIT;
    BPT_TRY(bpt_update_rule_find(bpt_update_choice_name(job->update), &options.rule));
    options.n_elements = job->model->segments.n_elements;
    options.initial = weights;
    if (o->max_staleness >= 0) options.max_staleness = (uint32_t)o->max_staleness;
    options.coordinator = &coordinator;
    options.partition = job->shares;
    options.log_path = log_path;
    if (c && c->exact) {
        options.snapshot_doc = c->state;
        options.snapshot = c->exchange;
    }
    return bpt_exchange_create(job->comm, &options, &job->exchange);
}

static bpt_status open_exchange(bpt_job *job, const float *weights, const bpt_checkpoint *c) {
    if (job->update == BPT_UPDATE_LOCAL) return BPT_OK;
    char name[48], *log_path = NULL;
    double *speeds;
    bpt_status status;
    if (exchanges_weights(job)) {
        BPT_TRY(bpt_partition_create((uint64_t)job->options->seed, job->epoch_samples, job->n_ranks,
                                     bpt_job_rounds(job), &job->shares));
        snprintf(name, sizeof name, "exchange/updates.rank-%u.jsonl", job->rank);
        BPT_TRY(bpt_run_folder_entry(job->run, name, &log_path));
    }
    BPT_TRY_GOTO(status, BPT_NEW("speeds", job->n_ranks, &speeds), done);
    status = gather_speeds(job, speeds);
    if (status == BPT_OK) status = make_exchange(job, weights, c, speeds, log_path);
    bpt_free(speeds);
done:
    bpt_free(log_path);
    return status;
}

static bpt_status open_feed(bpt_job *job, uint64_t offset, const bpt_checkpoint *c) {
    const bpt_train_options *o = job->options;
    const uint64_t seed = (uint64_t)o->seed;
    bpt_sampler *sampler;
    if (job->shares)
        BPT_TRY(bpt_sampler_create_local(seed, job->rank, job->shares, &sampler));
    else
        BPT_TRY(bpt_sampler_create_global(seed, job->epoch_samples, (uint64_t)o->batch_size, offset,
                                          &sampler));
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
    return bpt_feed_create(job->dataset, job->train, job->batch, (uint32_t)o->loader_threads,
                           (uint32_t)o->prefetch, sampler, &job->feed);
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
    } else {
        bpt_segments_initialise(&job->model->segments, (uint64_t)job->options->seed, weights);
    }
    BPT_TRY(bpt_comm_agree(job->comm, status));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, weights, n * sizeof *weights));
    return bpt_network_set(job->network, BPT_VECTOR_WEIGHTS, weights);
}

/* The first multiple of @p every behind @p progress. */
static uint64_t next_due(uint64_t progress, uint64_t every) {
    return every ? (progress / every + 1) * every : UINT64_MAX;
}

static void set_due(bpt_job *job) {
    const bpt_train_options *o = job->options;
    job->next_eval =
        next_due(job->count.progress, (uint64_t)(o->eval_every * (double)job->epoch_samples));
    job->next_checkpoint =
        next_due(job->count.progress, (uint64_t)o->checkpoint_every * job->batch_all);
}

static bpt_status open_state(bpt_job *job, uint64_t offset) {
    float *weights = NULL;
    bpt_checkpoint checkpoint = {0};
    bool found = false;
    bpt_status status = BPT_OK;
    if (job->options->resume) status = bpt_checkpoint_open(job, &found, &checkpoint);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, status), done);
    const bpt_checkpoint *c = found ? &checkpoint : NULL;
    if (job->rank == 0)
        status = c ? bpt_run_folder_go_on(job->run) : bpt_run_folder_restart(job->run);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, status), done);
    status = BPT_NEW("initial weights", job->model->segments.n_elements, &weights);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, status), done);
    BPT_TRY_GOTO(status, set_state(job, c, weights), done);
    BPT_TRY_GOTO(status, open_exchange(job, weights, c), done);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, open_feed(job, offset, c)), done);
    set_due(job);
    if (c && c->exact && c->next_eval) job->next_eval = c->next_eval;
    if (c) bpt_info("going on from %s at epoch %.2f", c->path, bpt_job_epoch(job));
    if (c && !c->exact && job->rank == 0)
        bpt_warn(
            "%s is of another job (%s differs): the optimiser's state and the order of "
            "samples start anew",
            c->path, c->differs);
done:
    bpt_free(weights);
    bpt_checkpoint_close(&checkpoint);
    return status;
}

static bpt_status write_start_event(bpt_job *job) {
    bpt_json_writer *w = &job->json;
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "event", "start");
    bpt_json_put_text(w, "version", BPT_VERSION);
    bpt_json_put_text(w, "model", job->model->name);
    bpt_json_put_u64(w, "ranks", job->n_ranks);
    bpt_json_put_u64(w, "batch_size", job->batch_all);
    bpt_json_put_u64(w, "train_samples", job->epoch_samples);
    bpt_json_put_real(w, "epoch", bpt_job_epoch(job));
    bpt_json_put_u64(w, "step", job->count.progress / job->batch_all);
    bpt_json_close_object(w);
    return bpt_run_folder_metric(job->run, w);
}

static void say_what_starts(const bpt_job *job) {
    bpt_info("%s: %zu weights; %s: %u training and %u test images, %u classes", job->model->name,
             job->model->segments.n_elements, job->options->data, job->train->count,
             job->test->count, (unsigned)job->model->classes);
    bpt_info("%u rank%s, update %s, partition %s, %u thread%s on this rank", job->n_ranks,
             job->n_ranks == 1 ? "" : "s", bpt_update_choice_name(job->update),
             job->partition == BPT_PARTITION_IDPA ? "idpa" : "even", job->n_threads,
             job->n_threads == 1 ? "" : "s");
    bpt_info("batch: %u samples a step of this rank, %llu of all ranks; %llu samples to train on",
             job->batch, (unsigned long long)job->batch_all,
             (unsigned long long)job->total_samples);
    bpt_info("optimizer %s, learning rate %g, schedule %s, warm-up %g epochs",
             bpt_network_learning(job->network).optimizer->name, job->schedule.base,
             job->schedule.kind->name, job->schedule.warmup_epochs);
    if (job->schedule.base != job->options->lr)
        bpt_info("that is %g x %u ranks (--lr-scale linear)", job->options->lr, job->n_ranks);
    for (uint32_t i = 0; job->exchange && i < bpt_shard_count(bpt_exchange_shards(job->exchange));
         i++) {
        char line[200];
        bpt_shard_describe(bpt_exchange_shards(job->exchange), i, line, sizeof line);
        bpt_info("placement: %s (%s)", line, bpt_comm_host(job->comm, i));
    }
}

static bpt_status open_all(bpt_job *job) {
    uint64_t offset;
    BPT_TRY(choose_modes(job));
    BPT_TRY(choose_batch(job, &offset));
    choose_rate(job);
    BPT_TRY(bpt_rank_threads_choose(job->comm, (unsigned)job->options->threads, &job->n_threads));
    BPT_TRY(bpt_comm_agree(job->comm, open_data(job)));
    BPT_TRY(bpt_comm_agree(job->comm, open_network(job)));
    BPT_TRY(bpt_comm_agree(job->comm, open_run(job)));
    if (job->finished) {
        bpt_info("%s is finished already", bpt_run_folder_path(job->run));
        return BPT_OK;
    }
    BPT_TRY(open_state(job, offset));
    say_what_starts(job);
    return bpt_comm_agree(job->comm, job->rank == 0 ? write_start_event(job) : BPT_OK);
}

bpt_status bpt_job_open(bpt_job *job, const bpt_train_options *options, bpt_comm *comm) {
    *job = (bpt_job){
        .options = options,
        .comm = comm,
        .rank = bpt_comm_rank(comm),
        .n_ranks = bpt_comm_size(comm),
    };
    const bpt_status status = open_all(job);
    if (status != BPT_OK) {
        bpt_job_close(job);
        return status;
    }
    job->comm_cpu_before_s = bpt_comm_cpu_seconds(comm);
    job->start_ns = job->interval.start_ns = bpt_clock_ns();
    job->interval.progress = job->count.progress;
    return BPT_OK;
}

void bpt_job_close(bpt_job *job) {
    bpt_feed_free(job->feed);
    if (job->exchange)
        (void)bpt_exchange_destroy(job->exchange); /* its log was flushed by finish */
    bpt_partition_free(job->shares);
    bpt_network_free(job->network);
    bpt_pool_free(job->pool);
    bpt_model_free(job->model);
    bpt_dataset_close(job->dataset);
    bpt_run_folder_close(job->run);
    (void)bpt_log_file(NULL);
    bpt_json_free(&job->json);
    bpt_free(job->flat);
    *job = (bpt_job){0};
}
