#include "base/memory.h"

#include "base/cgroup.h"

#include <sys/mman.h>

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Plain counters: each is read alone, so relaxed order is enough. */
static atomic_uint_fast64_t n_allocations;
static atomic_uint_fast64_t n_live;
static atomic_int_fast64_t allocations_until_failure = -1;

static int must_fail(void) {
    if (atomic_load_explicit(&allocations_until_failure, memory_order_relaxed) < 0) return 0;
    return atomic_fetch_sub_explicit(&allocations_until_failure, 1, memory_order_relaxed) == 0;
}

bpt_status bpt_size_multiply(size_t a, size_t b, size_t *product) {
    size_t result;
    if (__builtin_mul_overflow(a, b, &result))
        return bpt_fail(BPT_ENOMEM, "size overflow: %zu x %zu", a, b);
    *product = result;
    return BPT_OK;
}

size_t bpt_size_add(size_t a, size_t b) {
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

void bpt_memory_keep(void) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most that glibc takes */
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

static size_t whole_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
}

size_t bpt_memory_of_machine(void) {
    const size_t all = whole_memory(), left = bpt_cgroup_read().memory_bytes;
    return left < all ? left : all;
}

const char *bpt_memory_bound(void) {
    return bpt_cgroup_read().memory_bytes < whole_memory() ? "a control group leaves"
                                                           : "this machine has";
}

/* @return bytes of whole lines, at least one */
static size_t whole_lines(size_t bytes) {
    const size_t lines = (bytes + BPT_ALIGNMENT - 1) / BPT_ALIGNMENT;
    return (lines > 0 ? lines : 1) * BPT_ALIGNMENT;
}

/* Whole huge pages, as far as they go: fewer misses of the address cache, and MPI, which copies
 * from the memory of another process, has fewer pages to look up. Just advice: all else is as it
 * would be without. */
static void *allocate(size_t bytes) {
    const size_t alignment = bytes < BPT_HUGE_FROM ? BPT_ALIGNMENT : BPT_HUGE_PAGE;
    void *memory;
    if (posix_memalign(&memory, alignment, whole_lines(bytes)) != 0) return NULL;
    if (bytes >= BPT_HUGE_FROM)
        (void)madvise(memory, bytes / BPT_HUGE_PAGE * BPT_HUGE_PAGE, MADV_HUGEPAGE);
    return memory;
}

bpt_status bpt_alloc_unset(const char *what, size_t count, size_t size, void **out) {
    size_t bytes;
    BPT_TRY(bpt_size_multiply(count, size, &bytes));
    if (bytes > SIZE_MAX - BPT_ALIGNMENT)
        return bpt_fail(BPT_ENOMEM, "%s: %zu bytes are too many", what, bytes);
    void *memory = must_fail() ? NULL : allocate(bytes);
    if (!memory) return bpt_fail(BPT_ENOMEM, "%s: cannot allocate %zu bytes", what, bytes);
    atomic_fetch_add_explicit(&n_allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&n_live, 1, memory_order_relaxed);
    *out = memory;
    return BPT_OK;
}

bpt_status bpt_alloc(const char *what, size_t count, size_t size, void **out) {
    BPT_TRY(bpt_alloc_unset(what, count, size, out));
    memset(*out, 0, whole_lines(count * size));
    return BPT_OK;
}

bpt_status bpt_grow(const char *what, size_t need, size_t size, void **array, size_t *capacity) {
    if (need <= *capacity) return BPT_OK;
    size_t grown = *capacity < 8 ? 8 : *capacity;
    while (grown < need) {
        if (grown > SIZE_MAX / 2) return bpt_fail(BPT_ENOMEM, "%s: %zu elements", what, need);
        grown *= 2;
    }
    void *memory;
    BPT_TRY(bpt_alloc(what, grown, size, &memory));
    if (*array) memcpy(memory, *array, *capacity * size);
    bpt_free(*array);
    *array = memory;
    *capacity = grown;
    return BPT_OK;
}

bpt_status bpt_strdup(const char *text, char **out) {
    const size_t size = strlen(text) + 1;
    char *copy;
    BPT_TRY(bpt_alloc("text", size, 1, (void **)&copy));
    memcpy(copy, text, size);
    *out = copy;
    return BPT_OK;
}

bpt_status bpt_strf(char **out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) return bpt_fail(BPT_EUSAGE, "cannot format \"%s\"", format);
    char *text;
    BPT_TRY(bpt_alloc("text", (size_t)length + 1, 1, (void **)&text));
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    *out = text;
    return BPT_OK;
}

void bpt_free(void *memory) {
    if (!memory) return;
    atomic_fetch_sub_explicit(&n_live, 1, memory_order_relaxed);
    free(memory);
}

uint64_t bpt_memory_allocations(void) {
    return atomic_load_explicit(&n_allocations, memory_order_relaxed);
}

uint64_t bpt_memory_live(void) {
    return atomic_load_explicit(&n_live, memory_order_relaxed);
}

void bpt_memory_fail_at(int64_t n) {
    atomic_store_explicit(&allocations_until_failure, n, memory_order_relaxed);
}
