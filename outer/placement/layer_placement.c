#include "outer/placement/layer_placement.h"

#include <math.h>
#include <stdio.h>

enum { FLOAT_BYTES = 4 };

/* Of the classic plan's seconds: what a cut has to come to. */
static const double worth = 0.9;

/* ---- sums over layers ---- */

/* @return layers that the workers compute */
static size_t at_workers(const bpt_placement_job *job, size_t cut) {
    return cut == BPT_PLACEMENT_NONE ? job->n_layers : cut + 1;
}

static double parameters(const bpt_placement_job *job, size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; i++) sum += (double)job->layers[i].parameters;
    return sum;
}

static double worker_s(const bpt_placement_job *job, size_t cut) {
    double sum = 0;
    for (size_t i = 0; i < at_workers(job, cut); i++) sum += job->layers[i].worker_s;
    return sum;
}

static double server_s(const bpt_placement_job *job, size_t cut) {
    double sum = 0;
    for (size_t i = at_workers(job, cut); i < job->n_layers; i++) sum += job->layers[i].server_s;
    return sum;
}

/* ---- bytes and seconds of a cut ---- */

/* Of one worker's step. */
static double border_bytes(const bpt_placement_job *job, size_t cut) {
    if (cut == BPT_PLACEMENT_NONE) return 0;
    const double of_sample =
        2.0 * job->value_bytes * (double)job->layers[cut].values + job->label_bytes;
    return job->batch * of_sample;
}

/* Of weights and gradients, of one worker's step. */
static double exchange_bytes(const bpt_placement_job *job, size_t cut) {
    return 2.0 * FLOAT_BYTES * parameters(job, 0, at_workers(job, cut)) / job->steps_per_exchange;
}

/* Workers whose bytes come over a wire to a given rank. */
static double n_senders(const bpt_placement_job *job) {
    return job->n_workers - 1.0;
}

double bpt_placement_bytes(const bpt_placement_job *job, size_t cut) {
    return n_senders(job) * (exchange_bytes(job, cut) + border_bytes(job, cut));
}

double bpt_placement_link_bytes(const bpt_placement_job *job, size_t cut) {
    return n_senders(job) * (exchange_bytes(job, cut) / job->n_workers + border_bytes(job, cut));
}

double bpt_placement_seconds(const bpt_placement_job *job, size_t cut) {
    const double worker = worker_s(job, cut), server = server_s(job, cut);
    const double all_servers = job->n_workers * server;
    const double link = bpt_placement_link_bytes(job, cut) / job->bytes_per_s;
    if (!job->overlaps) return worker + link + all_servers;
    const double alone = worker + border_bytes(job, cut) / job->bytes_per_s + server;
    return fmax(alone, fmax(all_servers, link));
}

double bpt_placement_memory(const bpt_placement_job *job, size_t cut) {
    double values = (double)job->layers[cut].values;
    for (size_t i = cut + 1; i < job->n_layers; i++) values += (double)job->layers[i].values;
    const double samples = (double)job->n_workers * job->batch;
    return (double)FLOAT_BYTES * job->copies * parameters(job, cut + 1, job->n_layers) +
           2.0 * job->value_bytes * samples * values;
}

/* ---- words ---- */

static const char *name_of(const bpt_placement_job *job, size_t cut) {
    return job->layers[cut + 1].name;
}

/* @return digits of a ratio behind its point */
static int digits(double ratio) {
    return ratio < 2 ? 2 : 1;
}

/* "8.9 times fewer bytes", "1.03 times the bytes" */
static void describe_bytes(double classic, double bytes, char *text, size_t size) {
    const bool fewer = bytes < classic;
    const double ratio = fewer ? classic / bytes : bytes / classic;
    snprintf(text, size, "%.*f times %s", digits(ratio), ratio,
             fewer ? "fewer bytes" : "the bytes");
}

static bpt_placement evaluate(const bpt_placement_job *job, size_t cut) {
    return (bpt_placement){
        .cut = cut,
        .bytes = bpt_placement_bytes(job, cut),
        .seconds = bpt_placement_seconds(job, cut),
        .classic_bytes = bpt_placement_bytes(job, BPT_PLACEMENT_NONE),
        .classic_seconds = bpt_placement_seconds(job, BPT_PLACEMENT_NONE),
    };
}

