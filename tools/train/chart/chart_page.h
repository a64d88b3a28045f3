/** @file tools/train/chart/chart_page.h
 * The whole picture of a run: what was trained, loss, accuracy and learning rate by epochs, and
 * speed by time.
 *
 * Threads: one at a time may use a stream. */
#ifndef BPT_TOOLS_CHART_PAGE_H
#define BPT_TOOLS_CHART_PAGE_H

#include "tools/train/chart/chart_metrics.h"

#include <stdio.h>

/** Writes it as SVG. What cannot be written the stream remembers. */
void bpt_chart_page_write(const bpt_chart_metrics *m, FILE *out);

#endif
