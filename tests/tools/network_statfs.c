/* For LD_PRELOAD: what lies below a folder "on-network" is on NFS, as far as statfs() says. */
#include <sys/vfs.h>

#include <dlfcn.h>
#include <string.h>

int statfs(const char *path, struct statfs *fs) {
    int (*real)(const char *, struct statfs *);
    *(void **)&real = dlsym(RTLD_NEXT, "statfs");
    const int result = real(path, fs);
    if (result == 0 && strstr(path, "on-network")) fs->f_type = 0x6969;
    return result;
}
