#include "tools/train/run/rank_log.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

bpt_status bpt_rank_log_open(const bpt_run_folder *run, const char *name, uint32_t rank,
                             bpt_rank_log *log) {
    char entry[64];
    *log = (bpt_rank_log){0};
    snprintf(entry, sizeof entry, "exchange/%s.rank-%" PRIu32 ".jsonl", name, rank);
    BPT_TRY(bpt_run_folder_entry(run, entry, &log->path));
    const bpt_status status = bpt_file_append(log->path, &log->file);
    if (status == BPT_OK) return BPT_OK;
    bpt_free(log->path);
    log->path = NULL;
    return status;
}

bpt_status bpt_rank_log_print(bpt_rank_log *log, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int n = vfprintf(log->file, format, values);
    if (n < 0) log->error = errno;
    va_end(values);
    return n < 0 ? bpt_fail_write(log->error, "write", log->path) : BPT_OK;
}

bpt_status bpt_rank_log_close(bpt_rank_log *log) {
    if (!log->file) return BPT_OK;
    int error = log->error;
    if (fclose(log->file) != 0 && error == 0) error = errno;
    log->file = NULL;
    const bpt_status status = error != 0 ? bpt_fail_write(error, "write", log->path) : BPT_OK;
    bpt_free(log->path);
    log->path = NULL;
    return status;
}
