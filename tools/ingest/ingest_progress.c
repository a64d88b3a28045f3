#include "tools/ingest/ingest_progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

bpt_ingest_progress bpt_ingest_progress_start(const char *verb) {
    const uint64_t now = bpt_clock_ns();
    return (bpt_ingest_progress){.verb = verb,
                                 .start_ns = now,
                                 .last_ns = now,
                                 .interval_ns = isatty(STDERR_FILENO) ? 200000000 : 5000000000};
}

void bpt_ingest_progress_show(bpt_ingest_progress *p, uint64_t done, uint64_t total) {
    const uint64_t now = bpt_clock_ns();
    if (done == 0 || now - p->last_ns < p->interval_ns) return; /* no rate yet, or just shown */
    p->last_ns = now;
    const double seconds = (double)(now - p->start_ns) / 1e9;
    const double rate = (double)done / seconds;
    char line[160], eta[BPT_TIME_LEFT_SIZE];
    bpt_text_time_left(total > done ? (double)(total - done) / rate : 0, eta);
    snprintf(line, sizeof line, "%s %" PRIu64 "/%" PRIu64 " images %.0f img/s eta %s", p->verb,
             done, total, rate, eta);
    bpt_log_progress(line);
}
