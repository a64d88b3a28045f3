/* What all ways of training do alike. How a job is put together is in job.c. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "outer/comm/notice.h"
#include "outer/comm/watch.h"
#include "tools/evaluate.h"
#include "tools/train/job/chance.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/signals.h"
#include "tools/train/options/train_rule.h"

#include <sys/resource.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

double bpt_job_epoch(const bpt_job *job) {
    return (double)(job->count.progress + job->count.unreported) / (double)job->epoch_samples;
}

static uint64_t peak_rss_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

bpt_counters bpt_job_count(const bpt_job *job) {
    bpt_exchange_stats x = {0};
    if (job->exchange) bpt_exchange_stats_get(job->exchange, &x);
    const double comm_cpu_s = bpt_comm_cpu_seconds(job->comm) - job->comm_cpu_before_s;
    const uint64_t rss = peak_rss_bytes();
    bpt_counters now = job->count;
    now.seconds += bpt_clock_seconds_since(job->start_ns);
    if (job->feed) now.data_wait_ns += bpt_feed_wait_ns(job->feed);
    now.comm_cpu_ns += (uint64_t)(comm_cpu_s * 1e9);
    now.submissions += x.pushes;
    now.payload_sent_bytes += x.payload_sent_bytes;
    now.payload_received_bytes += x.payload_received_bytes;
    now.header_sent_bytes += x.header_sent_bytes;
    now.header_received_bytes += x.header_received_bytes;
    if (job->sums) {
        const bpt_reduction_stats s = bpt_gradient_sums_stats(job->sums);
        now.payload_sent_bytes += s.sent_bytes;
        now.payload_received_bytes += s.received_bytes;
    }
    if (job->placed) {
        const bpt_relay_stats r = bpt_placed_stats(job->placed);
        now.payload_sent_bytes += r.payload_sent_bytes + r.local_bytes;
        now.payload_received_bytes += r.payload_received_bytes + r.local_bytes;
        now.header_sent_bytes += r.header_sent_bytes;
        now.header_received_bytes += r.header_received_bytes;
        now.border_sent_bytes += r.payload_sent_bytes + r.local_bytes;
        now.border_received_bytes += r.payload_received_bytes + r.local_bytes;
    }
    if (now.peak_rss_bytes < rss) now.peak_rss_bytes = rss;
    return now;
}

float bpt_job_rate(const bpt_job *job) {
    const uint64_t step = job->update == BPT_UPDATE_ALLREDUCE ? job->batch_all : job->batch;
    return (float)bpt_schedule_rate(&job->schedule, bpt_job_epoch(job),
                                    (double)step / (double)job->epoch_samples);
}

/* The network names where it began (input, layer or weights); who trains knows when.
 * @param when before the number of the step */
static bpt_status name_time(const bpt_job *job, const char *when, uint64_t step,
                            bpt_status status) {
    if (status != BPT_ENUMERIC) return status;
    bpt_error_record(status, "%s %" PRIu64 " (epoch %.2f, rank %u): %.400s", when, step,
                     bpt_job_epoch(job), job->rank, bpt_error_last()->text);
    bpt_hint("lower %s%s%s--lr (it is %g, %g after scaling)%s",
             bpt_job_shared_momentum(job).gain > 1 ? "--shared-momentum or " : "",
             job->terms.momentum > 0 ? "--server-momentum or " : "",
             job->terms.compensation > 0 ? "--delay-compensation or " : "", job->options->lr,
             job->schedule.base,
             job->placed ? " or lengthen --warmup-epochs"
                         : ", lengthen --warmup-epochs, or bound the gradient with --clip-norm");
    return status;
}

bpt_status bpt_job_name_step(const bpt_job *job, uint64_t step, bpt_status status) {
    return name_time(job, "step", step, status);
}

/* @param[out] wait_ns of the time it takes, spent waiting for other ranks */
static bpt_status compute(bpt_job *job, const bpt_batch *batch, bool gradient_only,
                          bpt_batch_result *result, uint64_t *wait_ns) {
    const bpt_draw draw = {(uint64_t)job->options->seed, job->count.steps, job->first_sample};
    const float rate = bpt_job_rate(job), own = (float)job->batch;
    const float all = gradient_only ? (float)job->batch_all : own;
    *wait_ns = 0;
    if (job->sums) bpt_gradient_sums_begin(job->sums);
    assert(!job->placed || !batch->second_labels); /* such a job is refused */
    if (job->placed) return bpt_placed_step(job->placed, batch, draw, rate, all, result, wait_ns);
    bpt_network_set_draw(job->network, draw);
    bpt_network_set_second(job->network, batch->second_labels, batch->second_parts);
    if (job->device) bpt_network_set_next(job->network, bpt_feed_peek(job->feed));
    if (gradient_only)
        return bpt_network_gradient(job->network, batch->input, batch->labels, all, result);
    return bpt_network_train(job->network, batch->input, batch->labels, rate, own, result);
}

