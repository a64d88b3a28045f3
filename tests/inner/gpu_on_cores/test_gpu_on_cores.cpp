/* GPUs that are made up behave as a GPU does, and what they are there to find is found. */
#include "tests/inner/gpu_on_cores/stream.h"

#include <sys/wait.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Last: it includes cmocka. */
#include "tests/inner/gpu_on_cores/gpu_fixture.h"

enum { THREADS = 128, BLOCKS = 3, N = THREADS * BLOCKS };

/* ---- what is drawn ---- */

/* @return the first number that a process draws. @param order NULL: none is given */
static uint64_t first_drawn(const char *order) {
    int ends[2], status;
    uint64_t drawn = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        unsetenv("BPT_ORDER_ON_CORES");
        if (order) setenv("BPT_ORDER_ON_CORES", order, 1);
        drawn = gpu_on_cores::draw();
        _exit(write(ends[1], &drawn, sizeof drawn) != sizeof drawn);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &drawn, sizeof drawn), sizeof drawn);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return drawn;
}

/* Before all others: in a process that has drawn, the order is chosen. */
static void test_orders(void **) {
    const uint64_t drawn = first_drawn(NULL), of_one = first_drawn("1");
    assert_true(first_drawn("0") == drawn && first_drawn("1") == of_one);
    assert_true(of_one != drawn && first_drawn("2") != drawn && first_drawn("2") != of_one);
}

/* ---- grids ---- */

/* Each number of its block, in the reverse order; by shared memory. */
static __global__ void reverse(int *values) {
    __shared__ int of_block[THREADS];
    of_block[threadIdx.x] = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    __syncthreads();
    values[blockIdx.x * blockDim.x + threadIdx.x] = of_block[blockDim.x - 1 - threadIdx.x];
}

static void test_barrier(void **) {
    int *values = new_ints(N), found[N];
    for (int round = 0; round < 4; round++) { /* forward and backward */
        ok(run(stream, reverse, BLOCKS, THREADS, values));
        read_ints(values, found, N);
        for (int i = 0; i < N; i++)
            assert_int_equal(found[i], i / THREADS * THREADS + THREADS - 1 - i % THREADS);
    }
    ok(cudaFree(values));
}

static __global__ void sum_warps(int *sums) {
    int x = (int)threadIdx.x + 1;
    for (int bits = 16; bits > 0; bits /= 2) x += __shfl_xor_sync(0xFFFFFFFF, x, bits);
    sums[threadIdx.x] = x;
}

static void test_shuffles(void **) {
    int *sums = new_ints(THREADS), found[THREADS];
    ok(run(stream, sum_warps, 1, THREADS, sums));
    read_ints(sums, found, THREADS);
    for (int i = 0; i < THREADS; i++) assert_int_equal(found[i], i / 32 * 1024 + 528);
    ok(cudaFree(sums));
}

static __global__ void all_below(int bound, int *answers) {
    const int below = __syncthreads_and((int)threadIdx.x < bound);
    answers[threadIdx.x] = below * 10 + __syncthreads_and((int)threadIdx.x < bound - 1);
}

static void test_barrier_and(void **) {
    int *answers = new_ints(THREADS), found[THREADS];
    const int expected[3] = {0, 10, 11};
    for (int i = 0; i < 3; i++) {
        ok(run(stream, all_below, 1, THREADS, THREADS - 1 + i, answers));
        read_ints(answers, found, THREADS);
        for (int t = 0; t < THREADS; t++) assert_int_equal(found[t], expected[i]);
    }
    ok(cudaFree(answers));
}

static __global__ void write_places(int *values) {
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    values[block * blockDim.x * blockDim.y + thread] = (int)(1000 * block + thread);
}

static void test_two_dimensions(void **) {
    int *values = new_ints(6 * 24), found[6 * 24];
    ok(run(stream, write_places, dim3(2, 3), dim3(8, 3), values));
    read_ints(values, found, 6 * 24);
    for (int i = 0; i < 6 * 24; i++) assert_int_equal(found[i], 1000 * (i / 24) + i % 24);
    ok(cudaFree(values));
}

