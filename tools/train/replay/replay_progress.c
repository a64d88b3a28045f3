#include "tools/train/replay/replay_progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

static void begin_interval(bpt_replay_progress *p) {
    p->start_ns = bpt_clock_ns();
    p->first_step = p->done;
    p->first_sample = p->samples;
    p->loss_sum = 0;
}

void bpt_replay_progress_begin(bpt_replay_progress *p, uint64_t n_steps, uint32_t n_ranks,
                               uint64_t epoch_samples, double interval_s) {
    *p = (bpt_replay_progress){
        .n_steps = n_steps,
        .n_ranks = n_ranks,
        .epoch_samples = epoch_samples,
        .interval_s = interval_s,
    };
    begin_interval(p);
}

uint64_t bpt_replay_progress_steps(const bpt_replay_progress *p) {
    return (p->n_steps + p->n_ranks - 1) / p->n_ranks;
}

static void print(const bpt_replay_progress *p, double seconds, float rate) {
    const uint64_t samples = p->samples - p->first_sample;
    const double left_s =
        (double)(p->n_steps - p->done) * seconds / (double)(p->done - p->first_step);
    char line[256], eta[BPT_TIME_LEFT_SIZE];
    bpt_text_time_left(left_s, eta);
    snprintf(line, sizeof line,
             "step %" PRIu64 "/%" PRIu64 " epoch %.1f loss %.3f lr %.1e %.0f img/s eta %s",
             p->done / p->n_ranks, bpt_replay_progress_steps(p),
             (double)p->samples / (double)p->epoch_samples, p->loss_sum / (double)samples,
             (double)rate, (double)samples / seconds, eta);
    bpt_log_progress(line);
}

void bpt_replay_progress_step(bpt_replay_progress *p, const bpt_batch_result *result, float rate) {
    p->done++;
    p->samples += result->n_samples;
    p->loss_sum += result->loss_sum;
    const double seconds = bpt_clock_seconds_since(p->start_ns);
    if (seconds < p->interval_s) return;
    print(p, seconds, rate);
    begin_interval(p);
}
