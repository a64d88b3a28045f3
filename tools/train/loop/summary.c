/* The end of a job: accuracy of the final weights, the weights themselves, and what every rank did.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "inner/cpu/cpu_library.h"
#include "inner/weights/safetensors.h"
#include "outer/comm/watch.h"
#include "tools/precision.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job.h"
#include "tools/train/loop/train_loop.h"
#include "tools/train/report/rank_table.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static double as_seconds(uint64_t ns) {
    return (double)ns * 1e-9;
}

static void summarise_rank(bpt_job *job, bpt_rank_summary *r) {
    bpt_exchange_stats x = {0};
    r->count = bpt_job_count(job);
    /* Not known of parts and devices; a checkpoint of a version that told nothing apart has work
     * all the same.
     */
    if (job->placed || job->device) r->count.path_ns = r->count.work_ns = 0;
    if (job->exchange) bpt_exchange_stats_get(job->exchange, &x);
    memcpy(r->staleness, x.staleness, sizeof r->staleness);
    memcpy(r->spread, x.spread, sizeof r->spread);
    r->seconds = r->count.seconds - job->seconds_before - as_seconds(r->count.eval_ns);
    r->solo = job->solo[job->rank];
    r->threads = job->n_threads;
    if (job->device) snprintf(r->device, sizeof r->device, "%s", job->device->name);
    if (!bpt_job_is_server(job)) {
        r->loader_threads = (uint64_t)job->options->loader_threads;
        r->prefetch = (uint64_t)job->options->prefetch;
        bpt_cpu_kernels(r->kernels, sizeof r->kernels);
        snprintf(r->precision, sizeof r->precision, "%s",
                 bpt_precision_text((bpt_precision)job->options->precision, job->device));
        snprintf(r->policy, sizeof r->policy, "%s", job->options->policy);
        r->tuned = job->options->tuning != NULL;
        r->cuts = bpt_network_n_cuts(bpt_job_trained(job)) > 0;
    }
    if (job->delivery) {
        bpt_delivery_stats(job->delivery, &r->data);
        r->data_found = bpt_delivery_found(job->delivery);
    }
}

static void put_rank(const bpt_job *job, uint32_t rank, const bpt_rank_summary *r,
                     uint64_t all_samples, bpt_json_writer *w) {
    const bpt_counters *c = &r->count;
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "rank", rank);
    bpt_json_put_text(w, "host", bpt_comm_host(job->comm, rank));
    bpt_json_put_text(w, "role", rank < job->n_workers ? "worker" : "server");
    bpt_json_put_text(w, "device", r->device[0] ? r->device : "cpu");
    bpt_json_put_text(w, "precision", r->precision);
    bpt_json_put_text(w, "kernels", r->kernels);
    bpt_json_put_u64(w, "threads", r->threads);
    bpt_json_put_text(w, "policy", r->policy);
    bpt_json_put_u64(w, "loader_threads", r->loader_threads);
    bpt_json_put_u64(w, "prefetch", r->prefetch);
    bpt_json_put_bool(w, "tuned", r->tuned);
    bpt_json_put_bool(w, "cuts", r->cuts);
    bpt_json_put_u64(w, "samples", c->samples);
    bpt_json_put_u64(w, "steps", c->steps);
    bpt_json_put_real(w, "images_per_s", bpt_rank_images_per_s(c));
    bpt_json_put_real(w, "solo_images_per_s", r->solo);
    bpt_json_put_real(w, "efficiency", bpt_rank_efficiency(r));
    bpt_json_put_real(w, "share", all_samples ? (double)c->samples / (double)all_samples : 0);
    bpt_json_put_text(w, "limit", bpt_rank_limit(r));
    bpt_json_put_real(w, "compute_s", as_seconds(c->compute_ns));
    bpt_json_put_real(w, "path_s", as_seconds(c->path_ns));
    bpt_json_put_real(w, "work_s", as_seconds(c->work_ns));
    bpt_json_put_real(w, "wait_s", as_seconds(c->wait_ns));
    bpt_json_put_real(w, "data_wait_s", as_seconds(c->data_wait_ns));
    bpt_json_put_real(w, "eval_s", as_seconds(c->eval_ns));
    bpt_json_put_real(w, "quality_s", as_seconds(c->quality_ns));
    bpt_json_put_real(w, "comm_cpu_s", as_seconds(c->comm_cpu_ns));
    bpt_json_put_u64(w, "submissions", c->submissions);
    bpt_json_put_u64(w, "bytes_sent", c->payload_sent_bytes + c->header_sent_bytes);
    bpt_json_put_u64(w, "bytes_received", c->payload_received_bytes + c->header_received_bytes);
    bpt_json_put_u64(w, "payload_bytes_sent", c->payload_sent_bytes);
    bpt_json_put_u64(w, "payload_bytes_received", c->payload_received_bytes);
    bpt_json_put_u64(w, "border_bytes_sent", c->border_sent_bytes);
    bpt_json_put_u64(w, "border_bytes_received", c->border_received_bytes);
    bpt_json_put_u64(w, "data_samples_found", r->data_found);
    bpt_json_put_u64(w, "data_samples_received", r->data.items_kept);
    bpt_json_put_u64(w, "data_bytes_received", r->data.item_bytes_kept);
    bpt_json_put_u64(w, "data_samples_sent", r->data.items_sent);
    bpt_json_put_u64(w, "data_bytes_sent", r->data.item_bytes_sent);
    bpt_json_put_u64(w, "peak_rss_bytes", c->peak_rss_bytes);
    bpt_json_close_object(w);
}

