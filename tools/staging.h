/** @file tools/staging.h
 * Copies of datasets on a machine's own disk (storage/stage/stage.h), as programs make them and
 * tell of them.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_STAGING_H
#define BPT_TOOLS_STAGING_H

#include "storage/stage/stage.h"

/** What to tell: of all copies that a job makes at a time. */
typedef struct bpt_staging_sum {
    uint64_t bytes, done, copied;
    uint32_t n, n_whole, n_waiting; /* copies */
} bpt_staging_sum;

void bpt_staging_add(bpt_staging_sum *sum, const bpt_stage_state *state);

typedef struct bpt_staging_progress {
    uint64_t start_ns, last_ns, interval_ns;
} bpt_staging_progress;

bpt_staging_progress bpt_staging_begin(void);

/** Prints or redraws a line, if it is time to. */
void bpt_staging_show(bpt_staging_progress *progress, const bpt_staging_sum *sum);

/** Says what came of it, once all are whole. */
void bpt_staging_end(const bpt_staging_progress *progress, const bpt_staging_sum *sum);

/** Makes a copy, or finds it, in a program that is by itself.
 * @param[out] stage whole; caller owns, bpt_stage_close()
 * @return as bpt_stage_open() and bpt_stage_advance() */
bpt_status bpt_staging_alone(const char *dataset, const char *dir, bpt_stage **stage);

/** Where damage was found in a copy, breaks its seal and says what helps.
 * @param stage NULL: there is none
 * @param status of this thread's last error @return @p status */
bpt_status bpt_staging_blame(const bpt_stage *stage, bpt_status status);

#endif
