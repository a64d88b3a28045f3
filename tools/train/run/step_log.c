#include "tools/train/run/step_log.h"

#include "base/memory.h"
#include "tools/train/run/rank_log.h"

#include <inttypes.h>

struct bpt_step_log {
    bpt_rank_log lines;
    uint64_t next_pass; /* the first that is not noted */
    uint32_t n_rounds;  /* noted */
};

bpt_status bpt_step_log_open(const bpt_run_folder *run, uint32_t rank, uint64_t first_pass,
                             bpt_step_log **out) {
    bpt_step_log *log = NULL;
    BPT_TRY(BPT_NEW("step log", 1, &log));
    log->next_pass = first_pass;
    const bpt_status status = bpt_rank_log_open(run, "steps", rank, &log->lines);
    if (status == BPT_OK)
        *out = log;
    else
        bpt_free(log);
    return status;
}

bpt_status bpt_step_log_close(bpt_step_log *log) {
    if (!log) return BPT_OK;
    const bpt_status status = bpt_rank_log_close(&log->lines);
    bpt_free(log);
    return status;
}

static bpt_status note_pass(bpt_step_log *log, uint32_t rounds) {
    return bpt_rank_log_print(&log->lines, "{\"pass\": %" PRIu64 ", \"rounds\": %" PRIu32 "}\n",
                              log->next_pass++, rounds);
}

/* Where a share is smaller than a batch, a step takes several passes. They began at the same
 * moment, so they cover the same rounds. */
bpt_status bpt_step_log_pass(bpt_step_log *log, bpt_sampler_state state) {
    if (!log) return BPT_OK;
    while (log->next_pass < state.pass) BPT_TRY(note_pass(log, state.covered));
    return state.rounds && log->next_pass == state.pass ? note_pass(log, state.rounds) : BPT_OK;
}

static bpt_status note_round(bpt_step_log *log, const bpt_partition *shares, uint32_t n_ranks) {
    BPT_TRY(
        bpt_rank_log_print(&log->lines, "{\"round\": %" PRIu32 ", \"held\": [", log->n_rounds++));
    for (uint32_t r = 0; r < n_ranks; r++) {
        const uint64_t held = bpt_partition_held(shares, r, log->n_rounds);
        BPT_TRY(bpt_rank_log_print(&log->lines, "%s%" PRIu64, r ? ", " : "", held));
    }
    return bpt_rank_log_print(&log->lines, "]}\n");
}

bpt_status bpt_step_log_landing(bpt_step_log *log, const bpt_partition *shares,
                                const bpt_step_landing *landing, const bpt_reply *reply) {
    if (!log) return BPT_OK;
    while (log->n_rounds < bpt_partition_rounds(shares))
        BPT_TRY(note_round(log, shares, bpt_partition_n_ranks(shares)));
    return bpt_rank_log_print(&log->lines,
                              "{\"pushed_at\": %" PRIu64 ", \"landed_at\": %" PRIu64
                              ", \"every\": %" PRIu64 ", \"progress\": %" PRIu64 ", \"met\": %s}\n",
                              landing->pushed_at, landing->landed_at, landing->every,
                              reply->progress, reply->met ? "true" : "false");
}
