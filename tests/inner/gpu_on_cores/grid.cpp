#include "tests/inner/gpu_on_cores/grid.h"

#include "tests/inner/gpu_on_cores/stream.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <ucontext.h>
#include <unistd.h>
#include <vector>
#ifdef GPU_ON_CORES_IN_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace gpu_on_cores {

enum { STACK_BYTES = 256 << 10 };

/* A stack of its own. */
struct fiber {
    ucontext_t begin;
    bool begun;
    void *jump[5];    /* where it goes on */
    void *fake_stack; /* the address sanitizer's */
    const void *bottom;
    size_t bytes;
};

/* What a thread of the block does, beside running. */
enum class waits { no, for_warp, for_block, for_its_turn };

struct lane {
    fiber *on; /* NULL: not begun, or ended */
    waits state;
    unsigned n_exchanges;
};

/* ---- the block that runs ---- */

static fiber scheduler; /* begun: its stack is the caller's */
static std::vector<std::unique_ptr<fiber>> all_fibers;
static std::vector<fiber *> idle_fibers; /* that wait for a thread to run */
static fiber *running;

static const std::function<void()> *body;
static unsigned n_threads, n_begun, n_ended, current;
static bool backwards;
/* Warps run ahead of each other: each as far as it can before the next goes on. */
static bool ahead;
static lane lanes_of_block[MAX_THREADS];
static std::vector<unsigned> ready;             /* threads that waited, and need not any more */
static volatile uint64_t words[2][MAX_THREADS]; /* of two exchanges, one after another */
static volatile bool all_true[2];               /* of two barriers, likewise */
static unsigned n_barriers;

[[noreturn]] static void give_up(const char *why) {
    fprintf(stderr, "a GPU on cores: %s (block %u,%u of %u,%u; %u threads, %u begun, %u ended)\n",
            why, blockIdx.x, blockIdx.y, gridDim.x, gridDim.y, n_threads, n_begun, n_ended);
    abort();
}

/* ---- changing stacks ---- */

#ifdef GPU_ON_CORES_IN_SANITIZER
static void leave(fiber *from, const fiber *to) {
    __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->bytes);
}

static void arrive(fiber *at, fiber *from) {
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(at->fake_stack, &bottom, &bytes);
    if (from == &scheduler) { /* which runs on whatever stack called it */
        scheduler.bottom = bottom;
        scheduler.bytes = bytes;
    }
}
#else
static void leave(fiber *, const fiber *) {
}

static void arrive(fiber *, fiber *) {
}
#endif

[[noreturn]] __attribute__((noinline)) static void go_to(fiber *to) {
    if (to->begun) __builtin_longjmp(to->jump, 1);
    to->begun = true;
    setcontext(&to->begin);
    give_up("a stack cannot be taken");
}

/* Unlike swapcontext(), which asks the kernel each time, by the compiler's own jumps. */
__attribute__((noinline)) static void change(fiber *from, fiber *to) {
    running = to;
    leave(from, to);
    if (__builtin_setjmp(from->jump) == 0) go_to(to);
    arrive(from, from == &scheduler ? nullptr : &scheduler);
}

static void set_thread(unsigned thread) {
    current = thread;
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y,
                 thread / blockDim.x / blockDim.y};
}

/* Runs threads to their ends, one after another, for as long as there are some; where one waits,
 * this stack is that thread's until it goes on. */
static void run_threads() {
    fiber *self = running;
    arrive(self, &scheduler);
    for (;;) {
        while (n_begun < n_threads) {
            const unsigned thread = backwards ? n_threads - 1 - n_begun : n_begun;
            n_begun++;
            lanes_of_block[thread] = {self, waits::no, 0};
            set_thread(thread);
            (*body)();
            lanes_of_block[current].on = nullptr;
            n_ended++;
            if (ahead && n_begun % WARP == 0) break; /* others of its warp may wait */
        }
        idle_fibers.push_back(self);
        change(self, &scheduler);
    }
}

