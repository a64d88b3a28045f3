#include "base/file.h"

#include "base/memory.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Nothing is, or can be, there by such a name. */
static bool is_nothing(int error_number) {
    return error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP ||
           error_number == ENAMETOOLONG;
}

bpt_status bpt_fail_errno(int error_number, const char *verb, const char *path) {
    bpt_status status = BPT_EIO;
    if (error_number == ENOSPC || error_number == EDQUOT) status = BPT_ENOSPC;
    if (is_nothing(error_number)) status = BPT_ENOENT;
    if (error_number == EEXIST) status = BPT_EEXIST;
    if (error_number == ENOMEM) status = BPT_ENOMEM;
    bpt_error_record(status, "cannot %s %s: %s", verb, path, strerror(error_number));
    if (error_number == EMFILE) bpt_hint("raise the limit of open files (`ulimit -n`)");
    return status;
}

bpt_status bpt_fail_write(int error_number, const char *verb, const char *path) {
    bpt_status status = bpt_fail_errno(error_number, verb, path);
    if (status == BPT_ENOENT) status = bpt_fail(BPT_EIO, "%s", bpt_error_last()->text);
    if (error_number == EFBIG)
        bpt_hint("raise the limit on the size of files (`ulimit -f`), or that of the file system");
    return status;
}

static bpt_status read_all(int fd, const char *path, char *data, size_t size) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = read(fd, data + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bpt_fail_errno(errno, "read", path);
        if (n == 0) return bpt_fail(BPT_EIO, "cannot read %s: it became shorter", path);
        done += (size_t)n;
    }
    return BPT_OK;
}

static bpt_status measure(int fd, const char *path, uint64_t *bytes) {
    struct stat info;
    if (fstat(fd, &info) != 0) return bpt_fail_errno(errno, "read", path);
    if (!S_ISREG(info.st_mode))
        return bpt_fail(BPT_EDATA, "cannot read %s: not a regular file", path);
    *bytes = (uint64_t)info.st_size;
    return BPT_OK;
}

bpt_status bpt_file_open(const char *path, int *fd, uint64_t *bytes) {
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return bpt_fail_errno(errno, "open", path);
    const bpt_status status = measure(file, path, bytes);
    if (status == BPT_OK)
        *fd = file;
    else
        close(file);
    return status;
}

bpt_status bpt_file_read(const char *path, size_t max_bytes, char **data, size_t *size) {
    int fd;
    uint64_t bytes;
    BPT_TRY(bpt_file_open(path, &fd, &bytes));
    bpt_status status;
    char *content = NULL;
    if (bytes > max_bytes) {
        status = bpt_fail(BPT_EDATA, "%s has %" PRIu64 " bytes, more than the limit of %zu", path,
                          bytes, max_bytes);
        goto done;
    }
    BPT_TRY_GOTO(status, bpt_alloc(path, (size_t)bytes + 1, 1, (void **)&content), done);
    BPT_TRY_GOTO(status, read_all(fd, path, content, (size_t)bytes), done);
    *data = content;
    *size = (size_t)bytes;
    content = NULL;
done:
    bpt_free(content);
    close(fd);
    return status;
}

static bpt_status write_all(int fd, const char *path, const char *data, size_t size) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = write(fd, data + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bpt_fail_write(errno, "write", path);
        done += (size_t)n;
    }
    return BPT_OK;
}

static bpt_status write_parts(int fd, const char *path, const bpt_bytes *parts, size_t n_parts) {
    for (size_t i = 0; i < n_parts; i++) BPT_TRY(write_all(fd, path, parts[i].data, parts[i].size));
    return fsync(fd) == 0 ? BPT_OK : bpt_fail_write(errno, "flush", path);
}

/* The folder that holds @p path, as a new string. */
static bpt_status parent_of(const char *path, char **parent) {
    const char *slash = strrchr(path, '/');
    if (!slash) return bpt_strdup(".", parent);
    if (slash == path) return bpt_strdup("/", parent);
    return bpt_strf(parent, "%.*s", (int)(slash - path), path);
}

static bpt_status open_dir(const char *path, int *fd) {
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *fd < 0 ? bpt_fail_write(errno, "open", path) : BPT_OK;
}

