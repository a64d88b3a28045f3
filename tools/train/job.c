/* How a job is put together. What is chosen for it is in job_choices.c, where it starts from in
 * job_state.c, and what it does in job_step.c. */
#include "tools/train/job.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/checkpoint.h"
#include "tools/train/job_parts.h"
#include "tools/train/memory_plan.h"
#include "tools/train/rank_threads.h"

#include <stdio.h>
#include <string.h>

static bpt_status open_data(bpt_job *job) {
    const bpt_train_options *o = job->options;
    BPT_TRY(bpt_dataset_open(o->data, &job->dataset));
    BPT_TRY(bpt_dataset_find(job->dataset, o->train_split, &job->train));
    BPT_TRY(bpt_dataset_find(job->dataset, o->test_split, &job->test));
    if (job->train->count == 0 || job->test->count == 0)
        return bpt_fail(BPT_EDATA, "%s: split \"%s\" is empty", o->data,
                        job->train->count == 0 ? o->train_split : o->test_split);
    return bpt__job_choose_lengths(job);
}

static bpt_status open_network(bpt_job *job) {
    const bpt_dataset_info *info = bpt_dataset_describe(job->dataset);
    const bpt_train_options *o = job->options;
    const bpt_model_override shape = {
        .input = {.c = info->C, .h = info->H, .w = info->W},
        .classes = info->n_classes,
    };
    BPT_TRY(bpt_model_load(o->model, &shape, &job->model));
    BPT_TRY(bpt_memory_plan_check(job));
    bpt_pool_options pool = BPT_POOL_OPTIONS_INIT;
    pool.n_workers = job->n_threads;
    BPT_TRY(bpt_policy_find(o->policy, &pool.policy));
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
    /* Whoever repeats the run does not mean to lose this one, nor its trace. */
    repeat.force = false;
    repeat.trace = NULL;
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
    BPT_TRY(bpt__job_choose(job));
    BPT_TRY(bpt_rank_threads_choose(job->comm, (unsigned)job->options->threads, &job->n_threads,
                                    &job->ranks_on_host));
    BPT_TRY(bpt_comm_agree(job->comm, open_data(job)));
    BPT_TRY(bpt_comm_agree(job->comm, open_network(job)));
    BPT_TRY(bpt_comm_agree(job->comm, open_run(job)));
    if (job->finished) {
        bpt_info("%s is finished already", bpt_run_folder_path(job->run));
        return BPT_OK;
    }
    BPT_TRY(bpt__job_open_state(job));
    BPT_TRY(bpt_step_trace_open(job->options, job->comm, job->pool, &job->trace));
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
    job->interval.wait_ns = job->count.wait_ns;
    return BPT_OK;
}

void bpt_job_close(bpt_job *job) {
    bpt_step_trace_close(job->trace);
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
