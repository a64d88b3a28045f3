#include "tools/train/report/rank_table.h"

#include "base/log.h"
#include "base/memory.h"
#include "tools/device_option.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/report/bottleneck.h"
#include "tools/train/report/contribution.h"

#include <stdio.h>
#include <string.h>

double bpt_rank_images_per_s(const bpt_counters *c) {
    return c->compute_ns ? (double)c->samples * 1e9 / (double)c->compute_ns : 0;
}

/* In training, whatever the rank did there. */
static double in_job(const bpt_rank_summary *r) {
    return r->seconds > 0 ? (double)r->count.samples / r->seconds : 0;
}

double bpt_rank_efficiency(const bpt_rank_summary *r) {
    return r->solo > 0 ? in_job(r) / r->solo : 0;
}

double bpt_job_efficiency(const bpt_rank_summary *ranks, uint32_t n) {
    double together = 0, alone = 0;
    for (uint32_t r = 0; r < n; r++) {
        if (!(ranks[r].solo > 0)) return 0;
        together += in_job(&ranks[r]);
        alone += ranks[r].solo;
    }
    return together / alone;
}

/* ---- what limits a rank ---- */

static bpt_time_spent time_of(const bpt_rank_summary *r) {
    const bpt_counters *c = &r->count;
    return (bpt_time_spent){
        .total_ns = r->seconds > 0 ? (uint64_t)(r->seconds * 1e9) : 0,
        .data_ns = c->data_wait_ns,
        .messages_ns = c->wait_ns,
        .steps_ns = c->step_ns,
        .path_ns = c->path_ns,
        .work_ns = c->work_ns,
    };
}

const char *bpt_rank_limit(const bpt_rank_summary *r) {
    const bpt_time_spent t = time_of(r);
    return r->count.steps > 0 ? bpt_bottleneck_name(bpt_bottleneck_of(&t)) : "";
}

static double percent(uint64_t part, uint64_t whole) {
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

void bpt_rank_limit_say(const bpt_rank_summary *r) {
    const bpt_time_spent t = time_of(r);
    if (r->count.steps == 0) return;
    bpt_info(
        "training was limited by %s (of its time: in steps %.1f%%, waiting for data %.1f%%, for "
        "messages %.1f%%, between steps %.1f%%)",
        bpt_bottleneck_text(bpt_bottleneck_of(&t)), percent(t.steps_ns, t.total_ns),
        percent(t.data_ns, t.total_ns), percent(t.messages_ns, t.total_ns),
        percent(bpt_time_between_ns(&t), t.total_ns));
}

/* ---- what a rank is worth ---- */

static bpt_effort effort_of(const bpt_rank_summary *r) {
    return (bpt_effort){
        .samples = r->count.samples,
        .submissions = r->count.submissions,
        .compute_s = (double)r->count.compute_ns * 1e-9,
        .comm_s = (double)r->count.comm_cpu_ns * 1e-9,
        .threads = (uint32_t)r->threads,
    };
}

/* All hosts but that of one rank, as mpirun takes them. @return whether they fit in */
static bool list_others(const bpt_job *job, uint32_t rank, char *list, size_t size) {
    size_t length = 0;
    list[0] = 0;
    for (uint32_t r = 0; r < job->n_ranks && length < size; r++)
        if (r != rank)
            length += (size_t)snprintf(list + length, size - length, "%s%s", length ? "," : "",
                                       bpt_comm_host(job->comm, r));
    return length < size;
}

static void warn_of(const bpt_job *job, uint32_t rank, const char *why) {
    char others[512];
    if (!list_others(job, rank, others, sizeof others))
        snprintf(others, sizeof others, "LIST, or a --hostfile, without it"); /* too many to name */
    bpt_warn("rank %u on %s costs more than it brings: %s; mpirun --host %s leaves it out", rank,
             bpt_comm_host(job->comm, rank), why, others);
}

/* @param total images a second of all ranks */
static void judge(const bpt_job *job, const bpt_effort *efforts, uint32_t rank, double seconds,
                  double total) {
    const double noise = 0.02; /* of a job: less is not worth a word */
    char why[160];
    if (bpt_update_is_async(job->update)) {
        const double gain = bpt_gain_without_async(efforts, job->n_workers, rank, seconds);
        if (gain <= noise * total) return;
        snprintf(why, sizeof why,
                 "without it the others would do %.0f img/s more than now, by what "
                 "they spend on its pushes",
                 gain);
    } else {
        const double saved = bpt_gain_without_sync(efforts, job->n_workers, rank);
        if (saved <= noise) return;
        snprintf(why, sizeof why, "all wait for it, without it the job would take %.0f%% less time",
                 100 * saved);
    }
    warn_of(job, rank, why);
}

static void judge_all(const bpt_job *job, const bpt_rank_summary *ranks) {
    bpt_effort *efforts = NULL;
    if (BPT_NEW("efforts of ranks", job->n_workers, &efforts) != BPT_OK) return; /* only a hint */
    double total = 0;
    for (uint32_t r = 0; r < job->n_workers; r++) {
        efforts[r] = effort_of(&ranks[r]);
        total += in_job(&ranks[r]);
    }
    for (uint32_t r = 0; r < job->n_workers; r++) judge(job, efforts, r, ranks[0].seconds, total);
    bpt_free(efforts);
}

/* ---- the table ---- */

enum { DEVICE_SIZE = 24 };

/* Of columns that are as wide as what they hold. */
typedef struct {
    int host, device;
} widths;

static void widen(int *width, const char *text) {
    const int length = (int)strlen(text);
    if (length > *width) *width = length;
}

static widths find_widths(const bpt_job *job, const bpt_rank_summary *ranks) {
    widths w = {.host = (int)strlen("host"), .device = (int)strlen("device")};
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        char device[DEVICE_SIZE];
        bpt_device_short_name(ranks[r].device, device, sizeof device);
        widen(&w.host, bpt_comm_host(job->comm, r));
        widen(&w.device, device);
    }
    return w;
}

