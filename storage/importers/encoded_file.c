#include "storage/importers/encoded_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* @param[out] n what came: less than @p size at the end of the file */
static bpt_status read_bytes(int fd, const char *path, uint64_t offset, uint8_t *bytes, size_t size,
                             size_t *n) {
    for (*n = 0; *n < size;) {
        const ssize_t got = pread(fd, bytes + *n, size - *n, (off_t)(offset + *n));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bpt_fail_errno(errno, "read", path);
        if (got == 0) break;
        *n += (size_t)got;
    }
    return BPT_OK;
}

static bpt_status read_whole(int fd, const char *path, bpt_import_buffer *buffer, size_t *size) {
    struct stat info;
    if (fstat(fd, &info) != 0) return bpt_fail_errno(errno, "read", path);
    if (!S_ISREG(info.st_mode)) return bpt_fail(BPT_EDATA, "%s is not a file", path);
    if (info.st_size == 0) return bpt_fail(BPT_EDATA, "%s is empty", path);
    if (info.st_size > BPT_IMPORT_MAX_ENCODED)
        return bpt_fail(BPT_EDATA, "%s has %lld bytes, more than %d, which no image may have", path,
                        (long long)info.st_size, BPT_IMPORT_MAX_ENCODED);
    const size_t want = (size_t)info.st_size;
    BPT_TRY(BPT_GROW("image file", want, &buffer->bytes, &buffer->capacity));
    return read_bytes(fd, path, 0, buffer->bytes, want, size);
}

/* Without waiting for the other end of a pipe, which is no file either. */
static int open_file(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bpt_status bpt__encoded_file_read(const char *path, bpt_import_buffer *buffer, size_t *size) {
    const int fd = open_file(path), error = errno;
    char shown[PATH_MAX];
    bpt_text_escape(path, shown, sizeof shown);
    if (fd < 0 && error == ENXIO) return bpt_fail(BPT_EDATA, "%s is not a file", shown);
    if (fd < 0) return bpt_fail_errno(error, "open", shown);
    const bpt_status status = read_whole(fd, shown, buffer, size);
    close(fd);
    return status;
}

bpt_status bpt__encoded_piece_read(const char *path, const char *what, uint64_t offset, size_t size,
                                   bpt_import_buffer *buffer) {
    BPT_TRY(BPT_GROW("image file", size, &buffer->bytes, &buffer->capacity));
    const int fd = open_file(path);
    if (fd < 0) return bpt_fail_errno(errno, "open", path);
    size_t n;
    bpt_status status = read_bytes(fd, path, offset, buffer->bytes, size, &n);
    close(fd);
    if (status == BPT_OK && n < size)
        status = bpt_fail(BPT_EDATA, "%s became shorter: it ends within %s", path, what);
    return status;
}

static bool is_before(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* An older file that is put in its place has its own time of change, and a new one of its inode. */
bool bpt__encoded_file_changed(const char *path, struct timespec *when) {
    struct stat info;
    if (stat(path, &info) != 0) return false;
    *when = is_before(&info.st_mtim, &info.st_ctim) ? info.st_ctim : info.st_mtim;
    return true;
}