static bpt_status sync_and_close_dir(int fd, const char *path) {
    const int result = fsync(fd);
    const int error = errno;
    close(fd);
    /* Some file systems cannot sync a folder and say so; there is nothing better to do there. */
    if (result != 0 && error != EINVAL) return bpt_fail_write(error, "flush", path);
    return BPT_OK;
}

bpt_status bpt_dir_sync(const char *path) {
    int fd;
    BPT_TRY(open_dir(path, &fd));
    return sync_and_close_dir(fd, path);
}

static const char part[] = ".tmp-"; /* and the number of the process */

static bpt_status name_temporary(const char *path, char **temporary) {
    return bpt_strf(temporary, "%s%s%ld", path, part, (long)getpid());
}

bool bpt_file_is_part_end(const char *end) {
    if (strncmp(end, part, sizeof part - 1) != 0) return false;
    end += sizeof part - 1;
    return *end && end[strspn(end, "0123456789")] == '\0';
}

static int create_file(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

bpt_status bpt_file_try(const char *path) {
    char *temporary;
    BPT_TRY(name_temporary(path, &temporary));
    const int fd = create_file(temporary), reason = errno;
    if (fd >= 0) {
        close(fd);
        unlink(temporary);
    }
    bpt_free(temporary);
    return fd >= 0 ? BPT_OK : bpt_fail_write(reason, "write", path);
}

bpt_status bpt_file_write(const char *path, const void *data, size_t size) {
    return bpt_file_write_parts(path, &(bpt_bytes){data, size}, 1);
}

bpt_status bpt_file_write_parts(const char *path, const bpt_bytes *parts, size_t n_parts) {
    /* The names and the folder come before the rename: after it only a flush may fail. */
    char *temporary = NULL, *parent = NULL;
    int folder;
    bpt_status status;
    BPT_TRY_GOTO(status, name_temporary(path, &temporary), free_names);
    BPT_TRY_GOTO(status, parent_of(path, &parent), free_names);
    BPT_TRY_GOTO(status, open_dir(parent, &folder), free_names);
    const int fd = create_file(temporary);
    if (fd < 0) {
        status = bpt_fail_write(errno, "create", temporary);
        close(folder);
        goto free_names;
    }
    status = write_parts(fd, temporary, parts, n_parts);
    if (close(fd) != 0 && status == BPT_OK) status = bpt_fail_write(errno, "close", temporary);
    if (status == BPT_OK && rename(temporary, path) != 0)
        status = bpt_fail_write(errno, "rename to", path);
    if (status == BPT_OK) {
        status = sync_and_close_dir(folder, parent);
    } else {
        unlink(temporary);
        close(folder);
    }
free_names:
    bpt_free(parent);
    bpt_free(temporary);
    return status;
}

/* Puts the name of a new folder on disk, where its parent may be read for that. */
static void sync_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    const int fd = open(!slash ? "." : *path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash) *slash = '/';
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* @return 0 or an errno */
static int make_folder(char *path) {
    if (mkdir(path, 0777) != 0) return errno;
    sync_name(path);
    return 0;
}

/* Behind a slash at the end a folder would count as its own parent. */
static void cut_slashes(char *path) {
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) path[n - 1] = '\0';
}

/* @return whether the path of a parent is left */
static bool cut_last_part(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) return false;
    *slash = '\0';
    cut_slashes(path);
    return true;
}

/* Removes the last @p n parts of a path, from the end on, as far as they are empty folders. */
static void remove_parts(char *path, size_t n) {
    for (; n > 0 && (rmdir(path) == 0 || errno == ENOENT); n--)
        if (!cut_last_part(path)) return;
}

/* @param[in,out] path on error cut behind the folder that cannot be made
 * @param[out] n_made of its parents, the last so many; set on error, too
 * @return 0 or an errno */
static int make_parents(char *path, size_t *n_made) {
    *n_made = 0;
    for (char *p = path; *p; p++) {
        if (*p != '/' || p == path || p[-1] == '/') continue;
        *p = '\0';
        const int error = make_folder(path);
        if (error != 0 && error != EEXIST) return error;
        *n_made = error == 0 ? *n_made + 1 : 0;
        *p = '/';
    }
    return 0;
}

