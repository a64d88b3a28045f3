#include "tools/train/rank_log.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

bpt_status bpt_rank_log_open(const bpt_run_folder *run, const char *name, uint32_t rank,
                             bpt_rank_log *log) {
    char entry[64], *path;
    *log = (bpt_rank_log){0};
    snprintf(entry, sizeof entry, "exchange/%s.rank-%" PRIu32 ".jsonl", name, rank);
    snprintf(log->name, sizeof log->name, "the log of %s", name);
    BPT_TRY(bpt_run_folder_entry(run, entry, &path));
    log->file = fopen(path, "a");
    const bpt_status status = log->file ? BPT_OK : bpt_fail_write(errno, "open", path);
    bpt_free(path);
    return status;
}

bpt_status bpt_rank_log_print(bpt_rank_log *log, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int n = vfprintf(log->file, format, values);
    va_end(values);
    return n < 0 ? bpt_fail_write(errno, "write", log->name) : BPT_OK;
}

bpt_status bpt_rank_log_close(bpt_rank_log *log) {
    if (!log->file) return BPT_OK;
    const bool failed = ferror(log->file) != 0;
    const bool unwritten = fclose(log->file) != 0;
    log->file = NULL;
    return unwritten || failed ? bpt_fail_write(errno, "write", log->name) : BPT_OK;
}
