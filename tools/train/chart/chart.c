#include "tools/train/chart/chart.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/chart/chart_metrics.h"
#include "tools/train/chart/chart_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct bpt_chart {
    char *metrics_path, *picture_path;
    bpt_chart_metrics metrics;
    uint64_t due_ns; /* of bpt_clock_ns() */
    bool warned;
};

bpt_status bpt_chart_open(const char *metrics, const char *picture, bpt_chart **chart) {
    bpt_chart *c;
    BPT_TRY(BPT_NEW("chart", 1, &c));
    bpt_status status = bpt_strdup(metrics, &c->metrics_path);
    if (status == BPT_OK) status = bpt_strdup(picture, &c->picture_path);
    if (status != BPT_OK) {
        bpt_chart_close(c);
        return status;
    }
    const uint64_t start_ns = bpt_clock_ns();
    (void)bpt_chart_metrics_read(&c->metrics, c->metrics_path); /* who draws it sees what fails */
    bpt_debug("%.1f MB of metrics read back in %.1f ms", (double)c->metrics.read_bytes * 1e-6,
              bpt_clock_seconds_since(start_ns) * 1e3);
    *chart = c;
    return BPT_OK;
}

static bpt_status write_picture(const bpt_chart *c) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return bpt_fail_write(errno, "write", c->picture_path);
    bpt_chart_page_write(&c->metrics, memory);
    const bool failed = ferror(memory) != 0;
    bpt_status status = BPT_OK;
    if (fclose(memory) != 0 || failed)
        status = bpt_fail(BPT_ENOMEM, "out of memory for %s", c->picture_path);
    if (status == BPT_OK) status = bpt_file_write(c->picture_path, text, size);
    free(text); /* the C library's own memory */
    return status;
}

bool bpt_chart_is_due(const bpt_chart *c, uint64_t now_ns) {
    return now_ns >= c->due_ns;
}

void bpt_chart_draw(bpt_chart *c) {
    static const uint64_t least_times = 100; /* what it takes, between two */
    bpt_error error;
    bpt_error_get(&error);
    const uint64_t start_ns = bpt_clock_ns();
    bpt_status status = bpt_chart_metrics_read(&c->metrics, c->metrics_path);
    if (status == BPT_OK) status = write_picture(c);
    if (status != BPT_OK && !c->warned) {
        c->warned = true;
        bpt_warn("no chart: %s; the run goes on without", bpt_error_last()->text);
    }
    const uint64_t now_ns = bpt_clock_ns();
    c->due_ns = now_ns + least_times * (now_ns - start_ns);
    bpt_debug("chart drawn in %.1f ms", (double)(now_ns - start_ns) * 1e-6);
    (void)bpt_error_put(&error);
}

void bpt_chart_close(bpt_chart *c) {
    if (!c) return;
    bpt_chart_metrics_free(&c->metrics);
    bpt_free(c->metrics_path);
    bpt_free(c->picture_path);
    bpt_free(c);
}
