#include "tools/ingest/bad_report.h"

#include "base/file.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const char title[] = "# bad images that bpt-ingest has passed over\n";

/* Whether a file would be lost that is no such report. A device takes what is written. */
static bool is_another(const char *path) {
    char begin[sizeof title] = "";
    struct stat info;
    if (stat(path, &info) != 0 || S_ISCHR(info.st_mode)) return false;
    if (!S_ISREG(info.st_mode)) return true;
    if (info.st_size == 0) return false;
    FILE *file = fopen(path, "re");
    if (!file) return true;
    const size_t n = fread(begin, 1, sizeof title - 1, file);
    fclose(file);
    return n != sizeof title - 1 || memcmp(begin, title, n) != 0;
}

bpt_status bpt_bad_report_open(bpt_bad_report *r, const char *path) {
    *r = (bpt_bad_report){.path = path};
    if (!path) return BPT_OK;
    if (is_another(path)) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "%s of --skip-bad is there, and no report of bad images", path);
        bpt_hint("REPORT, the file that is written, stands behind --skip-bad");
        return status;
    }
    r->file = fopen(path, "we");
    return r->file && fputs(title, r->file) >= 0 ? BPT_OK : bpt_fail_write(errno, "write", path);
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
