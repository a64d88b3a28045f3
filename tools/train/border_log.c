#include "tools/train/border_log.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

struct bpt_border_log {
    FILE *file;
};

static bpt_status check(int printed) {
    return printed < 0 ? bpt_fail_write(errno, "write", "the border log") : BPT_OK;
}

bpt_status bpt_border_log_open(const bpt_run_folder *run, uint32_t rank, const char *first,
                               bpt_border_log **out) {
    char name[64], *path;
    bpt_border_log *log = NULL;
    snprintf(name, sizeof name, "exchange/border.rank-%" PRIu32 ".jsonl", rank);
    BPT_TRY(bpt_run_folder_entry(run, name, &path));
    bpt_status status = BPT_NEW("border log", 1, &log);
    if (status == BPT_OK) {
        log->file = fopen(path, "a");
        if (!log->file) status = bpt_fail_write(errno, "open", path);
    }
    bpt_free(path);
    if (status == BPT_OK) status = check(fprintf(log->file, "{\"placement\": \"%s\"}\n", first));
    if (status != BPT_OK) {
        if (log && log->file) (void)fclose(log->file);
        bpt_free(log);
        return status;
    }
    *out = log;
    return BPT_OK;
}

bpt_status bpt_border_log_close(bpt_border_log *log) {
    if (!log) return BPT_OK;
    const bool failed = ferror(log->file) != 0;
    const bpt_status status = fclose(log->file) != 0 || failed
                                  ? bpt_fail_write(errno, "write", "the border log")
                                  : BPT_OK;
    bpt_free(log);
    return status;
}

bpt_status bpt_border_log_update(bpt_border_log *log, uint32_t worker, uint64_t step, float rate) {
    return check(fprintf(log->file,
                         "{\"worker\": %" PRIu32 ", \"step\": %" PRIu64 ", \"rate\": %.9g}\n",
                         worker, step, (double)rate));
}
