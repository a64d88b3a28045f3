#include "tools/ingest/bad_report.h"

#include "base/file.h"
#include "base/memory.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
    r->is_new = !bpt_path_exists(path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    r->file = fd >= 0 ? fdopen(fd, "w") : NULL; /* which leaves what is in it */
    if (r->file) return BPT_OK;
    const bpt_status status = bpt_fail_write(errno, "write", path);
    if (fd >= 0) close(fd);
    return status;
}

static bpt_status write_line(bpt_bad_report *r, const char *line) {
    return fprintf(r->file, "%s\n", line) > 0 ? BPT_OK : bpt_fail_write(errno, "write", r->path);
}

bpt_status bpt_bad_report_begin(bpt_bad_report *r) {
    if (!r->file || r->begun) return BPT_OK;
    struct stat info;
    const int fd = fileno(r->file);
    const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if ((is_file && ftruncate(fd, 0) != 0) || fputs(title, r->file) < 0)
        return bpt_fail_write(errno, "write", r->path);
    r->begun = true;
    for (size_t at = 0; at < r->n_early; at += strlen(r->early + at) + 1)
        BPT_TRY(write_line(r, r->early + at));
    return BPT_OK;
}

static bpt_status keep_line(bpt_bad_report *r, const char *line) {
    const size_t size = strlen(line) + 1;
    BPT_TRY(BPT_GROW("bad images", r->n_early + size, &r->early, &r->early_capacity));
    memcpy(r->early + r->n_early, line, size);
    r->n_early += size;
    return BPT_OK;
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
    return r->begun ? write_line(r, error->text) : keep_line(r, error->text);
}

bpt_status bpt_bad_report_recall(bpt_bad_report *r, const char *line) {
    if (!r->file) {
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "the ingestion that was stopped has passed over a bad image: %.300s", line);
        bpt_hint("give --skip-bad REPORT as it had, or leave out --resume");
        return status;
    }
    r->n++;
    return write_line(r, line);
}

bpt_status bpt_bad_report_close(bpt_bad_report *r) {
    FILE *file = r->file;
    if (file && r->is_new && !r->begun) (void)unlink(r->path);
    r->file = NULL;
    bpt_free(r->early);
    r->early = NULL;
    r->n_early = r->early_capacity = 0;
    return !file || fclose(file) == 0 ? BPT_OK : bpt_fail_write(errno, "write", r->path);
}