/* @param cut one that pays */
static bpt_placement place(const bpt_placement_job *job, size_t cut) {
    bpt_placement p = evaluate(job, cut);
    const double ratio = p.classic_seconds / p.seconds;
    char bytes[64];
    describe_bytes(p.classic_bytes, p.bytes, bytes, sizeof bytes);
    snprintf(p.reason, sizeof p.reason, "%.32s: %s, %.*f times as fast as without",
             name_of(job, cut), bytes, digits(ratio), ratio);
    return p;
}

/* ---- the choice ---- */

/* @param memory,bytes the most that a cut may take at the server, and put on wires
 * @return the cut of least seconds, of equal ones the last; none if there is no such cut */
static size_t find_best(const bpt_placement_job *job, double memory, double bytes) {
    size_t best = BPT_PLACEMENT_NONE;
    double least = INFINITY;
    for (size_t cut = 0; cut + 1 < job->n_layers; cut++) {
        if (!job->layers[cut].border || bpt_placement_memory(job, cut) > memory ||
            bpt_placement_bytes(job, cut) > bytes)
            continue;
        const double seconds = bpt_placement_seconds(job, cut);
        if (seconds > least) continue;
        least = seconds;
        best = cut;
    }
    return best;
}

static bool pays(const bpt_placement_job *job, size_t cut) {
    return cut != BPT_PLACEMENT_NONE &&
           bpt_placement_seconds(job, cut) < worth * bpt_placement_seconds(job, BPT_PLACEMENT_NONE);
}

/* Why there is none, where memory is no matter. */
static void explain_none(const bpt_placement_job *job, size_t best, bpt_placement *none) {
    char *text = none->reason;
    const size_t size = sizeof none->reason;
    if (best == BPT_PLACEMENT_NONE) {
        snprintf(text, size, "the model cannot be cut anywhere");
        return;
    }
    char bytes[64];
    const char *name = name_of(job, best);
    const bpt_placement p = evaluate(job, best);
    describe_bytes(p.classic_bytes, p.bytes, bytes, sizeof bytes);
    if (p.bytes > p.classic_bytes)
        snprintf(text, size, "the best cut, before %.32s, would put %s on the wires", name, bytes);
    else if (p.seconds > p.classic_seconds)
        snprintf(text, size,
                 "the best cut, before %.32s (%s), has the server compute for %u workers: a step "
                 "would take %.2f times as long",
                 name, bytes, job->n_workers, p.seconds / p.classic_seconds);
    else
        snprintf(text, size, "the best cut, before %.32s (%s), would gain less than %.0f %%", name,
                 bytes, 100 * (1 - worth));
}

static void explain_memory(const bpt_placement_job *job, size_t best, bpt_placement *none) {
    snprintf(
        none->reason, sizeof none->reason,
        "the best cut, before %.32s, needs %.1f GiB of memory at the server, which has %.1f GiB",
        name_of(job, best), bpt_placement_memory(job, best) / 0x1p30, job->server_bytes / 0x1p30);
}

bpt_placement bpt_placement_choose(const bpt_placement_job *job) {
    const bool alone = job->n_workers == 1;
    const double classic = bpt_placement_bytes(job, BPT_PLACEMENT_NONE);
    const size_t best = find_best(job, job->server_bytes, classic);
    if (!alone && pays(job, best)) return place(job, best);
    bpt_placement none = evaluate(job, BPT_PLACEMENT_NONE);
    const size_t saving = find_best(job, INFINITY, classic);
    if (alone)
        snprintf(none.reason, sizeof none.reason, "a single rank sends nothing");
    else if (pays(job, saving))
        explain_memory(job, saving, &none);
    else if (saving != BPT_PLACEMENT_NONE)
        explain_none(job, saving, &none);
    else
        explain_none(job, find_best(job, INFINITY, INFINITY), &none);
    return none;
}
