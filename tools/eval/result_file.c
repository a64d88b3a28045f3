#include "tools/eval/result_file.h"

#include "base/file.h"

#include <string.h>
#include <unistd.h>

enum { MOST_HEAD = 16 };

/* Whether what is there may be replaced. */
static bool gives_way(const bpt_result_file *kind, const char *path) {
    char begin[MOST_HEAD];
    uint64_t bytes;
    int fd;
    if (bpt_file_open(path, &fd, &bytes) != BPT_OK) return false;
    const ssize_t n = read(fd, begin, kind->head_bytes);
    close(fd);
    return bytes == 0 ||
           (n == (ssize_t)kind->head_bytes && memcmp(begin, kind->head, kind->head_bytes) == 0);
}

bpt_status bpt_result_file_try(const bpt_result_file *kind, const char *path) {
    bool there;
    if (strcmp(path, "-") == 0) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "--%s takes a file: standard output has the result", kind->option);
        bpt_hint("name a file, such as %s", kind->example);
        return status;
    }
    BPT_TRY(bpt_path_look(path, &there));
    if (there && !gives_way(kind, path)) {
        const bpt_status status =
            bpt_fail(BPT_EEXIST, "%s exists already and is no %s", path, kind->what);
        bpt_hint("name another file for --%s", kind->option);
        return status;
    }
    return bpt_file_try(path);
}
