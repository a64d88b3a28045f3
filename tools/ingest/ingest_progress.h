/** @file tools/ingest/ingest_progress.h
 * The progress line of long work on images, and the signals that end such work.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_PROGRESS_H
#define BPT_TOOLS_INGEST_PROGRESS_H

#include "base/status.h"

#include <stdint.h>

typedef struct bpt_ingest_progress {
    const char *verb; /* "train: stored" */
    uint64_t start_ns, last_ns;
    uint64_t interval_ns; /* short on a terminal, where the line is redrawn */
} bpt_ingest_progress;

/** @param verb borrowed */
bpt_ingest_progress bpt_ingest_progress_start(const char *verb);

/** Shows how far the work is, if the last time was long enough ago.
 * @param total 0 if unknown */
void bpt_ingest_progress_show(bpt_ingest_progress *p, uint64_t done, uint64_t total);

/** From now on SIGINT and SIGTERM do not end the program but are seen by bpt_ingest_interrupted().
 * A second one ends it at once. */
void bpt_ingest_catch_signals(void);

/** @return BPT_OK, BPT_ECANCELED (a signal has come; names it) */
bpt_status bpt_ingest_interrupted(void);

#endif
