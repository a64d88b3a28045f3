#include "tools/train/run/run_lock.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct bpt_run_lock {
    char *path;
    int fd;
    char mark[BPT_RUN_MARK_SIZE];
};

/* The line of a lock file; "": none. */
static void read_mark(int fd, char mark[BPT_RUN_MARK_SIZE]) {
    const ssize_t n = pread(fd, mark, BPT_RUN_MARK_SIZE - 1, 0);
    mark[n > 0 ? n : 0] = '\0';
    mark[strcspn(mark, "\n")] = '\0';
}

static bpt_status refuse(const char *run, int fd) {
    char holder[BPT_RUN_MARK_SIZE];
    read_mark(fd, holder);
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "another bpt-train writes to the run folder %s: %s", run,
                 holder[0] ? holder : "a process that has not said which");
    bpt_hint("wait for its end or stop it, or name another --output");
    return status;
}

static void say_who(bpt_run_lock *lock) {
    char host[65] = "", utc[32];
    if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "?");
    bpt_clock_utc(utc, sizeof utc);
    snprintf(lock->mark, sizeof lock->mark, "process %ld on %s since %s", (long)getpid(), host,
             utc);
    const int length = (int)strlen(lock->mark);
    /* The lock holds without it. */
    if (ftruncate(lock->fd, 0) == 0 && dprintf(lock->fd, "%s\n", lock->mark) == length + 1 &&
        fsync(lock->fd) == 0)
        return;
    bpt_debug("the lock file does not say whose it is: %s", strerror(errno));
    lock->mark[0] = '\0';
}

/* The lock is held, on a file that is not the one of that name: by chance, or always where a file
 * system gives a file one number by descriptor and another by name. */
static bool tries_again(const char *run, bool last) {
    if (last)
        bpt_warn(
            "the lock in %s is not the file of that name: nothing keeps a second bpt-train "
            "out of it",
            run);
    return !last;
}

/* @param last is the last try
 * @param[out] again the file is gone */
static bpt_status try_lock(const char *run, const char *path, bool last, int *fd, bool *again) {
    *again = false;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0) return bpt_fail_write(errno, "open", path);
    bpt_status status = BPT_OK;
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
        /* The one who had the lock may have removed the file between open() and flock(). */
        *again = !bpt_file_is_at(*fd, path) && tries_again(run, last);
    else if (errno == EWOULDBLOCK)
        status = refuse(run, *fd);
    else
        bpt_warn("%s cannot be locked (%s): nothing keeps a second bpt-train out of it", run,
                 strerror(errno));
    if (status != BPT_OK || *again) close(*fd);
    return status;
}

bpt_status bpt_run_lock_take(const char *run, bpt_run_lock **out) {
    bpt_run_lock *lock;
    bpt_status status;
    enum { TRIES = 100 };
    bool again = true;
    BPT_TRY(BPT_NEW("run lock", 1, &lock));
    BPT_TRY_GOTO(status, bpt_strf(&lock->path, "%s/" BPT_RUN_LOCK_NAME, run), err_free);
    for (int n = 1; again; n++)
        BPT_TRY_GOTO(status, try_lock(run, lock->path, n == TRIES, &lock->fd, &again), err_path);
    say_who(lock);
    *out = lock;
    return BPT_OK;
err_path:
    bpt_free(lock->path);
err_free:
    bpt_free(lock);
    return status;
}

const char *bpt_run_lock_mark(const bpt_run_lock *lock) {
    return lock->mark;
}

bpt_run_sight bpt_run_lock_look(const char *run, const char *mark) {
    char *path, found[BPT_RUN_MARK_SIZE];
    if (bpt_strf(&path, "%s/" BPT_RUN_LOCK_NAME, run) != BPT_OK) return BPT_RUN_UNSEEN;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    bpt_free(path);
    if (fd < 0) return BPT_RUN_UNSEEN;
    read_mark(fd, found);
    close(fd);
    return !mark[0] || strcmp(found, mark) == 0 ? BPT_RUN_SEEN : BPT_RUN_OTHER;
}

void bpt_run_lock_release(bpt_run_lock *lock) {
    if (!lock) return;
    /* While it is held: whoever opens the file now finds it gone once he has the lock. Where
     * somebody has removed it and another job has made it anew, it is that job's. */
    if (bpt_file_is_at(lock->fd, lock->path)) (void)unlink(lock->path);
    close(lock->fd);
    bpt_free(lock->path);
    bpt_free(lock);
}