/* @param copy of the path, to be cut as it goes; without slashes at its end */
static bpt_status create(const char *path, char *copy, bool must_be_new, size_t *n_made) {
    struct stat info;
    int error = make_parents(copy, n_made);
    if (error != 0) return bpt_fail_write(error, "create the parent of", path);
    error = make_folder(copy);
    if (error == 0) {
        ++*n_made;
        return BPT_OK;
    }
    if (must_be_new || error != EEXIST || stat(copy, &info) != 0 || !S_ISDIR(info.st_mode))
        return bpt_fail_write(error, "create", path);
    *n_made = 0;
    return BPT_OK;
}

bpt_status bpt_dir_create_counted(const char *path, bool must_be_new, size_t *n_made) {
    char *copy;
    *n_made = 0;
    BPT_TRY(bpt_strdup(path, &copy));
    cut_slashes(copy);
    const bpt_status status = create(path, copy, must_be_new, n_made);
    if (status != BPT_OK && *n_made > 0 && cut_last_part(copy)) remove_parts(copy, *n_made);
    if (status != BPT_OK) *n_made = 0;
    bpt_free(copy);
    return status;
}

bpt_status bpt_dir_create(const char *path, bool must_be_new) {
    size_t n_made;
    return bpt_dir_create_counted(path, must_be_new, &n_made);
}

void bpt_dir_take_back(const char *path, size_t n_made) {
    bpt_error error;
    char *copy;
    bpt_error_get(&error); /* the reason for which they are taken back */
    if (bpt_strdup(path, &copy) == BPT_OK) {
        cut_slashes(copy);
        remove_parts(copy, n_made);
        bpt_free(copy);
    }
    (void)bpt_error_put(&error);
}

/* Bytes up to the end of the last whole line, of so many; below 0: they cannot be read. */
static off_t whole_lines(int fd, off_t bytes) {
    char block[4096];
    while (bytes > 0) {
        const off_t begin = bytes > (off_t)sizeof block ? bytes - (off_t)sizeof block : 0;
        const size_t n = (size_t)(bytes - begin);
        if (pread(fd, block, n, begin) != (ssize_t)n) return -1;
        const char *newline = memrchr(block, '\n', n);
        if (newline) return begin + (newline - block) + 1;
        bytes = begin;
    }
    return 0;
}

static void cut_torn_line(const char *path, int writer) {
    struct stat info;
    if (fstat(writer, &info) != 0 || !S_ISREG(info.st_mode)) return;
    const int reader = open(path, O_RDONLY | O_CLOEXEC);
    if (reader < 0) return;
    const off_t end = whole_lines(reader, info.st_size);
    close(reader);
    /* Where that fails the half line stays. */
    if (end >= 0 && end < info.st_size && ftruncate(writer, end) != 0) return;
}

bpt_status bpt_file_append(const char *path, FILE **file) {
    FILE *opened = fopen(path, "ae");
    if (!opened) return bpt_fail_write(errno, "open", path);
    cut_torn_line(path, fileno(opened));
    *file = opened;
    return BPT_OK;
}

bool bpt_file_is_at(int fd, const char *path) {
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk) {
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

bpt_status bpt_dir_remove(const char *path) {
    bool there;
    BPT_TRY(bpt_path_look(path, &there));
    if (!there) return BPT_OK;
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return bpt_fail_write(errno, "remove", path);
    return BPT_OK;
}

static _Thread_local uint64_t counted_bytes; /* nftw() carries nothing for its caller */

static int count_entry(const char *path, const struct stat *info, int type, struct FTW *walk) {
    enum { BLOCK_BYTES = 512 }; /* the unit of st_blocks */
    (void)path;
    (void)walk;
    const bool is_one_of_names = type == FTW_F && info->st_nlink > 1;
    if (type != FTW_NS && !is_one_of_names)
        counted_bytes += (uint64_t)info->st_blocks * BLOCK_BYTES;
    return 0;
}

uint64_t bpt_dir_bytes(const char *path) {
    counted_bytes = 0;
    (void)nftw(path, count_entry, 16, FTW_PHYS);
    return counted_bytes;
}

bool bpt_path_exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

bool bpt_path_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bpt_status bpt_path_look(const char *path, bool *exists) {
    struct stat info;
    *exists = lstat(path, &info) == 0;
    return *exists || is_nothing(errno) ? BPT_OK : bpt_fail_errno(errno, "look at", path);
}
