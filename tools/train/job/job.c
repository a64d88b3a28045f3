/* How a job is put together. What is chosen for it is in job_choices.c, its dataset in job_data.c,
 * job_stage.c and job_delivery.c, its folder in job_run.c and job_chart.c, what is measured for it
 * in job_settle.c, where it starts from in job_state.c, and what it does in job_step.c. */
#include "tools/train/job/job.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "outer/comm/watch.h"
#include "tools/build_name.h"
#include "tools/staging.h"
#include "tools/train/job/agreement.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/layer_choice.h"
#include "tools/train/job/memory_plan.h"
#include "tools/train/job/rank_list.h"
#include "tools/train/job/rank_threads.h"
#include "tools/train/job/signals.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/run/tuning.h"

bpt_status bpt_job_check_batch_norms(const bpt_job *job) {
    const bpt_layer *layer;
    const uint32_t least = bpt_model_least_batch(job->model, &layer);
    if (job->batch >= least) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "batch norm %s has one value a channel where a step of this rank has one sample: "
                 "nothing passes it",
                 layer->name);
    bpt_hint(job->update == BPT_UPDATE_ALLREDUCE ? "raise --batch-size, which is that of all ranks"
                                                 : "raise --batch-size");
    return status;
}

bpt_status bpt__job_open_network(bpt_job *job) {
    const bpt_train_options *o = job->options;
    bpt_network_free(job->network);
    job->network = NULL;
    if (bpt_job_is_server(job)) return bpt_memory_plan_check(job);
    BPT_TRY(bpt_job_check_batch_norms(job));
    BPT_TRY(bpt_tuning_use(o, job->model, job->dataset, job->batch, job->cores,
                           job->n_ranks > 1 ? bpt_comm_host(job->comm, job->rank) : NULL));
    const bool named = bpt_layer_choice_is_named(job, &job->parting.border);
    job->parting.stage = named ? BPT_PARTING_BEFORE : BPT_PARTING_NONE;
    BPT_TRY(bpt_memory_plan_check(job));
    BPT_TRY(bpt_network_create_on(job->device, job->model, job->batch,
                                  bpt_train_activations(o, job->device),
                                  bpt_train_learning(o, job->lr_factor), job->pool, &job->network));
    bpt_device_option_say(job->network);
    bpt_tuning_expect(o, job->network);
    return BPT_OK;
}

static bpt_status open_engine(bpt_job *job) {
    BPT_TRY(bpt_job_load_model(job));
    BPT_TRY(bpt_layer_choice_check(job->options, job->model));
    if (!bpt_job_is_server(job))
        BPT_TRY(bpt_pool_open(job->options->policy, job->n_threads, &job->pool));
    BPT_TRY(bpt_job_read_choices(job->options, job->rank, job->device));
    BPT_TRY(bpt__job_open_network(job));
    const size_t n = job->model->segments.n_elements;
    BPT_TRY(BPT_NEW("flat vector", n, &job->flat));
    bpt_device_pin(job->device, job->flat, n * sizeof *job->flat, &job->flat_pinned);
    return BPT_OK;
}

static bpt_status write_start_event(bpt_job *job) {
    bpt_json_writer *w = &job->json;
    char time[32];
    bpt_clock_utc(time, sizeof time);
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "event", "start");
    bpt_json_put_text(w, "version", bpt_build_name);
    bpt_json_put_text(w, "time", time);
    bpt_json_put_text(w, "model", job->model->name);
    bpt_json_put_text(w, "data", job->options->data);
    bpt_json_put_text(w, "update", bpt_update_choice_name(job->update));
    bpt_json_put_real(w, "lr", job->options->lr);
    bpt_json_put_real(w, "lr_factor", job->lr_factor);
    bpt_json_put_u64(w, "ranks", job->n_ranks);
    bpt_json_put_u64(w, "servers", job->n_servers);
    bpt_json_put_u64(w, "batch_size", (uint64_t)job->options->batch_size);
    bpt_json_put_u64(w, "batch_size_all", job->batch_all);
    bpt_json_put_u64(w, "train_samples", job->epoch_samples);
    bpt_json_put_real(w, "epoch", bpt_job_epoch(job));
    bpt_json_put_u64(w, "step", job->count.progress / job->batch_all);
    bpt_json_put_real(w, "seconds", job->count.seconds);
    bpt_json_close_object(w);
    return bpt_run_folder_metric(job->run, w);
}