/* What it took, and what it could have taken with more workers or fewer waits among tasks. */
static void note_step_time(bpt_job *job, uint64_t step_ns) {
    job->count.step_ns += step_ns;
    if (job->placed || job->device) return; /* runs of several networks; one task */
    job->count.path_ns += bpt_network_critical_path(job->network);
    job->count.work_ns += bpt_network_last_run(job->network).busy_ns / job->n_threads;
}

bpt_status bpt_job_step(bpt_job *job, bool gradient_only) {
    bpt_step_trace_begin(job->trace, job->count.steps + 1);
    const uint64_t start_ns = bpt_clock_ns();
    bpt_batch batch;
    bpt_batch_result result;
    bpt_status status;
    uint64_t wait_ns;
    if (job->delivery) BPT_TRY(bpt_delivery_advance(job->delivery, job->feed));
    bpt_comm_operation_begin(job->comm, "data from the loader");
    status = bpt_feed_next(job->feed, &batch);
    bpt_comm_operation_end(job->comm);
    BPT_TRY(status);
    bpt_step_trace_wait(job->trace, "data", start_ns);
    const float rate = bpt_job_rate(job);
    const uint64_t loaded_ns = bpt_clock_ns();
    BPT_TRY(bpt_job_name_step(job, job->count.steps + 1,
                              compute(job, &batch, gradient_only, &result, &wait_ns)));
    if (!gradient_only) bpt_step_trace_end(job->trace);
    const uint64_t end_ns = bpt_clock_ns();
    note_step_time(job, end_ns - loaded_ns - wait_ns);
    job->count.compute_ns += end_ns - start_ns - wait_ns;
    job->count.wait_ns += wait_ns;
    job->count.steps++;
    job->count.samples += batch.n;
    job->count.unreported += batch.n;
    job->rates += (double)rate;
    job->last_loss = result.loss_sum / (double)result.n_samples;
    job->interval.loss_sum += result.loss_sum;
    job->interval.loss_samples += result.n_samples;
    return BPT_OK;
}

bpt_status bpt_job_apply(bpt_job *job, float rate) {
    BPT_TRY(
        bpt_job_name_step(job, job->count.steps, bpt_network_apply(bpt_job_trained(job), rate)));
    bpt_step_trace_end(job->trace);
    return BPT_OK;
}

void bpt_job_note_reply(bpt_job *job, const bpt_reply *reply) {
    bpt_interval *i = &job->interval;
    const uint64_t last = BPT_STALENESS_BUCKETS - 1;
    job->count.progress = reply->progress;
    job->count.unreported = 0;
    i->stale[reply->staleness < last ? reply->staleness : last]++;
    i->n_stale++;
    if (reply->staleness > i->stale_max) i->stale_max = reply->staleness;
    if (reply->spread > i->spread_max) i->spread_max = reply->spread;
}

/* ---- progress ---- */

static uint64_t stale_median(const bpt_interval *i) {
    uint64_t seen = 0;
    for (uint64_t s = 0; s < BPT_STALENESS_BUCKETS; s++) {
        seen += i->stale[s];
        if (2 * seen >= i->n_stale) return s;
    }
    return 0;
}

typedef struct {
    double seconds, loss, images_per_s, data_share, wait_share, eta_s;
    float rate;
    uint64_t step;
} progress;

static progress measure(const bpt_job *job) {
    const bpt_interval *i = &job->interval;
    const uint64_t now_progress = job->count.progress + job->count.unreported;
    const double seconds = bpt_clock_seconds_since(i->start_ns);
    const double rate = (double)(now_progress - i->progress) / seconds;
    return (progress){
        .seconds = seconds,
        .loss = i->loss_samples ? i->loss_sum / (double)i->loss_samples : job->last_loss,
        .images_per_s = rate,
        .data_share = (double)(bpt_feed_wait_ns(job->feed) - i->data_wait_ns) * 1e-9 / seconds,
        .wait_share = (double)(job->count.wait_ns - i->wait_ns) * 1e-9 / seconds,
        .eta_s = rate > 0 && now_progress < job->total_samples
                     ? (double)(job->total_samples - now_progress) / rate
                     : 0.0,
        .rate = bpt_job_rate(job),
        .step = now_progress / job->batch_all,
    };
}

