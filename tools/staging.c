#include "tools/staging.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double mb = 1e-6;

void bpt_staging_add(bpt_staging_sum *sum, const bpt_stage_state *s) {
    sum->bytes += s->bytes;
    sum->done += s->done;
    sum->copied += s->copied;
    sum->n++;
    sum->n_whole += s->whole;
    sum->n_waiting += s->waits;
}

bpt_staging_progress bpt_staging_begin(void) {
    const uint64_t now = bpt_clock_ns();
    return (bpt_staging_progress){.start_ns = now,
                                  .last_ns = now,
                                  .interval_ns = isatty(STDERR_FILENO) ? 200000000 : 5000000000};
}

void bpt_staging_show(bpt_staging_progress *p, const bpt_staging_sum *sum) {
    const uint64_t now = bpt_clock_ns();
    char line[200], where[40] = "", eta[BPT_TIME_LEFT_SIZE];
    if (now - p->last_ns < p->interval_ns || sum->n_whole == sum->n) return;
    p->last_ns = now;
    if (sum->n > 1) snprintf(where, sizeof where, " in %u copies", sum->n);
    const double rate = (double)sum->copied / bpt_clock_seconds_since(p->start_ns);
    bpt_text_time_left(sum->copied > 0 ? (double)(sum->bytes - sum->done) / rate : 0, eta);
    if (sum->n_waiting > 0 && sum->n_waiting + sum->n_whole == sum->n)
        snprintf(line, sizeof line, "waiting for another job, which is at the same copy");
    else if (sum->copied == 0)
        snprintf(line, sizeof line, "checking what is copied already: %.0f of %.0f MB%s",
                 mb * (double)sum->done, mb * (double)sum->bytes, where);
    else
        snprintf(line, sizeof line, "copying the dataset: %.0f of %.0f MB%s %.0f MB/s eta %s",
                 mb * (double)sum->done, mb * (double)sum->bytes, where, mb * rate, eta);
    bpt_log_progress(line);
}

void bpt_staging_end(const bpt_staging_progress *p, const bpt_staging_sum *sum) {
    char where[40] = "";
    bpt_log_progress_end();
    if (sum->n > 1) snprintf(where, sizeof where, " in %u copies", sum->n);
    if (sum->copied == 0)
        bpt_info("the dataset is there already: %.1f MB%s", mb * (double)sum->bytes, where);
    else
        bpt_info("the dataset is copied: %.1f of %.1f MB%s, in %.1f s", mb * (double)sum->copied,
                 mb * (double)sum->bytes, where, bpt_clock_seconds_since(p->start_ns));
}

static bpt_status make(bpt_stage *stage) {
    bpt_staging_progress progress = bpt_staging_begin();
    for (;;) {
        bpt_staging_sum sum = {0};
        BPT_TRY(bpt_stage_advance(stage, 0.2));
        const bpt_stage_state state = bpt_stage_look(stage);
        bpt_staging_add(&sum, &state);
        bpt_staging_show(&progress, &sum);
        if (!state.whole) continue;
        bpt_staging_end(&progress, &sum);
        return BPT_OK;
    }
}

bpt_status bpt_staging_alone(const char *dataset, const char *dir, bpt_stage **out) {
    bpt_stage *stage;
    BPT_TRY(bpt_stage_open(dataset, dir, &stage));
    const bpt_status status = make(stage);
    if (status == BPT_OK)
        *out = stage;
    else
        bpt_stage_close(stage);
    return status;
}

bpt_status bpt_staging_blame(const bpt_stage *stage, bpt_status status) {
    const char *path = stage ? bpt_stage_path(stage) : NULL;
    if (status != BPT_ECORRUPT || !path || !strstr(bpt_error_last()->text, path)) return status;
    bpt_stage_doubt(stage);
    bpt_hint(
        "run this again, which copies anew what is not right of the copy; where it stays so, the "
        "dataset itself is damaged: bpt-ingest verify");
    return status;
}
