/** @file tools/plan/run_pace.h
 * What a run came to, beside what was foretold of it.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RUN_PACE_H
#define BPT_TOOLS_RUN_PACE_H

#include "tools/plan/plan.h"

/** Of a run that has ended. */
typedef struct bpt_run_pace {
    bpt_way way;
    uint32_t n_ranks;
    double images_per_s; /* without evaluations */
} bpt_run_pace;

/** Reads RUN/summary.json.
 * @param model name of the one that is planned for
 * @return BPT_OK, BPT_EDATA (no summary, or one that says something else; with hint), BPT_ENOENT,
 *         BPT_EIO, BPT_ENOMEM, BPT_EUSAGE (another model; easgd, servers, and layers that are
 *         placed at a rank are not foretold; with hint) */
bpt_status bpt_run_pace_read(const char *run, const char *model, bpt_run_pace *pace);

/** @return what was foretold of as many of the first ranks that go the same way; NULL: of so many
 * nothing was */
const bpt_plan_row *bpt_run_pace_find(const bpt_plan *plan, const bpt_run_pace *pace);

#endif