static void test_refused_grids(void **) {
    int *none = NULL;
    assert_int_equal(run(stream, reverse, 0, THREADS, none), cudaErrorInvalidConfiguration);
    assert_int_equal(run(stream, reverse, 1, 1025, none), cudaErrorInvalidConfiguration);
    assert_int_equal(run(stream, reverse, dim3(1, 65536), 1, none), cudaErrorInvalidConfiguration);
    assert_int_equal(run(stream, reverse, 1u << 31, 1, none), cudaErrorInvalidConfiguration);
    assert_int_equal(run(stream, reverse, 1, dim3(1, 1, 65), none), cudaErrorInvalidConfiguration);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

/* The last thread takes what the first has written, or the first what the last has, without a
 * barrier. */
static __global__ void race(int *value, int *taken, int writer) {
    if ((int)threadIdx.x == writer) *value = 1;
    if (threadIdx.x == blockDim.x - 1 - (unsigned)writer) *taken = *value;
}

enum { MANY_ROUNDS = 64 }; /* in which each of two orders is drawn */

/* @return how many of two outcomes were found: 1 or 2 */
static int outcomes_of(void (*kernel)(int *, int *, int), int writer) {
    int *values = new_ints(2), found[2] = {0}, seen[2] = {0};
    for (int round = 0; round < MANY_ROUNDS; round++) {
        ok(cudaMemsetAsync(values, 0, 2 * sizeof *values, stream));
        ok(run(stream, kernel, 1, THREADS, values, values + 1, writer));
        read_ints(values, found, 2);
        seen[found[1]] = 1;
    }
    ok(cudaFree(values));
    return seen[0] + seen[1];
}

static void test_races_are_seen(void **) {
    assert_int_equal(outcomes_of(race, 0), 2);
    assert_int_equal(outcomes_of(race, THREADS - 1), 2);
}

static __global__ void race_behind_barrier(int *value, int *taken, int writer) {
    __syncthreads();
    race(value, taken, writer);
}

static void test_races_behind_barriers_are_seen(void **) {
    assert_int_equal(outcomes_of(race_behind_barrier, 0), 2);
    assert_int_equal(outcomes_of(race_behind_barrier, THREADS - 1), 2);
}

/* What a warp writes behind a shuffle may be there before another warp comes to it. */
static __global__ void race_behind_shuffle(int *value, int *taken, int writer) {
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1 - (unsigned)writer) *taken = *value;
    (void)__shfl_xor_sync(0xFFFFFFFF, 0, 1);
    if ((int)threadIdx.x == writer) *value = 1;
}

static void test_races_of_warps_are_seen(void **) {
    assert_int_equal(outcomes_of(race_behind_shuffle, 0), 2);
    assert_int_equal(outcomes_of(race_behind_shuffle, THREADS - 1), 2);
}

/* ---- what ends the process ---- */

static __global__ void skip_barrier(int) {
    if (threadIdx.x > 0) __syncthreads();
}

static __global__ void skip_shuffle(int) {
    if (threadIdx.x > 0) (void)__shfl_xor_sync(0xFFFFFFFF, 1, 1);
}

static void start_barrier() {
    (void)run(stream, skip_barrier, 1, THREADS, 0);
}

static void start_shuffle() {
    (void)run(stream, skip_shuffle, 1, THREADS, 0);
}

static int *of_gpu; /* a page */

static size_t page_ints() {
    return (size_t)sysconf(_SC_PAGESIZE) / sizeof(int);
}

static void touch_memory() {
    *(volatile int *)of_gpu = 1;
}

static __global__ void write_behind(int *values, size_t n) {
    values[n] = 1;
}

static void overrun() {
    (void)run(stream, write_behind, 1, 1, of_gpu, page_ints());
}