static void print_progress(const bpt_job *job, const progress *p) {
    char line[256], stale[64] = "", eta[BPT_TIME_LEFT_SIZE];
    if (bpt_update_is_async(job->update))
        snprintf(stale, sizeof stale, " stale p50 %" PRIu64 " max %" PRIu64,
                 stale_median(&job->interval), job->interval.stale_max);
    bpt_text_time_left(p->eta_s, eta);
    snprintf(line, sizeof line,
             "step %" PRIu64 "/%" PRIu64
             " epoch %.1f loss %.3f lr %.1e %.0f img/s data %.0f%% wait %.0f%%%s eta %s",
             p->step, (job->total_samples + job->batch_all - 1) / job->batch_all,
             bpt_job_epoch(job), p->loss, (double)p->rate, p->images_per_s, 100 * p->data_share,
             100 * p->wait_share, stale, eta);
    bpt_log_progress(line);
}

static void put_where(bpt_job *job) {
    bpt_json_writer *w = &job->json;
    bpt_json_put_real(w, "epoch", bpt_job_epoch(job));
    bpt_json_put_u64(w, "step", (job->count.progress + job->count.unreported) / job->batch_all);
    bpt_json_put_real(w, "seconds", job->count.seconds + bpt_clock_seconds_since(job->start_ns));
}

static bpt_status write_step_event(bpt_job *job, const progress *p) {
    bpt_json_writer *w = &job->json;
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "event", "step");
    put_where(job);
    bpt_json_put_real(w, "loss", p->loss);
    bpt_json_put_real(w, "lr", (double)p->rate);
    bpt_json_put_real(w, "images_per_s", p->images_per_s);
    bpt_json_put_real(w, "data_wait", p->data_share);
    bpt_json_put_real(w, "rank_wait", p->wait_share);
    if (bpt_update_is_async(job->update)) {
        bpt_json_put_u64(w, "stale_p50", stale_median(&job->interval));
        bpt_json_put_u64(w, "stale_max", job->interval.stale_max);
        bpt_json_put_u64(w, "shard_spread_max", job->interval.spread_max);
    }
    bpt_json_close_object(w);
    bpt_comm_operation_begin(job->comm, "the run folder");
    const bpt_status status = bpt_run_folder_metric(job->run, w);
    bpt_comm_operation_end(job->comm);
    return status;
}

static bpt_status report(bpt_job *job) {
    const progress p = measure(job);
    print_progress(job, &p);
    const bpt_status status = write_step_event(job, &p);
    job->interval = (bpt_interval){
        .start_ns = bpt_clock_ns(),
        .progress = job->count.progress + job->count.unreported,
        .wait_ns = job->count.wait_ns,
        .data_wait_ns = bpt_feed_wait_ns(job->feed),
    };
    return status;
}

bpt_status bpt_job_report(bpt_job *job) {
    const bool due = bpt_clock_seconds_since(job->interval.start_ns) >= job->options->log_interval;
    return job->rank == 0 && due ? report(job) : BPT_OK;
}

bpt_status bpt_job_report_rest(bpt_job *job) {
    return job->rank == 0 && job->interval.loss_samples > 0 ? report(job) : BPT_OK;
}

/* ---- what is asked by signal and by time ---- */

/* Who pushes early has to ask for a meeting, by which a replay knows such a push: so room is looked
 * for first, and once. */
static bool is_due_by_time(bpt_job *job) {
    bpt_checkpoint_clock *const clock = &job->checkpoint_clock;
    const uint64_t now_ns = bpt_clock_ns();
    if (!job->checkpoint_has_room && bpt_checkpoint_clock_due(clock, now_ns)) {
        bpt_checkpoint_clock_put_off(clock, now_ns, 0);
        bpt_comm_operation_begin(job->comm, "the disk");
        job->checkpoint_has_room = bpt__job_has_room(job);
        bpt_comm_operation_end(job->comm);
    }
    return job->checkpoint_has_room;
}

bool bpt_job_is_asked(bpt_job *job) {
    return bpt_signals_asked() || bpt_comm_stop_told(job->comm) || is_due_by_time(job);
}

uint32_t bpt_job_wants(bpt_job *job) {
    const uint32_t by_time = is_due_by_time(job) ? BPT_MEET_CHECKPOINT_IF_ROOM : 0;
    job->checkpoint_has_room = false;
    return bpt_signals_wants() | (bpt_comm_stop_told(job->comm) ? BPT_MEET_STOP : 0) | by_time;
}

/* ---- evaluation ---- */

static bpt_status write_eval_event(bpt_job *job) {
    bpt_json_writer *w = &job->json;
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "event", "eval");
    put_where(job);
    bpt_json_put_text(w, "split", job->test->name);
    bpt_json_put_real(w, "loss", job->test_loss);
    bpt_json_put_real(w, "accuracy", job->test_accuracy);
    bpt_json_close_object(w);
    return bpt_run_folder_metric(job->run, w);
}

