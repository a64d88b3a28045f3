#include "storage/stage/stage_source.h"

#include "base/checksum.h"
#include "base/file.h"
#include "base/memory.h"
#include "storage/dataset/description.h"
#include "storage/environment/environment.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bpt_status bpt__read_at(int fd, const char *path, void *buffer, size_t size, uint64_t at,
                        size_t *n) {
    size_t done = 0;
    while (done < size) {
        const ssize_t got = pread(fd, (char *)buffer + done, size - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bpt_fail_errno(errno, "read", path);
        if (got == 0) break;
        done += (size_t)got;
    }
    *n = done;
    return BPT_OK;
}

/* Of a file that is opened anew: a network file system then asks its server, whatever it
 * remembers. */
static bpt_status look_at_open(int fd, const char *file, bpt__stage_source *s) {
    struct stat info;
    char *heads;
    size_t n = 0;
    if (fstat(fd, &info) != 0) return bpt_fail_errno(errno, "read", file);
    BPT_TRY(bpt_alloc("head pages", s->head_bytes, 1, (void **)&heads));
    const bpt_status status = bpt__read_at(fd, file, heads, s->head_bytes, 0, &n);
    s->bytes = (uint64_t)info.st_size;
    s->times[0] = (uint64_t)info.st_mtim.tv_sec;
    s->times[1] = (uint64_t)info.st_mtim.tv_nsec;
    s->heads = bpt_checksum(heads, n);
    bpt_free(heads);
    return status;
}

/* @param[in,out] s its head_bytes are known */
static bpt_status look_at_file(const char *dataset, bpt__stage_source *s) {
    char *file;
    BPT_TRY(bpt_strf(&file, "%s/%s", dataset, bpt__dataset_files.data));
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    const bpt_status status =
        fd < 0 ? bpt_fail_errno(errno, "open", file) : look_at_open(fd, file, s);
    if (fd >= 0) close(fd);
    bpt_free(file);
    return status;
}

typedef struct description {
    const char *dataset;
    bpt__stage_source *source;
    uint64_t checksum; /* of what the dataset says of itself */
} description;

static bpt_status read_description(void *arg, MDB_env *env, MDB_txn *txn) {
    description *d = arg;
    MDB_stat stat;
    char *text = NULL;
    size_t size = 0;
    mdb_env_stat(env, &stat);
    d->source->head_bytes = 2 * (size_t)stat.ms_psize;
    bpt_status status = bpt__description_read(txn, d->dataset, &text, &size);
    status = bpt__environment_settle(env, status);
    if (status == BPT_OK) d->checksum = bpt_checksum(text, size);
    bpt_free(text);
    return status;
}

bpt_status bpt__stage_source_look(const char *dataset, bpt__stage_source *s) {
    description d = {.dataset = dataset, .source = s};
    MDB_env *env;
    MDB_txn *txn;
    BPT_TRY(bpt__environment_read(&bpt__dataset_files, dataset, false, read_description, &d, &env,
                                  &txn));
    bpt__environment_close(env, txn);
    BPT_TRY(look_at_file(dataset, s));
    const uint64_t all[] = {s->bytes, s->times[0], s->times[1], s->heads, d.checksum};
    s->identity = bpt_checksum(all, sizeof all);
    if (s->identity == 0) s->identity = 1;
    return BPT_OK;
}

bpt_status bpt__stage_source_check(const char *dataset, const bpt__stage_source *s) {
    bpt__stage_source now = {.head_bytes = s->head_bytes};
    BPT_TRY(look_at_file(dataset, &now));
    if (now.bytes == s->bytes && now.heads == s->heads && now.times[0] == s->times[0] &&
        now.times[1] == s->times[1])
        return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EIO, "dataset %s has changed while it was copied", dataset);
    bpt_hint("wait until nobody writes to it, then run this again");
    return status;
}
