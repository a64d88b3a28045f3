#include "storage/stage/stage_folder.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/stage/stage_blocks.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SEAL_SIZE = 256, IDENTITY_DIGITS = 16 };

/* Behind the last slash; there is no slash at the end. */
static const char *last_part(const char *dataset) {
    const char *slash = strrchr(dataset, '/');
    const char *name = slash ? slash + 1 : dataset;
    return *name ? name : "dataset";
}

bpt_status bpt__stage_folder_name(const char *dir, const char *dataset, uint64_t identity,
                                  char **path) {
    return bpt_strf(path, "%s/%s-%016" PRIx64, dir, last_part(dataset), identity);
}

bpt_status bpt__stage_folder_header(const char *dataset, uint64_t identity, uint64_t bytes,
                                    char **header) {
    char shown[PATH_MAX];
    bpt_text_escape(dataset, shown, sizeof shown);
    return bpt_strf(header, "bpt-stage 1 %016" PRIx64 " %" PRIu64 " %d %s", identity, bytes,
                    BPT__BLOCK_BYTES, shown);
}

/* ---- the lock ---- */

bpt_status bpt__stage_folder_open(const char *path, int *fd) {
    char *file;
    BPT_TRY(bpt_dir_create(path, false));
    BPT_TRY(bpt_strf(&file, "%s/" BPT__STAGE_LOCK, path));
    bpt_status status = BPT_OK;
    *fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    /* Another user's copy: to be used as it is. */
    if (*fd < 0 && (errno == EACCES || errno == EROFS)) *fd = open(file, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) status = bpt_fail_write(errno, "open", file);
    bpt_free(file);
    return status;
}

static bool is_still_there(const char *path, int fd) {
    char *file;
    if (bpt_strf(&file, "%s/" BPT__STAGE_LOCK, path) != BPT_OK) return false;
    const bool same = bpt_file_is_at(fd, file);
    bpt_free(file);
    return same;
}

bpt_status bpt__stage_folder_lock(const char *path, int fd, bpt__stage_lock kind, bool *taken,
                                  bool *gone) {
    *taken = *gone = false;
    if (flock(fd, (kind == BPT__STAGE_MAKE ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) {
        *gone = !is_still_there(path, fd);
        *taken = !*gone;
        return BPT_OK;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
        const bpt_status status = bpt_fail_errno(errno, "lock", path);
        bpt_hint("name a --stage on a disk of the machine itself");
        return status;
    }
    (void)flock(fd, LOCK_UN); /* changing one that was held may have lost it, or not */
    return BPT_OK;
}

/* ---- the seal ---- */

/* What is in the seal of the copy as it is now. @return whether there is one */
static bool describe(const char *path, uint64_t identity, char seal[SEAL_SIZE]) {
    char *file;
    struct stat i;
    if (bpt_strf(&file, "%s/" BPT__STAGE_DATA, path) != BPT_OK) return false;
    const bool there = stat(file, &i) == 0 && S_ISREG(i.st_mode);
    bpt_free(file);
    if (there)
        snprintf(seal, SEAL_SIZE, "bpt-stage 1 %016" PRIx64 " %llu %llu %lld.%09ld %lld.%09ld\n",
                 identity, (unsigned long long)i.st_ino, (unsigned long long)i.st_size,
                 (long long)i.st_mtim.tv_sec, i.st_mtim.tv_nsec, (long long)i.st_ctim.tv_sec,
                 i.st_ctim.tv_nsec);
    return there;
}

bool bpt__stage_folder_sealed(const char *path, uint64_t identity) {
    char seal[SEAL_SIZE], *file, *text;
    size_t size;
    if (!describe(path, identity, seal)) return false;
    if (bpt_strf(&file, "%s/" BPT__STAGE_SEAL, path) != BPT_OK) return false;
    const bool there = bpt_file_read(file, SEAL_SIZE, &text, &size) == BPT_OK;
    bpt_free(file);
    if (!there) return false;
    const bool same = strcmp(seal, text) == 0;
    bpt_free(text);
    return same;
}

bpt_status bpt__stage_folder_seal(const char *path, uint64_t identity) {
    char seal[SEAL_SIZE], *file;
    if (!describe(path, identity, seal))
        return bpt_fail(BPT_EIO, "the copy in %s was taken away while it was made", path);
    BPT_TRY(bpt_strf(&file, "%s/" BPT__STAGE_SEAL, path));
    const bpt_status status = bpt_file_write(file, seal, strlen(seal));
    bpt_free(file);
    return status;
}

/* ---- earlier copies ---- */

/* Whether the list of a folder says that it is of this dataset. */
static bool is_copy_of(const char *path, const char *shown) {
    char *file, line[PATH_MAX + 128] = "";
    int behind = 0;
    if (bpt_strf(&file, "%s/" BPT__STAGE_LIST, path) != BPT_OK) return false;
    FILE *list = fopen(file, "re");
    bpt_free(file);
    if (!list) return false;
    const bool read = fgets(line, sizeof line, list) != NULL;
    fclose(list);
    line[strcspn(line, "\n")] = '\0';
    (void)sscanf(line, "bpt-stage 1 %*16[0-9a-f] %*u %*u %n", &behind);
    return read && behind > 0 && strcmp(line + behind, shown) == 0;
}

static void remove_unused(const char *path) {
    bool taken = false, gone = false;
    int fd;
    if (bpt__stage_folder_open(path, &fd) != BPT_OK) return;
    if (bpt__stage_folder_lock(path, fd, BPT__STAGE_MAKE, &taken, &gone) == BPT_OK && taken) {
        if (bpt_dir_remove(path) == BPT_OK)
            bpt_info("%s is removed: its dataset has changed since", path);
        else
            bpt_warn("an earlier copy is left: %s", bpt_error_last()->text);
    }
    close(fd);
}

/* @return whether the name is NAME-IDENTITY, and not that of the copy itself */
static bool is_earlier(const char *entry, const char *name, uint64_t identity) {
    const size_t length = strlen(name);
    char mine[IDENTITY_DIGITS + 1];
    if (strlen(entry) != length + 1 + IDENTITY_DIGITS || memcmp(entry, name, length) != 0 ||
        entry[length] != '-')
        return false;
    const char *digits = entry + length + 1;
    snprintf(mine, sizeof mine, "%016" PRIx64, identity);
    return strspn(digits, "0123456789abcdef") == IDENTITY_DIGITS && strcmp(digits, mine) != 0;
}

void bpt__stage_folder_clean(const char *dir, const char *dataset, uint64_t identity) {
    char shown[PATH_MAX];
    DIR *all = opendir(dir);
    bpt_text_escape(dataset, shown, sizeof shown);
    for (const struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
        char *path;
        if (!is_earlier(e->d_name, last_part(dataset), identity)) continue;
        if (bpt_strf(&path, "%s/%s", dir, e->d_name) != BPT_OK) break;
        if (is_copy_of(path, shown)) remove_unused(path);
        bpt_free(path);
    }
    if (all) closedir(all);
}