/* Calls @p fn in a process of its own, and waits for the stream there. */
static void assert_ends(void (*fn)()) {
    int status;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* not for a sanitizer's report */
        signal(SIGABRT, SIG_DFL);
        (void)!freopen("/dev/null", "w", stderr);
        fn();
        (void)cudaStreamSynchronize(stream);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void touch_memory_of_another_gpu() {
    ok(cudaSetDevice(0));
    (void)run(stream, write_behind, 1, 1, of_gpu, (size_t)0);
}

static void test_faults(void **) {
    ok(cudaSetDevice(1));
    of_gpu = new_ints(page_ints());
    assert_ends(touch_memory_of_another_gpu);
    ok(cudaFree(of_gpu));
    ok(cudaSetDevice(0));
    of_gpu = new_ints(page_ints());
    assert_ends(start_barrier);
    assert_ends(start_shuffle);
    assert_ends(touch_memory);
    assert_ends(overrun);
    ok(cudaFree(of_gpu));
}

/* ---- memory ---- */

static void test_memory(void **) {
    size_t before, after, all;
    unsigned char bytes[300];
    void *at = NULL, *none = NULL;
    ok(cudaMemGetInfo(&before, &all));
    ok(cudaMalloc(&at, sizeof bytes));
    assert_int_equal((uintptr_t)at % 256, 0);
    ok(cudaMemGetInfo(&after, &all));
    assert_true(after < before);
    ok(cudaMemcpyAsync(bytes, at, sizeof bytes, cudaMemcpyDefault, stream));
    ok(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xFF);
    assert_int_equal(cudaMemcpyAsync(at, bytes, sizeof bytes + 1, cudaMemcpyDefault, stream),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaFree((char *)at + 16), cudaErrorInvalidValue);
    assert_int_equal(cudaMemsetAsync(bytes, 0, 1, stream), cudaErrorInvalidValue);
    ok(cudaFree(at));
    assert_int_equal(cudaMemsetAsync(at, 0, 1, stream), cudaErrorInvalidValue);
    ok(cudaMemGetInfo(&after, &all));
    assert_int_equal(after, before);
    assert_int_equal(cudaMalloc(&none, all + 1), cudaErrorMemoryAllocation);
    assert_int_equal(cudaFreeHost(bytes), cudaErrorInvalidValue);
}

/* Memory that is pinned as a whole, and what is refused of other memory: by CUDA copies over its
 * edge, here alone captured ones, of which CUDA's manual does not say it. */
static void test_pinned_memory(void **) {
    enum { BYTES = 64 };
    char bytes[3 * BYTES];
    void *at = NULL, *own = NULL;
    cudaGraph_t graph = NULL;
    ok(cudaMalloc(&at, sizeof bytes));
    ok(cudaHostAlloc(&own, BYTES, cudaHostAllocDefault));
    ok(cudaHostRegister(bytes + BYTES, BYTES, cudaHostRegisterDefault));
    for (int i = 1; i < 2 * BYTES; i++)
        assert_int_equal(cudaHostRegister(bytes + i, BYTES, cudaHostRegisterDefault),
                         cudaErrorHostMemoryAlreadyRegistered);
    assert_int_equal(cudaHostRegister(own, 1, cudaHostRegisterDefault),
                     cudaErrorHostMemoryAlreadyRegistered);
    assert_int_equal(cudaMemcpyAsync(at, bytes, BYTES + 1, cudaMemcpyDefault, stream),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpyAsync(bytes + 2 * BYTES - 1, at, 2, cudaMemcpyDefault, stream),
                     cudaErrorInvalidValue);
    ok(cudaMemcpyAsync(bytes, at, BYTES, cudaMemcpyDefault, stream));
    ok(cudaMemcpyAsync(bytes + BYTES, at, BYTES, cudaMemcpyDefault, stream));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ok(cudaMemcpyAsync(bytes + BYTES, at, BYTES, cudaMemcpyDefault, stream));
    ok(cudaMemcpyAsync(at, own, BYTES, cudaMemcpyDefault, stream));
    assert_int_equal(cudaMemcpyAsync(bytes, at, BYTES, cudaMemcpyDefault, stream),
                     cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaHostUnregister(bytes + BYTES), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    ok(cudaHostRegister(bytes, BYTES, cudaHostRegisterDefault)); /* beside the other */
    ok(cudaMemcpyAsync(bytes + 1, at, 2 * BYTES - 1, cudaMemcpyDefault, stream));
    assert_int_equal(cudaMemcpyAsync(bytes + 1, at, 2 * BYTES, cudaMemcpyDefault, stream),
                     cudaErrorInvalidValue);
    ok(cudaHostUnregister(bytes));
    assert_int_equal(cudaHostUnregister(own), cudaErrorInvalidValue);
    assert_int_equal(cudaFreeHost(bytes + BYTES), cudaErrorInvalidValue);
    ok(cudaHostUnregister(bytes + BYTES));
    ok(cudaFreeHost(own));
    ok(cudaFree(at));
}

/* ---- streams ---- */

/* Of two streams that do not wait for each other, each comes first now and then. */
static void test_streams_wait_for_events_alone(void **) {
    int *value = new_ints(2), seen[2] = {0}, found[2];
    cudaEvent_t event;
    ok(cudaEventCreate(&event));
    for (int i = 0; i < 64; i++) {
        const bool waits = i % 2 == 0;
        ok(cudaMemsetAsync(value, 0, 2 * sizeof *value, other));
        ok(cudaStreamSynchronize(other));
        ok(run(other, add_one, 1, 1, value));
        ok(cudaEventRecord(event, other));
        if (waits) ok(cudaStreamWaitEvent(stream, event, 0));
        ok(cudaMemcpyAsync(value + 1, value, sizeof *value, cudaMemcpyDefault, stream));
        read_ints(value, found, 2);
        if (waits)
            assert_int_equal(found[1], 1);
        else
            seen[found[1]]++;
        ok(cudaStreamSynchronize(other));
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
    ok(cudaEventDestroy(event));
    ok(cudaFree(value));
}

static void test_times(void **) {
    cudaEvent_t events[2], timeless;
    float ms = -1.0f;
    int *value = new_ints(1);
    for (int i = 0; i < 2; i++) ok(cudaEventCreate(&events[i]));
    ok(cudaEventCreateWithFlags(&timeless, cudaEventDisableTiming));
    assert_int_equal(cudaEventElapsedTime(&ms, events[0], events[1]),
                     cudaErrorInvalidResourceHandle);
    ok(cudaEventRecord(events[0], stream));
    ok(run(stream, add_one, 1, 1, value));
    ok(cudaEventRecord(events[1], stream));
    ok(cudaEventSynchronize(events[1]));
    ok(cudaEventElapsedTime(&ms, events[0], events[1]));
    assert_true(ms >= 0.0f);
    ok(cudaEventRecord(timeless, stream));
    ok(cudaEventSynchronize(timeless));
    assert_int_equal(cudaEventElapsedTime(&ms, events[0], timeless),
                     cudaErrorInvalidResourceHandle);
    ok(cudaEventDestroy(timeless));
    for (int i = 0; i < 2; i++) ok(cudaEventDestroy(events[i]));
    ok(cudaFree(value));
}

/* Streams and events are of the GPU that was the thread's when they were made. What another one
 * computes is waited for by its events, and fetched by copies. */
static void test_another_gpu(void **) {
    int *here = new_ints(1), *there, found = 0;
    cudaStream_t of_there;
    cudaEvent_t event, of_here;
    ok(cudaEventCreate(&of_here));
    ok(cudaSetDevice(1));
    ok(cudaStreamCreateWithFlags(&of_there, cudaStreamNonBlocking));
    ok(cudaEventCreate(&event));
    there = new_ints(1);
    assert_int_equal(run(stream, add_one, 1, 1, here), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaMemsetAsync(here, 0, sizeof *here, stream),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(of_here, of_there), cudaErrorInvalidResourceHandle);
    ok(cudaMemsetAsync(there, 0, sizeof *there, of_there));
    ok(run(of_there, add_one, 1, 1, there));
    ok(cudaEventRecord(event, of_there));
    ok(cudaStreamWaitEvent(stream, event, 0));
    ok(cudaMemcpyAsync(here, there, sizeof *here, cudaMemcpyDefault, stream));
    ok(cudaSetDevice(0));
    ok(run(stream, add_one, 1, 1, here));
    read_ints(here, &found, 1);
    assert_int_equal(found, 2);
    ok(cudaFree(there));
    ok(cudaFree(here));
    ok(cudaStreamDestroy(of_there));
    ok(cudaEventDestroy(event));
    ok(cudaEventDestroy(of_here));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_barrier_and),
        cmocka_unit_test(test_two_dimensions),
        cmocka_unit_test(test_refused_grids),
        cmocka_unit_test(test_races_are_seen),
        cmocka_unit_test(test_races_behind_barriers_are_seen),
        cmocka_unit_test(test_races_of_warps_are_seen),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_pinned_memory),
        cmocka_unit_test(test_streams_wait_for_events_alone),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_another_gpu),
    };
    return run_on_two_gpus(tests);
}
