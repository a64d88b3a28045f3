#include "tools/train/run/border_log.h"

#include "base/memory.h"
#include "tools/train/run/rank_log.h"

#include <inttypes.h>

struct bpt_border_log {
    bpt_rank_log lines;
};

bpt_status bpt_border_log_open(const bpt_run_folder *run, uint32_t rank, const char *first,
                               bpt_border_log **out) {
    bpt_border_log *log = NULL;
    BPT_TRY(BPT_NEW("border log", 1, &log));
    bpt_status status = bpt_rank_log_open(run, "border", rank, &log->lines);
    if (status == BPT_OK)
        status = bpt_rank_log_print(&log->lines, "{\"placement\": \"%s\"}\n", first);
    if (status == BPT_OK) {
        *out = log;
        return BPT_OK;
    }
    bpt_error error;
    bpt_error_get(&error); /* not what the close says after it */
    (void)bpt_border_log_close(log);
    return bpt_error_put(&error);
}

bpt_status bpt_border_log_close(bpt_border_log *log) {
    if (!log) return BPT_OK;
    const bpt_status status = bpt_rank_log_close(&log->lines);
    bpt_free(log);
    return status;
}

bpt_status bpt_border_log_update(bpt_border_log *log, uint32_t worker, uint64_t step, float rate) {
    return bpt_rank_log_print(&log->lines,
                              "{\"worker\": %" PRIu32 ", \"step\": %" PRIu64 ", \"rate\": %.9g}\n",
                              worker, step, (double)rate);
}