static bpt_status begin_metrics(bpt_job *job) {
    bpt_comm_operation_begin(job->comm, "the run folder");
    bpt_status status = write_start_event(job);
    if (status == BPT_OK) status = bpt__job_open_chart(job);
    bpt_comm_operation_end(job->comm);
    return status;
}

static void say_data(const bpt_job *job) {
    char running[48] = "";
    const size_t n_running = bpt_model_running_statistics(job->model);
    if (n_running) snprintf(running, sizeof running, " and %zu running statistics", n_running);
    bpt_info("%s: %zu parameters%s; %s: %u training and %u test images, %u classes",
             job->model->name, bpt_model_parameters(job->model), running, job->options->data,
             (unsigned)job->epoch_samples, job->test->count, (unsigned)job->model->classes);
    if (job->model->n_frozen > 0)
        bpt_info("the layers before %s are frozen: %zu of %zu values learn",
                 job->options->freeze_before, bpt_model_learned_elements(job->model),
                 job->model->segments.n_elements);
    if (job->train == job->test && job->rank == 0)
        bpt_warn(
            "split %s is trained on and tested with: accuracies are of images that were learnt",
            job->train->name);
    bpt__job_say_stage(job);
    if (bpt_job_scatters(job))
        bpt_info("the dataset is rank 0's; the others keep what they are given in %s/rank-N",
                 job->options->scratch);
}

/* Whether ranks wait for each other, for who does not know the names of the rules. */
static const char *manner_of(bpt_update_choice update) {
    if (update == BPT_UPDATE_LOCAL) return "";
    return bpt_update_is_async(update) ? " (asynchronous)" : " (synchronous)";
}

static void say_ranks(const bpt_job *job) {
    bpt_info("%u rank%s, update %s%s, partition %s, %u thread%s on this rank", job->n_ranks,
             job->n_ranks == 1 ? "" : "s", bpt_update_choice_name(job->update),
             manner_of(job->update), bpt_partition_choice_name(job->partition), job->n_threads,
             job->n_threads == 1 ? "" : "s");
    if (job->n_servers)
        bpt_info("the last %u of these ranks are servers and hold the global weights, %u train",
                 job->n_servers, job->n_workers);
    bpt_tuning_say(job->options);
}

/* What shares of the data, and the choice of an update, begin with. */
static void say_speeds(const bpt_job *job) {
    char list[BPT_RANK_LIST_SIZE] = "", one[96];
    if (job->n_workers == 1 || !(job->solo[0] > 0)) return; /* not measured */
    if (job->n_workers > BPT_RANK_LIST_MOST) bpt_rank_list(job->solo, job->n_workers, 0, "", list);
    for (uint32_t r = 0; r < job->n_workers && job->n_workers <= BPT_RANK_LIST_MOST; r++) {
        snprintf(one, sizeof one, "%.0f on %s", job->solo[r], bpt_comm_host(job->comm, r));
        bpt_list_add(list, sizeof list, one);
    }
    bpt_info("each alone, images a second by rank: %s", list);
}

static void say_samples(const bpt_job *job) {
    bpt_info("batch: %u sample%s a step of this rank, %llu of all ranks; %llu samples to train on",
             job->batch, job->batch == 1 ? "" : "s", (unsigned long long)job->batch_all,
             (unsigned long long)job->total_samples);
    if (job->options->order == BPT_ORDER_BLOCKS)
        bpt_info("samples come in blocks of %lld, shuffled among %d blocks at a time",
                 (long long)job->options->order_block, BPT_ORDER_WINDOW);
    if (job->options->order == BPT_ORDER_SEQUENTIAL) bpt_info("samples come as they are stored");
}

