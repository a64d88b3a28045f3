/* What runs in the handler takes no lock and no memory, and calls only what a handler may. It asks
 * the system whose page it was: LMDB does not tell where its maps are, and moves them. Marks are
 * never given back, only used again, and only for the same file, so that a handler on another
 * thread may look at any: whose a mark is does not change under its eyes. */
#include "storage/environment/lost_pages.h"

#include "base/file.h"
#include "base/log.h"

#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* A file as /proc/self/maps names it. stat() is no help: btrfs and overlays give other devices. */
typedef struct file_id {
    uint64_t major, minor, inode; /* inode 0: no file */
} file_id;

struct bpt__watched {
    bpt__watched *next;
    atomic_bool used; /* release after lost is cleared; acquire in the handler */
    atomic_bool lost; /* set before zeros can be seen; release, and acquire behind a fence */
    file_id id;       /* written before the mark can be found */
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

/* @param base 10 or 16
 * @param[out] end the character behind it, -1: none */
static uint64_t read_number(map_list *m, unsigned base, int *end) {
    uint64_t value = 0;
    for (;;) {
        const int c = *end = next_char(m);
        if (c >= '0' && c <= '9')
            value = value * base + (uint64_t)(c - '0');
        else if (base == 16 && c >= 'a' && c <= 'f')
            value = value * base + (uint64_t)(c - 'a' + 10);
        else
            return value;
    }
}

static void skip_to(map_list *m, char wanted, int *end) {
    while (*end >= 0 && *end != wanted) *end = next_char(m);
}

/* A line is "FROM-TO RIGHTS OFFSET MAJOR:MINOR INODE   PATH"; a path has no line ends in it.
 * @param[out] id the file that is mapped at @p address; inode 0: memory
 * @return whether anything is mapped there */
static bool find_file(uintptr_t address, file_id *id) {
    map_list m = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool found = false;
    int c = m.fd < 0 ? -1 : 0;
    *id = (file_id){0};
    while (c >= 0) {
        const uint64_t from = read_number(&m, 16, &c), to = read_number(&m, 16, &c);
        c = next_char(&m);
        skip_to(&m, ' ', &c);
        (void)read_number(&m, 16, &c);
        file_id here;
        here.major = read_number(&m, 16, &c);
        here.minor = read_number(&m, 16, &c);
        here.inode = read_number(&m, 10, &c);
        skip_to(&m, '\n', &c);
        if (address < from || address >= to) continue;
        *id = here;
        found = true;
        break;
    }
    if (m.fd >= 0) close(m.fd);
    return found;
}

static bool same_file(file_id a, file_id b) {
    return a.inode == b.inode && a.major == b.major && a.minor == b.minor;
}

static bool mark_lost(file_id id) {
    bool found = false;
    bpt__watched *w = atomic_load_explicit(&all, memory_order_acquire);
    for (; w && id.inode != 0; w = w->next) {
        if (!same_file(w->id, id) || !atomic_load_explicit(&w->used, memory_order_acquire))
            continue;
        atomic_store_explicit(&w->lost, true, memory_order_release);
        found = true;
    }
    return found;
}

/* @param code why the page raised the signal
 * @return whether the page at @p address was one of ours and can be read now */
static bool replace_page(uintptr_t address, int code) {
    enum { MAX_LOOKS = 100 }; /* the list may have a hole while another thread changes a map */
    file_id id;
    bool mapped = false;
    for (int i = 0; i < MAX_LOOKS && !mapped; i++) mapped = find_file(address, &id);
    /* Memory is never beyond the end of a file: another thread was here before. */
    if (mapped && id.inode == 0) return code == BUS_ADRERR;
    if (!mark_lost(id)) return false;
    void *page = (void *)(address & ~(page_bytes - 1)); /* NOLINT: an address is what we have */
    return mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                -1, 0) != MAP_FAILED;
}

/* To whoever handled it before. */
static void hand_over(int number, siginfo_t *info, void *context, bool sent) {
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler == SIG_DFL || !sent) { /* that of a page cannot be ignored */
        sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        if (sent) raise(number); /* a page raises it again, at the same place */
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    const int error = errno;
    const bool sent = info->si_code <= 0; /* by a process, not by a page */
    if (sent || !replace_page((uintptr_t)info->si_addr, info->si_code))
        hand_over(number, info, context, sent);
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

/* @return a mark of this file that was given back; NULL: there is none */
static bpt__watched *find_unused(file_id id) {
    bpt__watched *w = atomic_load_explicit(&all, memory_order_relaxed);
    while (w && (atomic_load_explicit(&w->used, memory_order_relaxed) || !same_file(w->id, id)))
        w = w->next;
    return w;
}

/* Maps a page of it, to see what the list of maps calls it. */
static bpt_status identify(int fd, const char *path, file_id *id) {
    void *page = mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) return bpt_fail_errno(errno, "map", path);
    (void)find_file((uintptr_t)page, id);
    munmap(page, 1);
    return BPT_OK;
}

bpt_status bpt__lost_pages_watch(int fd, const char *path, bpt__watched **out) {
    file_id id;
    BPT_TRY(identify(fd, path, &id));
    if (id.inode == 0) bpt_debug("%s is not watched: /proc/self/maps does not name it", path);
    pthread_mutex_lock(&mutex);
    install();
    bpt__watched *w = find_unused(id);
    const bool is_new = !w;
    if (is_new) w = calloc(1, sizeof *w); /* for ever, so not one of bpt_memory_live() */
    if (w) {
        atomic_store_explicit(&w->lost, false, memory_order_relaxed);
        atomic_store_explicit(&w->used, true, memory_order_release);
    }
    if (w && is_new) {
        w->id = id;
        w->next = atomic_load_explicit(&all, memory_order_relaxed);
        atomic_store_explicit(&all, w, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    if (!w) return bpt_fail(BPT_ENOMEM, "a watch over %s: cannot allocate memory", path);
    *out = w;
    return BPT_OK;
}

void bpt__lost_pages_unwatch(bpt__watched *watched) {
    if (watched) atomic_store_explicit(&watched->used, false, memory_order_release);
}

/* Who asks has read pages before, and a processor may do even a load that acquires before earlier
 * reads. */
bool bpt__lost_pages_any(const bpt__watched *watched) {
#ifndef __SANITIZE_THREAD__ /* which knows no fences, and lets no load go before another */
    atomic_thread_fence(memory_order_acquire);
#endif
    return watched && atomic_load_explicit(&watched->lost, memory_order_acquire);
}
