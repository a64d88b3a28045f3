#include "tools/train/run/trace_parts.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bpt_status bpt_trace_part_name(const char *trace, uint64_t process, uint32_t rank, char **part) {
    const char *base = base_of(trace);
    return bpt_strf(part, "%.*s.%s.%" PRIu64 ".rank-%" PRIu32, (int)(base - trace), trace, base,
                    process, rank);
}

static size_t count_digits(const char *text) {
    return strspn(text, "0123456789");
}

/* "", or what the name of a file that was to become a part ends with: in scheduler/trace_file.c
 * as any other. */
static bool is_end(const char *text) {
    return !*text || bpt_file_is_part_end(text);
}

/* @param[out] process that a part's name has; @return whether it is the name of a part of @p base,
 * or of a file that was to become one */
static bool parse(const char *name, const char *base, uint64_t *process) {
    const size_t length = strlen(base);
    if (name[0] != '.' || strncmp(name + 1, base, length) != 0) return false;
    const char *at = name + 1 + length;
    if (at[0] != '.' || count_digits(at + 1) == 0) return false;
    *process = strtoull(at + 1, NULL, 10);
    at += 1 + count_digits(at + 1);
    if (strncmp(at, ".rank-", 6) != 0 || count_digits(at + 6) == 0) return false;
    return is_end(at + 6 + count_digits(at + 6));
}

static bool is_alive(uint64_t process) {
    return process <= INT32_MAX && (kill((pid_t)process, 0) == 0 || errno == EPERM);
}

void bpt_trace_parts_sweep(const char *trace, uint64_t process) {
    char *folder;
    const char *base = base_of(trace);
    const bool here = base == trace;
    if (bpt_strf(&folder, "%.*s", here ? 1 : (int)(base - trace), here ? "." : trace) != BPT_OK)
        return;
    DIR *dir = opendir(folder);
    uint64_t theirs;
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (!parse(e->d_name, base, &theirs) || theirs == process || is_alive(theirs)) continue;
        if (unlinkat(dirfd(dir), e->d_name, 0) == 0)
            bpt_debug("removed %s, which a killed job left", e->d_name);
    }
    if (dir) closedir(dir);
    bpt_free(folder);
}