static void say_server(const bpt_job *job, uint32_t r, widths w) {
    bpt_info("%4u  %-*s  %-*s  %8s  %8s  %6s  %10s  %6s  %6s  %s", r, w.host,
             bpt_comm_host(job->comm, r), w.device, "server", "-", "-", "-", "-", "-", "-", "-");
}

static void say_rank(const bpt_job *job, const bpt_rank_summary *ranks, uint32_t r, widths w,
                     uint64_t all) {
    const bpt_counters *c = &ranks[r].count;
    const uint64_t busy = c->compute_ns + c->wait_ns + c->eval_ns + c->quality_ns;
    char alone[40] = "-", efficiency[40] = "-", device[DEVICE_SIZE];
    bpt_device_short_name(ranks[r].device, device, sizeof device);
    if (ranks[r].solo > 0) {
        snprintf(alone, sizeof alone, "%.0f", ranks[r].solo);
        snprintf(efficiency, sizeof efficiency, "%.2f", bpt_rank_efficiency(&ranks[r]));
    }
    bpt_info("%4u  %-*s  %-*s  %8.0f  %8s  %5.1f%%  %10s  %5.1f%%  %5.1f%%  %s", r, w.host,
             bpt_comm_host(job->comm, r), w.device, device, in_job(&ranks[r]), alone,
             percent(c->samples, all), efficiency, percent(c->wait_ns, busy),
             percent(c->data_wait_ns, busy), c->steps > 0 ? bpt_rank_limit(&ranks[r]) : "-");
}

void bpt_rank_table_say(const bpt_job *job, const bpt_rank_summary *ranks) {
    const widths w = find_widths(job, ranks);
    uint64_t all = 0;
    for (uint32_t r = 0; r < job->n_ranks; r++) all += ranks[r].count.samples;
    bpt_info("rank  %-*s  %-*s     img/s     alone   share  efficiency  waited    data  limit",
             w.host, "host", w.device, "device");
    for (uint32_t r = 0; r < job->n_workers; r++) say_rank(job, ranks, r, w, all);
    for (uint32_t r = job->n_workers; r < job->n_ranks; r++) say_server(job, r, w);
    const double efficiency = bpt_job_efficiency(ranks, job->n_workers);
    if (efficiency > 0) bpt_info("together %.2f of the sum of what each does alone", efficiency);
    if (job->n_workers > 1) judge_all(job, ranks);
}
