/** @file tools/train/chart/chart_metrics.h
 * What a chart shows, read back from a run's metrics.jsonl: from its beginning by a process that
 * goes on with a run, and later only what has been added.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHART_METRICS_H
#define BPT_TOOLS_CHART_METRICS_H

#include "base/status.h"
#include "tools/train/chart/chart_series.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_CHART_NAME_SIZE = 36 };

/** What a process says of the run when it starts; what it does not say is "" or 0. */
typedef struct bpt_chart_start {
    char model[BPT_CHART_NAME_SIZE], data[BPT_CHART_NAME_SIZE], update[BPT_CHART_NAME_SIZE];
    char time[BPT_CHART_NAME_SIZE]; /* of day */
    uint64_t ranks, batch_size;
    double lr, lr_factor;
} bpt_chart_start;

/** Where another process took over. */
typedef struct bpt_chart_resume {
    double epoch, seconds;
    uint64_t ranks; /* from there on, where they are others than before; else 0 */
} bpt_chart_resume;

/** Zero-initialise; release with bpt_chart_metrics_free(). */
typedef struct bpt_chart_metrics {
    uint64_t read_bytes; /* of the file */
    bool begun;          /* a process has started */
    bpt_chart_start start;
    char first_time[BPT_CHART_NAME_SIZE];
    char split[BPT_CHART_NAME_SIZE]; /* that is tested with */
    double first_epoch, last_epoch;  /* that anything is told of */
    double first_seconds, last_seconds;
    double step_epoch, step_seconds; /* of the last step event, or of a start behind it */
    double interval_s;               /* how long that one was after the one before */
    bpt_chart_resume *resumes;
    size_t n_resumes, resumes_capacity;
    bpt_chart_series train_loss, rate, images_per_s, test_loss, test_accuracy;
} bpt_chart_metrics;

/** Takes one line in. What is no event of a chart is passed over, and so is a line that a kill has
 * left in parts, and a value that is missing, null, not finite or none of its kind. Where a run has
 * gone back to a checkpoint, what was lost goes.
 * @param line shape [length]
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_chart_metrics_take(bpt_chart_metrics *m, const char *line, size_t length);

/** Takes in the whole lines that the file has got since the last call.
 * @return BPT_OK, BPT_ENOMEM, as bpt_file_open() */
bpt_status bpt_chart_metrics_read(bpt_chart_metrics *m, const char *path);

void bpt_chart_metrics_free(bpt_chart_metrics *m);

#endif
