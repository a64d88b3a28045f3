/** @file tools/train/chart/chart.h
 * A picture of a run (RUN/chart.svg), drawn anew from RUN/metrics.jsonl while it trains.
 *
 * Memory is taken when it is opened and while it draws, which is between training steps. Drawing
 * reads what the metrics have got since the last time.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHART_H
#define BPT_TOOLS_CHART_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_chart bpt_chart;

/** Opens it, and reads what the metrics have already: of a run that goes on that may be long, and
 * is better done before it trains.
 * @param metrics,picture paths, copied; neither need be there
 * @param[out] chart caller owns, bpt_chart_close()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_chart_open(const char *metrics, const char *picture, bpt_chart **chart);

/** @return whether it may be drawn: the last time took at most a hundredth of what has passed
 * since */
bool bpt_chart_is_due(const bpt_chart *chart, uint64_t now_ns);

/** Draws it; the picture is the one before or the new one at any moment. Where it cannot be drawn
 * it says so, once. Leaves this thread's last error as it is. */
void bpt_chart_draw(bpt_chart *chart);

/** NULL is allowed. */
void bpt_chart_close(bpt_chart *chart);

#endif
