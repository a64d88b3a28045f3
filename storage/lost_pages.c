/* What runs in the handler takes no lock and no memory, and calls only what a handler may. It asks
 * the system whose page it was: LMDB does not tell where its maps are, and moves them. Marks are
 * never given back, only used again, so that a handler on another thread may look at any. */
#include "storage/lost_pages.h"

#include "base/file.h"

#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bpt__watched {
    bpt__watched *next;
    atomic_bool used;      /* release after folder is written; acquire in the handler */
    atomic_bool lost;      /* set before zeros can be seen; release and acquire */
    char folder[PATH_MAX]; /* without links; "" for the root */
};
_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2, "safe in a handler");

static _Atomic(bpt__watched *) all; /* grows at its head: release, acquire in the handler */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows, and growth */
static struct sigaction before; /* read in the handler, which is not yet ours when this changes */
static uintptr_t page_bytes;

/* ---- in the handler ---- */

/* /proc/self/maps, read piece by piece. */
typedef struct map_list {
    int fd;
    ssize_t n, at;
    char bytes[1024];
} map_list;

/* @return the next character, -1 at the end */
static int next_char(map_list *m) {
    if (m->at == m->n) {
        m->n = read(m->fd, m->bytes, sizeof m->bytes);
        m->at = 0;
        if (m->n <= 0) return m->n = 0, -1;
    }
    return (unsigned char)m->bytes[m->at++];
}

static uintptr_t read_address(map_list *m, int *end) {
    uintptr_t value = 0;
    int c;
    while ((c = next_char(m)) >= 0) {
        if (c >= '0' && c <= '9')
            value = value * 16 + (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uintptr_t)(c - 'a' + 10);
        else
            break;
    }
    *end = c;
    return value;
}

/* A line is "FROM-TO rights offset device inode   PATH"; the path alone has slashes.
 * @param line shape [size], room for work
 * @return the path of the file that is mapped at @p address, in @p line; NULL: none */
static const char *find_path(int fd, uintptr_t address, char *line, size_t size) {
    map_list m = {.fd = fd};
    int c;
    do {
        const uintptr_t from = read_address(&m, &c), to = read_address(&m, &c);
        size_t n = 0;
        while (c >= 0 && (c = next_char(&m)) >= 0 && c != '\n')
            if (n + 1 < size) line[n++] = (char)c;
        line[n] = 0;
        if (address >= from && address < to) return strchr(line, '/');
    } while (c >= 0);
    return NULL;
}

static bool lies_in(const char *path, const char *folder) {
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

static bool mark_lost(const char *path) {
    bool found = false;
    bpt__watched *w = atomic_load_explicit(&all, memory_order_acquire);
    for (; w; w = w->next) {
        if (!atomic_load_explicit(&w->used, memory_order_acquire) || !lies_in(path, w->folder))
            continue;
        atomic_store_explicit(&w->lost, true, memory_order_release);
        found = true;
    }
    return found;
}

/* @return whether the page at @p address was one of ours and can be read now */
static bool replace_page(uintptr_t address) {
    char line[PATH_MAX + 128];
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const char *path = find_path(fd, address, line, sizeof line);
    close(fd);
    if (!path || !mark_lost(path)) return false;
    void *page = (void *)(address & ~(page_bytes - 1)); /* NOLINT: an address is what we have */
    return mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                -1, 0) != MAP_FAILED;
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)context;
    const int error = errno;
    const bool sent = info->si_code <= 0; /* by a process, not by a page */
    if (sent || !replace_page((uintptr_t)info->si_addr)) {
        sigaction(number, &before, NULL); /* a page raises it again, at the same place */
        if (sent) raise(number);
    }
    errno = error;
}

/* ---- outside of it ---- */

/* With the mutex held. Another part of the program may have put its own handler there since. */
static void install(void) {
    struct sigaction now, action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, NULL, &now);
    if (now.sa_sigaction == on_bus_error) return;
    before = now;
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, NULL);
}

static bpt__watched *find_unused(void) {
    bpt__watched *w = atomic_load_explicit(&all, memory_order_relaxed);
    while (w && atomic_load_explicit(&w->used, memory_order_relaxed)) w = w->next;
    return w;
}

bpt_status bpt__lost_pages_watch(const char *folder, bpt__watched **out) {
    char path[PATH_MAX];
    if (!realpath(folder, path)) return bpt_fail_errno(errno, "open", folder);
    pthread_mutex_lock(&mutex);
    install();
    bpt__watched *w = find_unused();
    const bool is_new = !w;
    if (is_new) w = calloc(1, sizeof *w); /* for ever, so not one of bpt_memory_live() */
    if (w) {
        strcpy(w->folder, strcmp(path, "/") == 0 ? "" : path);
        atomic_store_explicit(&w->lost, false, memory_order_relaxed);
        atomic_store_explicit(&w->used, true, memory_order_release);
    }
    if (w && is_new) {
        w->next = atomic_load_explicit(&all, memory_order_relaxed);
        atomic_store_explicit(&all, w, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    if (!w) return bpt_fail(BPT_ENOMEM, "a watch over %s: cannot allocate memory", folder);
    *out = w;
    return BPT_OK;
}

void bpt__lost_pages_unwatch(bpt__watched *watched) {
    if (watched) atomic_store_explicit(&watched->used, false, memory_order_release);
}

bool bpt__lost_pages_any(const bpt__watched *watched) {
    return atomic_load_explicit(&watched->lost, memory_order_acquire);
}
