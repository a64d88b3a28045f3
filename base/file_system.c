#include "base/file_system.h"

#include "base/file.h"

#include <sys/statfs.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    uint32_t type; /* statfs.f_type, of which 32 bits count */
    const char *name;
    bool network;
} kinds[] = {
    {0xEF53, "ext4", false},      {0x58465342, "xfs", false},     {0x9123683E, "btrfs", false},
    {0x01021994, "tmpfs", false}, {0x794C7630, "overlay", false}, {0x2FC12FC1, "zfs", false},
    {0xF2F52010, "f2fs", false},  {0x858458F6, "ramfs", false},   {0x73717368, "squashfs", false},
    {0x4D44, "vfat", false},      {0x6969, "nfs", true},          {0xFF534D42, "cifs", true},
    {0xFE534D42, "smb2", true},   {0x517B, "smb", true},          {0x0BD00BD0, "lustre", true},
    {0x65735546, "fuse", true},   {0x19830326, "beegfs", true},   {0x47504653, "gpfs", true},
    {0x00C36400, "ceph", true},   {0x5346414F, "afs", true},      {0x01021997, "9p", true},
    {0x01161970, "gfs2", true},   {0x7461636F, "ocfs2", true},    {0xAAD7AAEA, "panfs", true},
};

void bpt_path_nearest(const char *path, char *found, size_t size) {
    snprintf(found, size, "%s", path);
    for (size_t length = strlen(found); !bpt_path_exists(found);) {
        while (length > 0 && found[length - 1] == '/') length--;
        while (length > 0 && found[length - 1] != '/') length--;
        while (length > 1 && found[length - 1] == '/') length--; /* "file/" would not be there */
        if (length == 0) {
            snprintf(found, size, "."); /* a relative path begins here */
            return;
        }
        found[length] = '\0';
    }
}

/* From the root on, as far as it is there.
 * @param[out] out shape [size] */
static void resolve(const char *path, char *out, size_t size) {
    char nearest[4096];
    bpt_path_nearest(path, nearest, sizeof nearest);
    const size_t n = strlen(nearest);
    const bool begins = strncmp(path, nearest, n) == 0 && strchr("/", path[n]); /* or ends */
    char *real = realpath(nearest, NULL);
    snprintf(out, size, "%s/%s", real ? real : nearest, begins ? path + n : path);
    free(real); /* the C library's own memory */
}

/* Steps over the next name of a path. @return its length, 0 at the end */
static size_t next_name(const char **path, const char **name) {
    size_t n;
    do {
        *path += strspn(*path, "/");
        *name = *path;
        n = strcspn(*path, "/");
        *path += n;
    } while (n == 1 && **name == '.');
    return n;
}

bool bpt_path_lies_in(const char *path, const char *folder) {
    char inner[8192], outer[8192];
    const char *in = inner, *out = outer, *a, *b;
    resolve(path, inner, sizeof inner);
    resolve(folder, outer, sizeof outer);
    for (;;) {
        const size_t n = next_name(&out, &b);
        if (n == 0) return true;
        if (next_name(&in, &a) != n || memcmp(a, b, n) != 0) return false;
    }
}

bpt_status bpt_path_check_writable(const char *path) {
    char nearest[4096], inside[sizeof nearest + 2];
    bpt_path_nearest(path, nearest, sizeof nearest);
    snprintf(inside, sizeof inside, "%s/.", nearest); /* no file has that, executable or not */
    if (access(inside, W_OK | X_OK) == 0) return BPT_OK;
    return bpt_fail_write(errno, "write to", nearest);
}

bpt_file_system bpt_file_system_at(const char *path) {
    char folder[4096];
    struct statfs fs;
    bpt_file_system at = {.kind = ""};
    bpt_path_nearest(path, folder, sizeof folder);
    if (statfs(folder, &fs) != 0) return at;
    at.free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (fs.f_blocks == 0) at.free_bytes = UINT64_MAX; /* as of user-space ones without statfs() */
    snprintf(at.kind, sizeof at.kind, "0x%x", (unsigned)(uint32_t)fs.f_type);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].type != (uint32_t)fs.f_type) continue;
        snprintf(at.kind, sizeof at.kind, "%s", kinds[i].name);
        at.network = kinds[i].network;
    }
    return at;
}
