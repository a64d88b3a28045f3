/** @file tools/ingest/bad_report.h
 * The file of --skip-bad: a title, then what was passed over, and why, a line each.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_BAD_REPORT_H
#define BPT_TOOLS_INGEST_BAD_REPORT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Zero-initialise. */
typedef struct bpt_bad_report {
    const char *path; /* borrowed; NULL: nothing may be passed over */
    FILE *file;
    uint64_t n;      /* lines */
    bpt_error first; /* of them */
    bool is_new;     /* nothing was there before */
    bool begun;
    char *early; /* lines of before, each ended by a 0 byte */
    size_t n_early, early_capacity;
} bpt_bad_report;

/** Opens the file, which may hold a former report, but nothing else. That one stays until this one
 * is begun: a command that is refused loses nothing. @param path NULL: nothing may be passed over
 * @return BPT_OK, BPT_EUSAGE (it is another file), BPT_EIO, BPT_ENOSPC */
bpt_status bpt_bad_report_open(bpt_bad_report *r, const char *path);

/** Puts title and lines of now in the place of the former report. From here on lines are written as
 * they come. @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_bad_report_begin(bpt_bad_report *r);

/** Takes in a bad image.
 * @param can_skip whether the command has --skip-bad, which a hint then proposes
 * @return BPT_OK where it is passed over; @p error where it may not be; BPT_EIO, BPT_ENOSPC,
 *         BPT_ENOMEM */
bpt_status bpt_bad_report_add(bpt_bad_report *r, const bpt_error *error, bool can_skip);

/** Takes in what another ingestion said of a bad image, before it was stopped. Of one that is
 * begun.
 * @return BPT_OK, BPT_EUSAGE (nothing may be passed over), BPT_EIO, BPT_ENOSPC */
bpt_status bpt_bad_report_recall(bpt_bad_report *r, const char *line);

/** Writes out what is left, if it was begun, and closes the file; once more does no harm. One that
 * was not begun and is new is removed.
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_bad_report_close(bpt_bad_report *r);

#endif
