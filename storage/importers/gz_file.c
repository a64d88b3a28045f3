#include "storage/importers/gz_file.h"

#include "base/file.h"
#include "base/memory.h"

#include <sys/stat.h>

#include <errno.h>
#include <zlib.h>

enum { BUFFER_BYTES = 256 * 1024, LARGEST_READ = 1 << 30 };

struct bpt__gz_file {
    char *path;
    gzFile gz;
};

bpt_status bpt__gz_open(const char *path, bpt__gz_file **out) {
    struct stat info;
    if (stat(path, &info) != 0) return bpt_fail_errno(errno, "open", path);
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
        return bpt_fail(BPT_EDATA, "%s is not a file", path);
    if (S_ISREG(info.st_mode) && info.st_size == 0) {
        const bpt_status status = bpt_fail(BPT_EDATA, "%s is empty", path);
        bpt_hint("fetch the file again");
        return status;
    }
    bpt__gz_file *f;
    BPT_TRY(BPT_NEW("gz file", 1, &f));
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_strdup(path, &f->path), fail);
    errno = 0;
    f->gz = gzopen(path, "rbe");
    if (!f->gz) {
        status = bpt_fail_errno(errno ? errno : ENOMEM, "open", path);
        goto fail;
    }
    gzbuffer(f->gz, BUFFER_BYTES);
    *out = f;
    return BPT_OK;
fail:
    bpt__gz_close(f);
    return status;
}

void bpt__gz_close(bpt__gz_file *f) {
    if (!f) return;
    if (f->gz) gzclose(f->gz);
    bpt_free(f->path);
    bpt_free(f);
}

/* Why a read gave less than was asked for. */
static bpt_status read_failure(bpt__gz_file *f, const char *what) {
    int code;
    const char *text = gzerror(f->gz, &code);
    if (code == Z_ERRNO) return bpt_fail_errno(errno, "read", f->path);
    const bpt_status status =
        code == Z_OK || code == Z_STREAM_END
            ? bpt_fail(BPT_EDATA, "%s ends within %s: the file is cut", f->path, what)
        : code == Z_BUF_ERROR
            ? bpt_fail(BPT_EDATA, "%s ends within %s: its gzip stream is cut", f->path, what)
            : bpt_fail(BPT_EDATA, "%s is damaged at %s: %s", f->path, what, text);
    bpt_hint("fetch the file again and compare its size or checksum with the publisher's");
    return status;
}

bpt_status bpt__gz_read(bpt__gz_file *f, void *data, size_t size, const char *what) {
    size_t done = 0;
    while (done < size) {
        const size_t left = size - done;
        const unsigned ask = left < LARGEST_READ ? (unsigned)left : LARGEST_READ;
        const int n = gzread(f->gz, (char *)data + done, ask);
        if (n <= 0) return read_failure(f, what);
        done += (size_t)n;
    }
    return BPT_OK;
}

bpt_status bpt__gz_expect_end(bpt__gz_file *f) {
    char byte;
    const int n = gzread(f->gz, &byte, 1);
    if (n > 0) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "%s goes on after what its header announces", f->path);
        bpt_hint("fetch the file again; is it one file, not several joined?");
        return status;
    }
    int code;
    gzerror(f->gz, &code);
    return n < 0 || code == Z_BUF_ERROR ? read_failure(f, "its end") : BPT_OK;
}
