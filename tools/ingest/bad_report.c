#include "tools/ingest/bad_report.h"

#include "base/file.h"

#include <errno.h>

bpt_status bpt_bad_report_open(bpt_bad_report *r, const char *path) {
    *r = (bpt_bad_report){.path = path};
    if (!path) return BPT_OK;
    r->file = fopen(path, "we");
    return r->file ? BPT_OK : bpt_fail_write(errno, "write", path);
}

bpt_status bpt_bad_report_add(bpt_bad_report *r, const bpt_error *error, bool can_skip) {
    if (r->n == 0) r->first = *error;
    if (!r->file) {
        const bpt_status status = bpt_error_put(error);
        if (can_skip)
            bpt_hint("%.200s%s--skip-bad REPORT passes over such images and lists them in REPORT",
                     error->hint, error->hint[0] ? "; " : "");
        return status;
    }
    r->n++;
    return fprintf(r->file, "%s\n", error->text) > 0 ? BPT_OK
                                                     : bpt_fail_write(errno, "write", r->path);
}

bpt_status bpt_bad_report_recall(bpt_bad_report *r, const char *line) {
    if (!r->file) {
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "the ingestion that was stopped has passed over a bad image: %.300s", line);
        bpt_hint("give --skip-bad REPORT as it had, or leave out --resume");
        return status;
    }
    r->n++;
    return fprintf(r->file, "%s\n", line) > 0 ? BPT_OK : bpt_fail_write(errno, "write", r->path);
}

bpt_status bpt_bad_report_close(bpt_bad_report *r) {
    FILE *file = r->file;
    r->file = NULL;
    return !file || fclose(file) == 0 ? BPT_OK : bpt_fail_write(errno, "write", r->path);
}