static fiber *new_fiber() {
    auto made = std::make_unique<fiber>();
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *guard = (char *)mmap(nullptr, page + STACK_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (guard == MAP_FAILED || mprotect(guard, page, PROT_NONE) != 0)
        give_up("there is no memory for a stack");
    char *stack = guard + page;
    made->begun = false;
    made->bottom = stack;
    made->bytes = STACK_BYTES;
    made->fake_stack = nullptr;
    getcontext(&made->begin);
    made->begin.uc_stack.ss_sp = stack;
    made->begin.uc_stack.ss_size = STACK_BYTES;
    made->begin.uc_link = nullptr;
    makecontext(&made->begin, run_threads, 0);
    all_fibers.push_back(std::move(made));
    return all_fibers.back().get();
}

static fiber *take_fiber() {
    if (idle_fibers.empty()) return new_fiber();
    fiber *f = idle_fibers.back();
    idle_fibers.pop_back();
    return f;
}

/* ---- waiting ---- */

static void wait_as(waits how) {
    const unsigned thread = current;
    lanes_of_block[thread].state = how;
    change(lanes_of_block[thread].on, &scheduler);
    set_thread(thread);
}

int wait_for_block(bool x) {
    const unsigned which = n_barriers % 2;
    all_true[which] = all_true[which] && x;
    wait_as(waits::for_block);
    return all_true[which];
}

/* Words of the exchange before may still be read while those of this one are written, but none of
 * the one before that. */
uint64_t exchange(unsigned lanes, uint64_t word, int other) {
    if (lanes != 0xFFFFFFFFu) give_up("a shuffle is not of all lanes");
    const unsigned which = lanes_of_block[current].n_exchanges++ % 2;
    words[which][current] = word;
    wait_as(waits::for_warp);
    return words[which][current ^ (unsigned)other];
}

static void let_go(unsigned begin, unsigned end) {
    for (unsigned n = 0; n < end - begin; n++) { /* the last one in the list goes on first */
        const unsigned i = backwards ? begin + n : end - 1 - n;
        if (!lanes_of_block[i].on) continue;
        lanes_of_block[i].state = waits::no;
        ready.push_back(i);
    }
}

/* @return lanes of a warp that wait so */
static unsigned count_lanes(unsigned begin, waits how) {
    unsigned n = 0;
    for (unsigned i = begin; i < begin + WARP; i++)
        n += lanes_of_block[i].on && lanes_of_block[i].state == how;
    return n;
}

/* Of warps that run ahead: one that is there for an exchange, else one that a barrier has let go.
 * @return whether there is one */
static bool let_warp_go() {
    const unsigned n_warps = n_threads / WARP;
    for (const waits how : {waits::for_warp, waits::for_its_turn})
        for (unsigned n = 0; n < n_warps; n++) {
            const unsigned begin = WARP * (backwards ? n_warps - 1 - n : n);
            const unsigned n_there = count_lanes(begin, how);
            if (n_there != WARP && (how == waits::for_warp || n_there == 0)) continue;
            let_go(begin, begin + WARP);
            return true;
        }
    return false;
}

static void let_block_go() {
    if (!ahead) let_go(0, n_threads);
    for (unsigned i = 0; ahead && i < n_threads; i++) lanes_of_block[i].state = waits::for_its_turn;
}

/* All threads wait or have ended. Lets a warp go whose lanes are all there for an exchange, else
 * the block. */
static void release() {
    for (unsigned begin = 0; begin < n_threads; begin += WARP) {
        unsigned n = 0;
        for (unsigned i = begin; i < begin + WARP && i < n_threads; i++)
            n += lanes_of_block[i].on && lanes_of_block[i].state == waits::for_warp;
        if (n == WARP)
            let_go(begin, begin + WARP);
        else if (n > 0)
            give_up("some lanes of a warp do not come to a shuffle");
    }
    if (!ready.empty()) return;
    for (unsigned i = 0; i < n_threads; i++)
        if (!lanes_of_block[i].on) give_up("some threads of a block do not come to a barrier");
    n_barriers++;
    all_true[n_barriers % 2] = true;
    let_block_go();
}

static void run_block() {
    n_begun = n_ended = n_barriers = 0;
    all_true[0] = true;
    while (n_ended < n_threads) {
        if (!ready.empty()) {
            const unsigned thread = ready.back();
            ready.pop_back();
            change(&scheduler, lanes_of_block[thread].on);
        } else if (ahead && n_begun % WARP == 0 && let_warp_go()) {
            continue;
        } else if (n_begun < n_threads) {
            change(&scheduler, take_fiber());
        } else {
            release();
        }
    }
}

void run_grid(dim3 blocks, dim3 threads, const std::function<void()> &of_thread) {
    scheduler.begun = true;
    backwards = draw() % 2;
    body = &of_thread;
    gridDim = blocks;
    blockDim = threads;
    n_threads = threads.x * threads.y * threads.z;
    ahead = n_threads % WARP == 0 && draw() % 2;
    const unsigned n_blocks = blocks.x * blocks.y;
    for (unsigned i = 0; i < n_blocks; i++) {
        const unsigned block = backwards ? n_blocks - 1 - i : i;
        blockIdx = {block % blocks.x, block / blocks.x, 0};
        run_block();
    }
}

static std::set<std::pair<int, const void *>> loaded; /* kernels of each GPU */

/* @return whether it is, which a capture leaves as it is */
static bool load(const void *kernel, cudaStream_t stream) {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    const std::pair<int, const void *> wanted(current_gpu(), kernel);
    if (captures(stream)) return loaded.count(wanted) > 0;
    loaded.insert(wanted);
    return true;
}

cudaError_t launch(const void *kernel, dim3 blocks, dim3 threads, cudaStream_t stream,
                   std::function<void()> of_thread) {
    const uint64_t n = (uint64_t)threads.x * threads.y * threads.z;
    if (n == 0 || n > MAX_THREADS || threads.z > MAX_THREADS_Z || blocks.x == 0 ||
        blocks.x > INT32_MAX || blocks.y == 0 || blocks.z != 1 || blocks.y > MAX_GRID_Y)
        return failed(cudaErrorInvalidConfiguration);
    if (gpu_on_cores_launch_fails) {
        const cudaError_t error = gpu_on_cores_launch_fails();
        if (error != cudaSuccess) return failed(error);
    }
    if (!load(kernel, stream)) return spoil_capture_of(stream);
    return put(stream, reach::its_gpu,
               [blocks, threads, run = std::move(of_thread)] { run_grid(blocks, threads, run); });
}

} // namespace gpu_on_cores
