#include "storage/environment/directory.h"

#include "base/file.h"
#include "base/memory.h"

#include <sys/file.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WRITER_LOCK "writer.lock"

static bpt_status refuse_lock(const bpt__environment_kind *kind, const char *path, const char *file,
                              int error) {
    if (error != EWOULDBLOCK) return bpt_fail_errno(error, "lock", file);
    const bpt_status status =
        bpt_fail(BPT_EIO, "%s %s is being written by another process", kind->what, path);
    bpt_hint("wait until it has ended, then run this again");
    return status;
}

/* @param[out] lock -1: the folder was taken away meanwhile, by who gave up what was in it */
static bpt_status take_lock(const bpt__environment_kind *kind, const char *path, int *lock) {
    char *file;
    BPT_TRY(bpt_strf(&file, "%s/" WRITER_LOCK, path));
    bpt_status status = BPT_OK;
    const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 && errno != ENOENT)
        status = bpt_fail_write(errno, "open", file);
    else if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
        status = refuse_lock(kind, path, file, errno);
    *lock = status == BPT_OK && fd >= 0 && bpt_file_is_at(fd, file) ? fd : -1;
    if (fd >= 0 && *lock < 0) close(fd);
    bpt_free(file);
    return status;
}

/* A folder that somebody keeps other things in is no place for a new dataset. */
static bpt_status refuse_other_folder(const bpt__environment_kind *kind, const char *path) {
    DIR *dir = opendir(path);
    if (!dir) return bpt_fail_errno(errno, "read", path);
    bool ours = false;
    char other[256] = "";
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (strcmp(e->d_name, kind->data) == 0)
            ours = true;
        else if (e->d_name[0] != '.' && strcmp(e->d_name, kind->lock) != 0 &&
                 strcmp(e->d_name, WRITER_LOCK) != 0)
            snprintf(other, sizeof other, "%s", e->d_name);
    closedir(dir);
    if (ours || !other[0]) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EEXIST, "%s is no %s, and not empty: it holds %s", path, kind->what, other);
    bpt_hint("name a %s, an empty directory or one that does not exist yet", kind->what);
    return status;
}

bpt_status bpt__directory_check(const bpt__environment_kind *kind, const char *path) {
    bool there;
    BPT_TRY(bpt_path_look(path, &there));
    if (!there) return BPT_OK;
    BPT_TRY(bpt_dir_create(path, false)); /* of a folder that is there it makes nothing */
    return refuse_other_folder(kind, path);
}

static bpt_status try_lock(const bpt__environment_kind *kind, const char *path, int *lock,
                           size_t *n_made) {
    size_t n;
    BPT_TRY(bpt_dir_create_counted(path, false, &n));
    if (n > *n_made) *n_made = n;
    if (n == 0) BPT_TRY(refuse_other_folder(kind, path));
    const bpt_status status = take_lock(kind, path, lock);
    if (status != BPT_OK) bpt_dir_take_back(path, n); /* unless somebody else is in it */
    return status;
}

bpt_status bpt__directory_lock(const bpt__environment_kind *kind, const char *path, int *lock,
                               size_t *n_made) {
    enum { MAX_TRIES = 100 }; /* times that others take the folder away under our eyes */
    *n_made = 0;
    *lock = -1;
    for (int i = 0; i < MAX_TRIES && *lock < 0; i++) BPT_TRY(try_lock(kind, path, lock, n_made));
    return *lock >= 0 ? BPT_OK : bpt_fail(BPT_EIO, "%s is taken away again and again", path);
}

void bpt__directory_clear(const bpt__environment_kind *kind, const char *path, size_t n_made) {
    const char *const files[] = {kind->data, kind->lock, n_made > 0 ? WRITER_LOCK : NULL};
    for (size_t i = 0; i < sizeof files / sizeof *files && files[i]; i++) {
        char *file;
        if (bpt_strf(&file, "%s/%s", path, files[i]) != BPT_OK) return;
        (void)unlink(file);
        bpt_free(file);
    }
    bpt_dir_take_back(path, n_made);
}