static void say_device(const bpt_job *job) {
    if (job->device)
        bpt_info("this rank computes on %s, %s", job->device->name,
                 bpt_precision_text((bpt_precision)job->options->precision, job->device));
    else if (bpt_train_activations(job->options, NULL) == BPT_BF16)
        bpt_info("activations and their gradients are bfloat16 on this rank");
}

static void say_learning(const bpt_job *job) {
    const bpt_learning learning = bpt_job_learning(job);
    bpt_info("optimizer %s%s, learning rate %g, schedule %s, warm-up %g epoch%s",
             learning.optimizer->name, learning.nesterov ? ", Nesterov's momentum" : "",
             job->schedule.base, job->schedule.kind->name, job->schedule.warmup_epochs,
             job->schedule.warmup_epochs == 1.0 ? "" : "s");
    if (job->schedule.warmup_start > 0 && job->schedule.warmup_epochs > 0)
        bpt_info("the warm-up begins at %g", job->schedule.warmup_start * job->schedule.base);
    if (job->lr_factor != 1)
        bpt_info("that is %g x %u %s (--lr-scale linear)", job->options->lr, job->n_workers,
                 job->n_servers ? "workers" : "ranks");
}

/* What is laid over the update. */
static void say_terms(const bpt_job *job) {
    if (job->terms.momentum > 0)
        bpt_info("server momentum %g: in the long run a push counts %.3g times",
                 job->terms.momentum, 1 / (1 - job->terms.momentum));
    if (job->held_out)
        bpt_info("%u training images are held out: each push counts by a rank's accuracy on some",
                 (unsigned)job->held_out);
    if (job->update == BPT_UPDATE_EASGD) bpt_info("elasticity %g", job->terms.elasticity);
    const bpt_shared_momentum all = bpt_job_shared_momentum(job);
    if (all.gain > 0)
        bpt_info("momentum of all ranks, gain %.3g%s", all.gain,
                 all.ranks > 0 ? ", less where their shares of the data are unequal" : "");
    if (job->terms.compensation > 0)
        bpt_info("delay compensation with lambda %g", job->terms.compensation);
}

static void say_shards(const bpt_job *job) {
    const bpt_shard_table *shards = bpt_exchange_shards(job->exchange);
    for (uint32_t i = 0; i < bpt_shard_count(shards); i++) {
        char line[200];
        bpt_shard_describe(shards, i, line, sizeof line);
        bpt_info("global weights: %s (%s)", line,
                 bpt_comm_host(job->comm, bpt_shard_at(shards, i)->host));
    }
}

static void say_what_starts(const bpt_job *job) {
    say_data(job);
    say_ranks(job);
    say_speeds(job);
    say_samples(job);
    say_device(job);
    say_learning(job);
    say_terms(job);
    if (bpt_train_augment(job->options).n > 0) bpt_info("augmentation %s", job->options->augment);
    if (job->exchange && !job->sums) say_shards(job);
    if (job->rank == 0) bpt__job_warn_late_end(job);
}

/* A job that is told to stop before it has changed anything, or while it waits for its first
 * samples, just ends; others save a checkpoint at their first step. One rank is told, all have to
 * know. */
bpt_status bpt__job_stop_if_told(bpt_job *job) {
    bool told;
    BPT_TRY(bpt_comm_any(job->comm, bpt_signals_stop(), &told));
    if (!told) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_ESTOPPED, "stopped before the first step, %s",
                 !job->begun                         ? "nothing is changed"
                 : bpt_run_folder_replaces(job->run) ? "what --force replaces is removed"
                                                     : "while samples came");
    bpt_hint("give the same command again");
    return status;
}

