#include "storage/environment/environment_guard.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- begin and end ---- */

bpt_status bpt__guard_create(const bpt__environment_kind *kind, const char *path,
                             bpt__guard **out) {
    bpt__guard *g;
    BPT_TRY(BPT_NEW("watch over a file", 1, &g));
    *g = (bpt__guard){.kind = kind, .lock_fd = -1};
    bpt_status status = bpt_strf(&g->data, "%s/%s", path, kind->data);
    if (status == BPT_OK && kind->lock) status = bpt_strf(&g->lock, "%s/%s", path, kind->lock);
    if (status == BPT_OK)
        *out = g;
    else
        bpt__guard_free(g);
    return status;
}

static void close_lock(bpt__guard *g) {
    if (g->lock_fd >= 0) close(g->lock_fd);
    g->lock_fd = -1;
}

/* What the kernel refuses is no harm: then it is as if nobody had asked. */
int bpt__guard_enter(const bpt__guard *g) {
    const int fd = g->lock_fd >= 0 ? open(g->data, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR) continue;
    return fd;
}

void bpt__guard_leave(int turn) {
    if (turn >= 0) close(turn);
}

void bpt__guard_free(bpt__guard *g) {
    if (!g) return;
    bpt__lost_pages_unwatch(g->pages);
    bpt__lost_pages_unwatch(g->slots);
    close_lock(g);
    bpt_free(g->data);
    bpt_free(g->lock);
    bpt_free(g);
}

/* ---- the lock file ---- */

/* Whether all of the file is on the disk already. */
static bool is_reserved(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_size >= BPT__LOCK_FILE_BYTES &&
           (uint64_t)info.st_blocks * 512 >= (uint64_t)info.st_size;
}

/* @return 0 or an errno */
static int reserve(int fd) {
    const int error = is_reserved(fd) || fallocate(fd, 0, 0, BPT__LOCK_FILE_BYTES) == 0 ? 0 : errno;
    /* Some file systems cannot reserve; LMDB then makes the file by itself. */
    return error == EOPNOTSUPP || error == ENOSYS ? 0 : error;
}

static bpt_status refuse_link(const char *lock) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "%s is a link: where it leads would be written over", lock);
    bpt_hint("remove it");
    return status;
}

/* @param[out] error 0; else an errno, why there can be none */
static bpt_status open_lock(bpt__guard *g, int *error) {
    g->lock_fd = open(g->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    *error = g->lock_fd < 0 ? errno : 0;
    if (*error == ELOOP) return refuse_link(g->lock);
    if (*error) return bpt_fail_write(*error, "open", g->lock);
    *error = reserve(g->lock_fd);
    if (*error) return bpt_fail_write(*error, "write", g->lock);
    return bpt__lost_pages_watch(g->lock_fd, g->lock, &g->slots);
}

bpt_status bpt__guard_lock(bpt__guard *g) {
    int error;
    return open_lock(g, &error);
}

/* Then writers do not see this reader: see bpt__environment_overtaken(). */
bpt_status bpt__guard_lock_if_can(bpt__guard *g) {
    int error;
    const bpt_status status = open_lock(g, &error);
    if (error != EACCES && error != EROFS && error != EPERM && error != ENOSPC && error != EDQUOT &&
        error != ELOOP)
        return status;
    bpt_info("%s is read without its lock file (%s): nobody may replace a split meanwhile",
             g->kind->what, error == ELOOP ? "it is a link" : strerror(error));
    close_lock(g);
    return BPT_OK;
}

/* ---- pages ---- */

bpt_status bpt__guard_watch(bpt__guard *g) {
    const int fd = open(g->data, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? BPT_OK : bpt_fail_errno(errno, "open", g->data);
    const bpt_status status = bpt__lost_pages_watch(fd, g->data, &g->pages);
    close(fd);
    return status;
}

/* @param unknown what it is where the system does not tell */
static uint64_t file_bytes(MDB_env *env, uint64_t unknown) {
    struct stat info;
    mdb_filehandle_t fd;
    return mdb_env_get_fd(env, &fd) == 0 && fstat(fd, &info) == 0 ? (uint64_t)info.st_size
                                                                  : unknown;
}

bpt_status bpt__guard_watch_opened(bpt__guard *g, MDB_env *env) {
    mdb_filehandle_t fd;
    bpt__watched *before = g->pages;
    mdb_env_get_fd(env, &fd);
    BPT_TRY(bpt__lost_pages_watch(fd, g->data, &g->pages));
    bpt__lost_pages_unwatch(before);
    g->bytes = file_bytes(env, 0);
    return BPT_OK;
}

bool bpt__guard_lost(const bpt__guard *g) {
    return bpt__lost_pages_any(g->pages) || bpt__lost_pages_any(g->slots);
}

static bpt_status lost_slots(const bpt__guard *g) {
    const bpt_status status =
        bpt_fail(BPT_EIO, "%s was cut short while it was in use, or its disk failed or has no room",
                 g->lock);
    bpt_hint("once nobody uses the %s, remove that file: nothing of value is in it", g->kind->what);
    return status;
}

bpt_status bpt__guard_settle(const bpt__guard *g, MDB_env *env, bpt_status status) {
    const uint64_t bytes = file_bytes(env, UINT64_MAX);
    if (bytes < g->bytes)
        status = bpt_fail(BPT_ECORRUPT,
                          "%s was cut short while it was in use: it had %llu bytes, "
                          "now %llu",
                          g->data, (unsigned long long)g->bytes, (unsigned long long)bytes);
    else if (bpt__lost_pages_any(g->pages))
        status = bpt_fail(BPT_ECORRUPT,
                          "%s could not be read while it was in use: it was cut short meanwhile, "
                          "or its disk failed",
                          g->data);
    else
        return bpt__lost_pages_any(g->slots) ? lost_slots(g) : status;
    bpt_hint("%s", g->kind->lost_hint);
    return status;
}