/* A histogram of all ranks together, up to its last entry that is not 0.
 * @param offset of that of each rank in its summary */
static void put_counts(const char *key, const bpt_rank_summary *ranks, uint32_t n, size_t offset,
                       bpt_json_writer *w) {
    uint64_t sum[BPT_STALENESS_BUCKETS] = {0};
    size_t last = 0;
    for (uint32_t r = 0; r < n; r++) {
        const uint64_t *counts = (const uint64_t *)((const char *)&ranks[r] + offset);
        for (size_t s = 0; s < BPT_STALENESS_BUCKETS; s++) {
            sum[s] += counts[s];
            if (sum[s] && s > last) last = s;
        }
    }
    bpt_json_open_array(w, key);
    for (size_t s = 0; s <= last; s++) bpt_json_put_u64(w, NULL, sum[s]);
    bpt_json_close_array(w);
}

static void put_summary(const bpt_job *job, const bpt_rank_summary *ranks, bpt_json_writer *w) {
    uint64_t samples = 0, rss = 0;
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        samples += ranks[r].count.samples;
        if (ranks[r].count.peak_rss_bytes > rss) rss = ranks[r].count.peak_rss_bytes;
    }
    const double seconds = ranks[0].count.seconds;
    bpt_json_open_object(w, NULL);
    bpt_json_put_real(w, "test_accuracy", job->test_accuracy);
    bpt_json_put_real(w, "test_loss", job->test_loss);
    bpt_json_put_real(w, "epochs", bpt_job_epoch(job));
    bpt_json_put_u64(w, "steps", job->count.progress / job->batch_all);
    bpt_json_put_u64(w, "samples", job->count.progress);
    bpt_json_put_real(w, "seconds", seconds);
    bpt_json_put_real(w, "images_per_s", (double)job->count.progress / seconds);
    bpt_json_put_real(w, "efficiency", bpt_job_efficiency(ranks, job->n_workers));
    bpt_json_put_text(w, "model", job->model->name);
    bpt_json_put_u64(w, "weight_bytes", job->model->segments.n_elements * sizeof(float));
    bpt_json_put_u64(w, "frozen_bytes", bpt_model_frozen_elements(job->model) * sizeof(float));
    bpt_json_put_text(w, "update", bpt_update_choice_name(job->update));
    bpt_json_put_u64(w, "servers", job->n_servers);
    bpt_json_put_text(w, "partition", bpt_partition_choice_name(job->partition));
    bpt_json_put_text(w, "data_mode",
                      bpt_data_mode_name(job->delivery ? BPT_DATA_SCATTER : BPT_DATA_SHARED));
    bpt_json_open_array(w, "ranks");
    for (uint32_t r = 0; r < job->n_ranks; r++) put_rank(job, r, &ranks[r], samples, w);
    bpt_json_close_array(w);
    put_counts("staleness", ranks, job->n_ranks, offsetof(bpt_rank_summary, staleness), w);
    put_counts("shard_spread", ranks, job->n_ranks, offsetof(bpt_rank_summary, spread), w);
    bpt_json_put_u64(w, "peak_rss_bytes", rss);
    bpt_json_close_object(w);
}

static void say_ranks(const bpt_job *job, const bpt_rank_summary *ranks) {
    if (job->n_ranks > 1)
        bpt_rank_table_say(job, ranks);
    else
        bpt_rank_limit_say(&ranks[0]);
}