static void say_finished(const char *run) {
    const bool goes_on = bpt_checkpoint_expect(run) == BPT_OK;
    const char *file = goes_on ? "" : "/model.safetensors";
    char path[460], word[480]; /* a line of the log has room for it and for the run */
    const size_t length = (size_t)snprintf(path, sizeof path, "%s%s", run, file);
    const bool named = length < sizeof path && bpt_text_quote(path, word, sizeof word);
    if (!named) snprintf(word, sizeof word, "RUN%s", file);
    bpt_info("%s is finished already; another --output with %s %s trains on", run,
             goes_on ? "--resume" : "--init-weights", word);
}

static bpt_status open_all(bpt_job *job) {
    BPT_TRY(bpt_job_choose(job));
    BPT_TRY(bpt__job_open_device(job));
    BPT_TRY(bpt_rank_threads_choose(job->comm, (unsigned)job->options->threads, job->n_workers,
                                    job->device && !job->device->uses_cores, &job->n_threads,
                                    &job->cores, &job->ranks_on_host));
    BPT_TRY(bpt__job_stage_data(job));
    bpt_comm_operation_begin(job->comm, "the dataset");
    bpt_status opened = BPT_OK;
    if (bpt_job_scatters(job))
        opened = bpt__job_share_data(job);
    else if (!bpt_job_is_server(job))
        opened = bpt_job_open_data(job);
    bpt_comm_operation_end(job->comm);
    BPT_TRY(bpt_comm_agree(job->comm, opened));
    BPT_TRY(bpt_agree_on_dataset(job)); /* before its size counts */
    BPT_TRY(bpt__job_tell_servers(job));
    BPT_TRY(bpt_comm_agree(job->comm, bpt_job_choose_lengths(job)));
    BPT_TRY(bpt__job_stop_if_told(job));
    BPT_TRY(bpt_comm_agree(job->comm, open_engine(job)));
    BPT_TRY(bpt_agree_on_model(job));
    BPT_TRY(bpt__job_stop_if_told(job));
    BPT_TRY(bpt__job_open_run(job));
    if (job->finished) {
        say_finished(job->options->output);
        return BPT_OK;
    }
    BPT_TRY(bpt_step_trace_open(job->options, job->comm, job->pool, &job->trace));
    BPT_TRY(bpt__job_open_state(job));
    say_what_starts(job);
    BPT_TRY(bpt_comm_agree(job->comm, job->rank == 0 ? begin_metrics(job) : BPT_OK));
    bpt_run_folder_keep(job->run);
    return BPT_OK;
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
        (void)bpt_staging_blame(job->stage, status);
        bpt_job_close(job);
        return status;
    }
    job->comm_cpu_before_s = bpt_comm_cpu_seconds(comm);
    job->start_ns = job->interval.start_ns = bpt_clock_ns();
    job->interval.progress = job->count.progress;
    job->interval.wait_ns = job->count.wait_ns;
    bpt_comm_doing(comm, "training");
    return BPT_OK;
}

void bpt_job_close(bpt_job *job) {
    bpt_error error;
    bpt_error_get(&error); /* the reason for which it may be closed */
    bpt_step_trace_close(job->trace);
    bpt_chart_close(job->chart);
    bpt_quality_free(job->quality);
    bpt_feed_free(job->feed);
    bpt_delivery_close(job->delivery);
    if (job->exchange)
        (void)bpt_exchange_destroy(job->exchange); /* its log is written at meetings */
    bpt_free(job->statistics);
    bpt_free(job->records);
    bpt_partition_free(job->shares);
    bpt_placed_close(job->placed);
    bpt_network_free(job->network);
    bpt_gradient_sums_close(job->sums); /* the network hands out into it */
    bpt_device_unpin(&job->flat_pinned);
    bpt_device_close(job->device);
    bpt_pool_free(job->pool);
    bpt_model_free(job->model);
    bpt_job_close_data(job);
    bpt_run_folder_close(job->run);
    (void)bpt_log_file(NULL);
    bpt_json_free(&job->json);
    bpt_free(job->flat);
    bpt_free(job->solo);
    (void)bpt_error_put(&error);
    *job = (bpt_job){0};
}
