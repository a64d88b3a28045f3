/* For LD_PRELOAD: stat() and lstat() of paths that end with BPT_TEST_UNSEEN fail, as those of a
 * network file system do that has lost a file from its sight (ESTALE). */
#include <sys/stat.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int is_unseen(const char *path) {
    const char *end = getenv("BPT_TEST_UNSEEN");
    const size_t length = strlen(path), n = end ? strlen(end) : 0;
    if (n == 0 || length < n || strcmp(path + length - n, end) != 0) return 0;
    errno = ESTALE;
    return 1;
}

int stat(const char *path, struct stat *info) {
    int (*real)(const char *, struct stat *);
    *(void **)&real = dlsym(RTLD_NEXT, "stat");
    return is_unseen(path) ? -1 : real(path, info);
}

int lstat(const char *path, struct stat *info) {
    int (*real)(const char *, struct stat *);
    *(void **)&real = dlsym(RTLD_NEXT, "lstat");
    return is_unseen(path) ? -1 : real(path, info);
}