static void say_summary(const bpt_job *job, const bpt_rank_summary *ranks) {
    say_ranks(job, ranks);
    if (job->delivery)
        bpt_info("rank 0 has given out %llu samples, %.1f MB",
                 (unsigned long long)ranks[0].data.items_sent,
                 1e-6 * (double)ranks[0].data.item_bytes_sent);
    bpt_job_warn_of_unseen(job);
    bpt_info("done: %s accuracy %.4f after %.2f epochs in %.1f s (%.0f img/s); see %s/summary.json",
             job->test->name, job->test_accuracy, bpt_job_epoch(job), ranks[0].count.seconds,
             (double)job->count.progress / ranks[0].count.seconds, bpt_run_folder_path(job->run));
}

static bpt_status write_weights(bpt_job *job) {
    char *path;
    const bpt_metadata metadata[] = {
        {"format", "pt"}, {"model", job->model->name}, {"made_by", "bpt-train " BPT_VERSION}};
    BPT_TRY(bpt_network_get(job->network, BPT_VECTOR_WEIGHTS, job->flat));
    bpt_segments_settle(&job->model->segments, job->flat);
    BPT_TRY(bpt_run_folder_entry(job->run, "model.safetensors", &path));
    const bpt_status status = bpt_safetensors_write(path, &job->model->segments, job->flat,
                                                    metadata, sizeof metadata / sizeof *metadata);
    bpt_free(path);
    return status;
}

/* Where there is a checkpoint not all is lost. */
static bpt_status explain_failure(const bpt_job *job, bpt_status status) {
    const bpt_error error = *bpt_error_last();
    const bool has_one = bpt_checkpoint_expect(bpt_run_folder_path(job->run)) == BPT_OK;
    bpt_error_put(&error);
    if (status == BPT_ENOSPC && has_one)
        bpt_hint("make room, then go on from the last checkpoint with --resume auto");
    return status;
}

static bpt_status write_end_event(bpt_job *job) {
    bpt_json_writer *w = &job->json;
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "event", "end");
    bpt_json_put_real(w, "epoch", bpt_job_epoch(job));
    bpt_json_put_u64(w, "step", job->count.progress / job->batch_all);
    bpt_json_put_real(w, "seconds", job->count.seconds + bpt_clock_seconds_since(job->start_ns));
    bpt_json_put_real(w, "accuracy", job->test_accuracy);
    bpt_json_put_real(w, "loss", job->test_loss);
    bpt_json_close_object(w);
    return bpt_run_folder_metric(job->run, w);
}

static bpt_status write_results(bpt_job *job, const bpt_rank_summary *ranks) {
    BPT_TRY(write_weights(job));
    BPT_TRY(write_end_event(job));
    put_summary(job, ranks, &job->json);
    BPT_TRY(bpt_run_folder_json(job->run, "summary.json", &job->json));
    say_summary(job, ranks);
    return BPT_OK;
}

/* What every rank has done until now, on all ranks. Collective.
 * @param status of this rank until here: none does it where one has failed
 * @param[out] all to be freed in any case; shape [n_ranks] */
static bpt_status gather(bpt_job *job, bpt_status status, bpt_rank_summary **all) {
    bpt_rank_summary mine = {0};
    *all = NULL;
    if (status == BPT_OK) status = BPT_NEW("summaries", job->n_ranks, all);
    BPT_TRY(bpt_comm_agree(job->comm, status));
    summarise_rank(job, &mine);
    return bpt_comm_allgather(job->comm, &mine, sizeof mine, *all);
}

void bpt_train_say_ranks(bpt_job *job) {
    bpt_rank_summary *all;
    const bool told_of_steps = bpt_clock_seconds_since(job->start_ns) >= job->options->log_interval;
    if (gather(job, BPT_OK, &all) == BPT_OK && job->rank == 0 && told_of_steps) say_ranks(job, all);
    bpt_free(all);
}

bpt_status bpt_train_finish(bpt_job *job) {
    bpt_rank_summary *all;
    bool stopped;
    job->count.unreported = 0;
    BPT_TRY(bpt_job_evaluate(job, true, &stopped));
    if (stopped) return bpt_train_meet(job, BPT_MEET_STOP, &stopped);
    bpt_comm_doing(job->comm, "the end of the run");
    bpt_status status =
        gather(job, job->delivery ? bpt_delivery_settle(job->delivery) : BPT_OK, &all);
    if (status == BPT_OK && job->rank == 0) {
        status = write_results(job, all);
        bpt_job_draw(job, true);
        if (status != BPT_OK) status = explain_failure(job, status);
    }
    bpt_free(all);
    return bpt_comm_agree(job->comm, status);
}
