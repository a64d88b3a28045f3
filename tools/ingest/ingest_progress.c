#include "tools/ingest/ingest_progress.h"

#include "base/clock.h"
#include "base/log.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

void bpt_ingest_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bpt_status bpt_ingest_interrupted(void) {
    if (!caught) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_ECANCELED, "stopped by %s before the end: nothing is stored", strsignal(caught));
    bpt_hint("the dataset is as it was before; run the same command again to start over");
    return status;
}

bpt_ingest_progress bpt_ingest_progress_start(const char *verb) {
    const uint64_t now = bpt_clock_ns();
    return (bpt_ingest_progress){.verb = verb,
                                 .start_ns = now,
                                 .last_ns = now,
                                 .interval_ns = isatty(STDERR_FILENO) ? 200000000 : 5000000000};
}

void bpt_ingest_progress_show(bpt_ingest_progress *p, uint64_t done, uint64_t total) {
    const uint64_t now = bpt_clock_ns();
    if (now - p->last_ns < p->interval_ns) return;
    p->last_ns = now;
    const double seconds = (double)(now - p->start_ns) / 1e9;
    const double rate = (double)done / seconds;
    const uint64_t left_s = total > done ? (uint64_t)((double)(total - done) / rate) : 0;
    char line[160];
    snprintf(line, sizeof line,
             "%s %" PRIu64 "/%" PRIu64 " images %.0f img/s eta %02" PRIu64 ":%02" PRIu64, p->verb,
             done, total, rate, left_s / 60, left_s % 60);
    bpt_log_progress(line);
}
