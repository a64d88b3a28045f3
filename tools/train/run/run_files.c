/* Files of a run's folder that are written while its job runs. */
#include "base/file.h"
#include "base/memory.h"
#include "tools/train/run/run_folder_state.h"

#include <errno.h>
#include <stdio.h>

bpt_status bpt__run_folder_write(const bpt_run_folder *run, const char *name, const char *text,
                                 size_t size) {
    char *path;
    BPT_TRY(bpt_run_folder_entry(run, name, &path));
    const bpt_status status = bpt_file_write(path, text, size);
    bpt_free(path);
    return status;
}

static bpt_status open_metrics(bpt_run_folder *run) {
    if (run->metrics) return BPT_OK;
    char *path;
    BPT_TRY(bpt_run_folder_entry(run, BPT__RUN_METRICS, &path));
    const bpt_status status = bpt_file_append(path, &run->metrics);
    bpt_free(path);
    return status;
}

static bpt_status fail_to_write(const bpt_run_folder *run, int error_number, const char *name) {
    char *path;
    BPT_TRY(bpt_run_folder_entry(run, name, &path));
    const bpt_status status = bpt_fail_write(error_number, "write", path);
    bpt_free(path);
    return status;
}

bpt_status bpt_run_folder_metric(bpt_run_folder *run, bpt_json_writer *event) {
    const char *text;
    size_t length;
    BPT_TRY(open_metrics(run));
    BPT_TRY(bpt_json_end_text(event, &text, &length));
    const bool written = fwrite(text, 1, length, run->metrics) == length &&
                         fputc('\n', run->metrics) != EOF && fflush(run->metrics) == 0;
    const int error_number = errno;
    bpt_json_reset(event);
    return written ? BPT_OK : fail_to_write(run, error_number, BPT__RUN_METRICS);
}

bpt_status bpt_run_folder_json(const bpt_run_folder *run, const char *name, bpt_json_writer *json) {
    const char *text;
    size_t length;
    char *line;
    BPT_TRY(bpt_json_end_text(json, &text, &length));
    BPT_TRY(bpt_strf(&line, "%s\n", text));
    bpt_json_reset(json);
    const bpt_status status = bpt__run_folder_write(run, name, line, length + 1);
    bpt_free(line);
    return status;
}