/* What one rank adds to an evaluation. */
typedef struct {
    bpt_batch_result result;
    uint64_t stopped;
} contribution;

/* @param[out] all the sum */
static bpt_status sum_contributions(bpt_job *job, const contribution *mine, contribution *all) {
    contribution *each;
    BPT_TRY(bpt_comm_table(job->comm, "evaluation results", mine, sizeof *mine, (void **)&each));
    *all = (contribution){0};
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        all->result.loss_sum += each[r].result.loss_sum;
        all->result.n_correct += each[r].result.n_correct;
        all->result.n_samples += each[r].result.n_samples;
        all->stopped |= each[r].stopped;
    }
    bpt_free(each);
    return BPT_OK;
}

/* One rank is told to stop, and all that evaluate hear of it. */
static bool stop_told(const void *comm) {
    return bpt_comm_stop_told(comm);
}

static bpt_status evaluate_part(bpt_job *job, bool together, contribution *mine) {
    if (bpt_job_is_server(job)) return BPT_OK;
    const bpt_record_range all = {.count = job->test->count};
    const bpt_record_range part = together ? bpt_job_test_part(job) : all;
    if (together && job->delivery) BPT_TRY(bpt_delivery_await_test(job->delivery));
    const bpt_evaluation e = {
        .dataset = job->dataset,
        .split = job->test,
        .normalise = job->train,
        .first = part.first,
        .count = part.count,
        .batch = job->batch,
        .loader_threads = (uint32_t)job->options->loader_threads,
        .stop = stop_told,
        .stop_arg = job->comm,
    };
    const bpt_status status = bpt_evaluate(job->network, &e, &mine->result);
    mine->stopped = status == BPT_ESTOPPED;
    return mine->stopped ? BPT_OK : status;
}

/* The loss alone does not tell: a network that is certain of everything, also where it errs, may
 * have any while it is mostly right.
 * @param chance bpt_chance_loss() */
static bool guesses(const bpt_job *job, double chance) {
    return job->test_loss >= 0.99 * chance &&
           bpt_chance_reaches(job->test_accuracy, job->test->per_class,
                              (uint32_t)job->model->classes);
}

/* Once: a rate that is too high leaves a network that answers the same to every image, with no
 * error anywhere. After so few steps the running statistics of batch norms, by which a network is
 * judged, are not yet those of its weights. */
static void warn_of_chance(bpt_job *job) {
    enum { FEW_STEPS = 100 };
    const bpt_train_options *o = job->options;
    const double begun = 1.0 + o->warmup_epochs; /* epochs after which it should have begun */
    const double chance = bpt_chance_loss(job->train->per_class, (uint32_t)job->model->classes);
    if (job->warned_of_chance || job->count.steps < FEW_STEPS || bpt_job_epoch(job) < begun ||
        !guesses(job, chance))
        return;
    job->warned_of_chance = true;
    bpt_warn(
        "the network does no better than guessing (a loss of %.4f): the rate of %g%s may be too "
        "high: lower --lr, or bound gradients by --clip-norm 1",
        chance, job->schedule.base, job->schedule.base > o->lr ? ", --lr times the ranks," : "");
}

static bpt_status evaluate(bpt_job *job, bool together, bool *stopped) {
    const uint64_t start_ns = bpt_clock_ns();
    contribution mine = {0}, all;
    bpt_step_trace_pause(job->trace);
    const bpt_status status = name_time(job, "evaluation after step", job->count.steps,
                                        evaluate_part(job, together, &mine));
    all = mine;
    BPT_TRY(together ? bpt_comm_agree(job->comm, status) : status);
    if (together) BPT_TRY(sum_contributions(job, &mine, &all));
    job->count.eval_ns += bpt_clock_ns() - start_ns;
    *stopped = job->eval_due = all.stopped != 0;
    if (*stopped) return BPT_OK;
    job->test_loss = all.result.loss_sum / (double)all.result.n_samples;
    job->test_accuracy = (double)all.result.n_correct / (double)all.result.n_samples;
    if (job->rank != 0) return BPT_OK;
    bpt_info("epoch %.2f: %s accuracy %.4f, loss %.4f", bpt_job_epoch(job), job->test->name,
             job->test_accuracy, job->test_loss);
    warn_of_chance(job);
    BPT_TRY(
        bpt_run_folder_check(job->run)); /* better heard of now than when there is all to save */
    return write_eval_event(job);
}

bpt_status bpt_job_evaluate(bpt_job *job, bool together, bool *stopped) {
    bpt_comm_doing(job->comm, "an evaluation");
    const bpt_status status = evaluate(job, together, stopped);
    if (status == BPT_OK && !*stopped) bpt_job_draw(job, false);
    bpt_comm_doing(job->comm, "training");
    return status;
}
