#include "storage/writer/terms.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#include <sys/stat.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* The file: this line, what is made, a line of its own, the source, and the end, without which it
 * was not written whole. */
static const char first[] = "bpt ingestion 1\n";
static const char between[] = "of\n";
static const char end[] = "end\n";

enum { MAX_BYTES = 1 << 16 };

/* By the clock of the file system, which need not be this host's. Who may write the file need not
 * own it, and only owners set its time: then it stays that of now, and what changed just before
 * that is not seen. */
static void set_back(int lock, uint64_t ns) {
    enum { SECOND = 1000000000 };
    struct stat info;
    if (fstat(lock, &info) != 0) return;
    struct timespec t = info.st_mtim;
    t.tv_sec -= (time_t)(ns / SECOND);
    t.tv_nsec -= (long)(ns % SECOND);
    if (t.tv_nsec < 0) t = (struct timespec){t.tv_sec - 1, t.tv_nsec + SECOND};
    (void)futimens(lock, (const struct timespec[]){t, t});
}

bpt_status bpt__terms_write(int lock, const char *path, const bpt__terms *terms,
                            uint64_t reading_ns) {
    char *text;
    BPT_TRY(bpt_strf(&text, "%s%s%s%s%s", first, terms->wanted, between, terms->origin, end));
    const size_t size = strlen(text);
    bpt_status status = BPT_OK;
    errno = 0;
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, size, 0) != (ssize_t)size)
        status = bpt_fail_write(errno ? errno : ENOSPC, "write the lock file of", path);
    else
        set_back(lock, bpt_clock_ns() - reading_ns);
    bpt_free(text);
    return status;
}

void bpt__terms_clear(int lock) {
    if (ftruncate(lock, 0) != 0) return; /* no journal will belong to them */
}

/* Takes a text off the beginning of another. */
static bool take(char **at, const char *text) {
    const size_t size = strlen(text);
    if (strncmp(*at, text, size) != 0) return false;
    *at += size;
    return true;
}

/* @param[out] wanted, origin in @p text, each a text by now */
static bool take_apart(char *text, char **wanted, char **origin) {
    char *at = text;
    const size_t size = strlen(text);
    const size_t n_end = sizeof end - 1;
    if (!take(&at, first) || size < n_end || strcmp(text + size - n_end, end) != 0) return false;
    text[size - n_end] = '\0';
    *wanted = at;
    while (strncmp(at, between, sizeof between - 1) != 0) {
        at = strchr(at, '\n');
        if (!at) return false;
        at++;
    }
    *at = '\0';
    *origin = at + sizeof between - 1;
    return true;
}

/* @return the length of the line that a text begins with */
static int line_length(const char *text) {
    return (int)strcspn(text, "\n");
}

/* @return whether the texts are the same; else where the first lines begin that are not */
static bool is_same(const char **then, const char **now) {
    while (**then && **now) {
        const int n = line_length(*then);
        if (n != line_length(*now) || strncmp(*then, *now, (size_t)n) != 0) return false;
        *then += n + ((*then)[n] == '\n');
        *now += n + ((*now)[n] == '\n');
    }
    return !**then && !**now;
}

static bpt_status compare(const char *path, const char *then, const char *now, bool is_source) {
    if (is_same(&then, &now)) return BPT_OK;
    const char *none = "nothing";
    if (!*then) then = none;
    if (!*now) now = none;
    if (is_source) {
        const bpt_status status =
            bpt_fail(BPT_EDATA,
                     "the source is not what it was when its ingestion into %s was stopped: it was "
                     "\"%.*s\", now \"%.*s\"",
                     path, line_length(then), then, line_length(now), now);
        bpt_hint("leave out --resume to begin anew: what is there of it is dropped then");
        return status;
    }
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "the ingestion that was stopped in %s is not this one: it had \"%.*s\", this one "
                 "has \"%.*s\"",
                 path, line_length(then), then, line_length(now), now);
    bpt_hint(
        "repeat that command with --resume; or leave out --resume to begin anew: what is there of "
        "it is dropped then");
    return status;
}

bpt_status bpt__terms_compare(int lock, const char *path, const bpt__terms *terms, bool *known) {
    char *text, *wanted, *origin;
    *known = false;
    BPT_TRY(bpt_alloc("lock file", MAX_BYTES + 1, 1, (void **)&text));
    bpt_status status = BPT_OK;
    const ssize_t n = pread(lock, text, MAX_BYTES, 0);
    if (n < 0) status = bpt_fail_errno(errno, "read the lock file of", path);
    *known = n > 0 && take_apart(text, &wanted, &origin);
    if (*known) status = compare(path, wanted, terms->wanted, false);
    if (*known && status == BPT_OK) status = compare(path, origin, terms->origin, true);
    bpt_free(text);
    return status;
}
