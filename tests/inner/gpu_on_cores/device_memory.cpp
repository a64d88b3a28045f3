#include "tests/inner/gpu_on_cores/device_memory.h"

#include "tests/inner/gpu_on_cores/stream.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>

using namespace gpu_on_cores;

typedef std::lock_guard<std::recursive_mutex> holder;

enum : size_t { ARENA_BYTES = 8 * MEMORY_BYTES, ALIGNMENT = 256 };
enum { POISON = 0xFF }; /* of floats and bfloat16, NaNs */
enum { NO_GPU = -2 };

struct block {
    int gpu;
    char *begin;
    size_t bytes;  /* that were asked for */
    size_t mapped; /* whole pages, which end behind them */
};

static char *arena;
static const size_t page = (size_t)sysconf(_SC_PAGESIZE);
static std::map<char *, block> blocks; /* by their first page */
static std::map<int, size_t> used;     /* bytes of each GPU that has given some */
static unsigned n_open;
static int open_gpu = NO_GPU;

/* The host's memory that is pinned. */
struct pinned {
    size_t bytes;
    bool is_own; /* the host's, by cudaHostRegister() */
};
static std::map<char *, pinned> pins; /* by where they begin */

/* ---- who may touch it ---- */

static void open_of(int gpu) {
    if (gpu == open_gpu) return;
    for (const auto &b : blocks) {
        const bool open = gpu == ALL_GPUS || gpu == b.second.gpu;
        mprotect(b.first, b.second.mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
    open_gpu = gpu;
}

/* Where it alone has given memory there is none to keep from it, nor to close again. */
void open_memory::turn_to(int gpu) {
    const bool alone = used.size() == 1 && used.count(gpu) == 1;
    open_of(alone ? ALL_GPUS : gpu);
}

open_memory::open_memory() {
    n_open++;
}

open_memory::~open_memory() {
    if (--n_open == 0) open_of(NO_GPU);
}

/* ---- blocks ---- */

/* The first gap between blocks that is large enough, with a page free before the next one.
 * @return NULL: there is none */
static char *find_gap(size_t mapped) {
    char *at = arena;
    for (const auto &b : blocks) {
        if ((size_t)(b.first - at) >= mapped + page) return at;
        at = b.first + b.second.mapped + page;
    }
    return (size_t)(arena + ARENA_BYTES - at) >= mapped + page ? at : nullptr;
}

static bool make_arena() {
    if (arena) return true;
    void *at =
        mmap(nullptr, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    arena = (char *)at;
    return true;
}

static size_t used_of(int gpu) {
    const auto found = used.find(gpu);
    return found == used.end() ? 0 : found->second;
}

/* A block ends with its pages' end as far as its alignment lets it. What is before and behind it
 * the address sanitizer does not let pass. */
static cudaError_t allocate(void **at, size_t bytes) {
    const size_t mapped = (bytes + page - 1) / page * page;
    const int gpu = current_gpu();
    if (bytes == 0 || bytes > MEMORY_BYTES || used_of(gpu) + mapped > MEMORY_BYTES || !make_arena())
        return failed(cudaErrorMemoryAllocation);
    char *gap = find_gap(mapped);
    if (!gap || mprotect(gap, mapped, PROT_READ | PROT_WRITE) != 0)
        return failed(cudaErrorMemoryAllocation);
    memset(gap, POISON, mapped);
    char *begin = gap + mapped - (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    ASAN_POISON_MEMORY_REGION(gap, (size_t)(begin - gap));
    ASAN_POISON_MEMORY_REGION(begin + bytes, mapped - (size_t)(begin - gap) - bytes);
    mprotect(gap, mapped, PROT_NONE);
    blocks[gap] = {gpu, begin, bytes, mapped};
    used[gpu] += mapped;
    *at = begin;
    return cudaSuccess;
}

/* @return the block that an address lies in, or the end */
static std::map<char *, block>::iterator find(const void *at) {
    auto after = blocks.upper_bound((char *)(uintptr_t)at);
    if (after == blocks.begin()) return blocks.end();
    auto b = std::prev(after);
    return (const char *)at < b->first + b->second.mapped ? b : blocks.end();
}

static bool is_ours(const void *at) {
    return arena && (const char *)at >= arena && (const char *)at < arena + ARENA_BYTES;
}

/* How much of the host's memory is pinned. */
enum class part { none, some, all };

static part pinned_part(const void *at, size_t bytes) {
    const char *begin = (const char *)at, *end = begin + bytes;
    size_t n = 0; /* no two pieces overlap */
    for (const auto &p : pins) {
        const char *first = std::max<const char *>(p.first, begin);
        const char *last = std::min<const char *>(p.first + p.second.bytes, end);
        if (first < last) n += (size_t)(last - first);
    }
    if (n == bytes) return part::all;
    return n > 0 ? part::some : part::none;
}

/* Of the host, pinned as a whole or not at all, or within one block. */
static bool may_copy(const void *at, size_t bytes) {
    if (!is_ours(at)) return (at != nullptr || bytes == 0) && pinned_part(at, bytes) != part::some;
    const auto b = find(at);
    return b != blocks.end() && (const char *)at >= b->second.begin &&
           (const char *)at + bytes <= b->second.begin + b->second.bytes;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    const holder hold(lock);
    *free_bytes = MEMORY_BYTES - used_of(current_gpu());
    *total_bytes = MEMORY_BYTES;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **at, size_t bytes) {
    const holder hold(lock);
    return is_unsafe() ? spoil_captures() : allocate(at, bytes);
}

/* Waits, as CUDA's does. */
cudaError_t cudaFree(void *at) {
    const holder hold(lock);
    if (!at) return cudaSuccess;
    const auto b = find(at);
    if (b == blocks.end() || at != b->second.begin) return failed(cudaErrorInvalidValue);
    const cudaError_t error = finish_all();
    if (error != cudaSuccess) return error;
    ASAN_UNPOISON_MEMORY_REGION(b->first, b->second.mapped);
    mmap(b->first, b->second.mapped, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    const auto left = used.find(b->second.gpu);
    left->second -= b->second.mapped;
    if (left->second == 0) used.erase(left);
    blocks.erase(b);
    return cudaSuccess;
}

size_t gpu_on_cores_pinned(void) {
    const holder hold(lock);
    return pins.size();
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags) {
    const holder hold(lock);
    if (flags != cudaHostAllocDefault) return failed(cudaErrorInvalidValue);
    if (is_unsafe()) return spoil_captures();
    if (posix_memalign(at, page, bytes) != 0) return failed(cudaErrorMemoryAllocation);
    pins[(char *)*at] = {bytes, false};
    return cudaSuccess;
}

/* @param is_own the host's */
static bool is_pinned(void *at, bool is_own) {
    const auto found = pins.find((char *)at);
    return found != pins.end() && found->second.is_own == is_own;
}

cudaError_t cudaFreeHost(void *at) {
    const holder hold(lock);
    if (!is_pinned(at, false)) return failed(cudaErrorInvalidValue);
    const cudaError_t error = finish_all();
    if (error != cudaSuccess) return error;
    pins.erase((char *)at);
    free(at);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags) {
    const holder hold(lock);
    if (!at || bytes == 0 || flags != cudaHostRegisterDefault) return failed(cudaErrorInvalidValue);
    if (is_unsafe()) return spoil_captures();
    if (pinned_part(at, bytes) != part::none) return failed(cudaErrorHostMemoryAlreadyRegistered);
    pins[(char *)at] = {bytes, true};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *at) {
    const holder hold(lock);
    if (!is_pinned(at, true)) return failed(cudaErrorInvalidValue);
    /* It is to be there still, which a sanitizer looks at. */
    (void)((volatile char *)at)[0];
    (void)((volatile char *)at)[pins[(char *)at].bytes - 1];
    const cudaError_t error = finish_all();
    if (error != cudaSuccess) return error;
    pins.erase((char *)at);
    return cudaSuccess;
}

/* ---- copies ---- */

/* A graph's copy comes to memory that is pinned or the GPU's. Others of the host's would be copied
 * piece by piece by the driver, which nobody has a use for in a graph. */
static bool is_lasting(const void *at, size_t bytes) {
    return is_ours(at) || pinned_part(at, bytes) == part::all;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind,
                            cudaStream_t stream) {
    const holder hold(lock);
    if (!may_copy(to, bytes) || !may_copy(from, bytes)) return failed(cudaErrorInvalidValue);
    if (captures(stream) && !(is_lasting(to, bytes) && is_lasting(from, bytes)))
        return spoil_capture_of(stream);
    return put(stream, reach::all_gpus, [to, from, bytes] {
        if (bytes) memcpy(to, from, bytes); /* of nothing, addresses may be NULL */
    });
}

/* CUDA's guide says that kernels are refused on a stream of another GPU than the thread's. That
 * this is too is an assumption: of it nothing is said. */
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    const holder hold(lock);
    if (!is_ours(to) || !may_copy(to, bytes)) return failed(cudaErrorInvalidValue);
    return put(stream, reach::its_gpu, [to, value, bytes] { memset(to, value, bytes); });
}
