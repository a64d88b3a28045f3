/** @file tools/ingest/ingest_progress.h
 * The progress line of long work on images.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_PROGRESS_H
#define BPT_TOOLS_INGEST_PROGRESS_H

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

#endif
