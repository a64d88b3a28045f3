/* Captures of streams on GPUs that are made up: what a graph does, and what leaves none. */
#include <thread>

/* Last: it includes cmocka. */
#include "tests/inner/gpu_on_cores/gpu_fixture.h"

/* Two streams in one capture: the other adds one before the first doubles by adding again. */
static void test_graph(void **) {
    int *value = new_ints(1), found;
    cudaEvent_t fork_event, join_event;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    ok(cudaEventCreate(&fork_event));
    ok(cudaEventCreate(&join_event));
    ok(cudaMemsetAsync(value, 0, sizeof *value, stream));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ok(cudaEventRecord(fork_event, stream));
    ok(cudaStreamWaitEvent(other, fork_event, 0));
    ok(run(other, add_one, 1, 1, value));
    ok(cudaEventRecord(join_event, other));
    ok(cudaStreamWaitEvent(stream, join_event, 0));
    ok(run(stream, add_one, 1, 1, value));
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaGraphInstantiate(&exec, graph, 0));
    ok(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++) {
        read_ints(value, &found, 1);
        assert_int_equal(found, 2 * i); /* nothing ran while it was captured */
        ok(cudaGraphLaunch(exec, stream));
    }
    ok(cudaStreamSynchronize(stream));
    ok(cudaGraphExecDestroy(exec));
    ok(cudaEventDestroy(fork_event));
    ok(cudaEventDestroy(join_event));
    ok(cudaFree(value));
}

static void test_unjoined_capture(void **) {
    int *value = new_ints(1);
    cudaEvent_t event;
    cudaGraph_t graph = NULL;
    ok(cudaEventCreate(&event));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ok(cudaEventRecord(event, stream));
    ok(cudaStreamWaitEvent(other, event, 0));
    ok(run(other, add_one, 1, 1, value));
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
    ok(cudaStreamSynchronize(other));
    ok(cudaEventDestroy(event));
    ok(cudaFree(value));
}

static cudaError_t wait_for_stream() {
    return cudaStreamSynchronize(stream);
}

static cudaError_t wait_for_other_stream() {
    return cudaStreamSynchronize(other);
}

static cudaError_t wait_for_event() {
    cudaEvent_t event;
    ok(cudaEventCreate(&event));
    const cudaError_t error = cudaEventSynchronize(event);
    ok(cudaEventDestroy(event));
    return error;
}

static cudaError_t allocate() {
    void *at;
    return cudaMalloc(&at, 1);
}

static cudaError_t allocate_pinned() {
    void *at;
    return cudaHostAlloc(&at, 1, cudaHostAllocDefault);
}

static int *to_free;

static cudaError_t free_memory() {
    return cudaFree(to_free);
}

/* What CUDA forbids while a stream captures leaves no graph. */
static void test_spoilt_capture(void **) {
    cudaError_t (*const calls[])() = {wait_for_stream, wait_for_other_stream, wait_for_event,
                                      allocate,        allocate_pinned,       free_memory};
    int *value = new_ints(1);
    to_free = new_ints(1);
    for (cudaError_t (*const call)() : calls) {
        cudaGraph_t graph = NULL;
        ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        ok(run(stream, add_one, 1, 1, value));
        assert_int_equal(call(), cudaErrorStreamCaptureUnsupported);
        assert_int_equal(run(stream, add_one, 1, 1, value), cudaErrorStreamCaptureInvalidated);
        assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
        assert_null(graph);
    }
    ok(cudaFree(to_free));
    ok(cudaFree(value));
}

/* What other threads do meanwhile: one that has a GPU of its own allocates, computes, waits. */
static void work_on_another_gpu(cudaError_t *error) {
    void *at = NULL;
    cudaStream_t mine;
    cudaGraph_t graph = NULL;
    (void)cudaSetDevice(1);
    (void)cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
    *error = cudaMalloc(&at, sizeof(int));
    if (!*error) *error = cudaStreamBeginCapture(mine, cudaStreamCaptureModeThreadLocal);
    if (!*error) *error = cudaMemsetAsync(at, 0, sizeof(int), mine);
    if (!*error) *error = cudaStreamEndCapture(mine, &graph);
    if (!*error) *error = cudaGraphDestroy(graph);
    if (!*error) *error = cudaStreamSynchronize(mine);
    if (!*error) *error = cudaFree(at);
    (void)cudaStreamDestroy(mine);
}

static void wait_for_the_capture(cudaError_t *error) {
    *error = cudaStreamSynchronize(stream);
}

/* Captures while another thread does something. @return what became of the capture */
static cudaError_t capture_beside(void (*fn)(cudaError_t *), enum cudaStreamCaptureMode mode,
                                  cudaError_t *of_thread) {
    cudaGraph_t graph = NULL;
    int *value = new_ints(1);
    ok(cudaStreamBeginCapture(stream, mode));
    ok(run(stream, add_one, 1, 1, value));
    std::thread(fn, of_thread).join();
    const cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (!error) ok(cudaGraphDestroy(graph));
    ok(cudaFree(value));
    return error;
}

/* The mode says of which threads a capture forbids what. */
static void test_captures_of_threads(void **) {
    cudaError_t of_thread;
    cudaGraph_t graph = NULL;
    void *at = NULL;
    ok(capture_beside(work_on_another_gpu, cudaStreamCaptureModeThreadLocal, &of_thread));
    ok(of_thread);
    ok(capture_beside(work_on_another_gpu, cudaStreamCaptureModeRelaxed, &of_thread));
    ok(of_thread);
    assert_int_equal(capture_beside(work_on_another_gpu, cudaStreamCaptureModeGlobal, &of_thread),
                     cudaErrorStreamCaptureInvalidated);
    assert_int_equal(of_thread, cudaErrorStreamCaptureUnsupported);
    assert_int_equal(capture_beside(wait_for_the_capture, cudaStreamCaptureModeRelaxed, &of_thread),
                     cudaErrorStreamCaptureInvalidated);
    assert_int_equal(of_thread, cudaErrorStreamCaptureUnsupported);
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ok(cudaMalloc(&at, 1));
    ok(cudaFree(at));
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaGraphDestroy(graph));
}

/* An event of a capture is of no use behind it. */
static void test_event_of_an_ended_capture(void **) {
    int *value = new_ints(1);
    cudaEvent_t event;
    cudaGraph_t graph = NULL;
    ok(cudaEventCreate(&event));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ok(run(stream, add_one, 1, 1, value));
    ok(cudaEventRecord(event, stream));
    ok(cudaStreamEndCapture(stream, &graph));
    assert_int_equal(cudaStreamWaitEvent(other, event, 0), cudaErrorCapturedEvent);
    ok(cudaGraphDestroy(graph));
    ok(cudaEventDestroy(event));
    ok(cudaFree(value));
}

static __global__ void add_two(int *value) {
    *value += 2;
}

/* The first launch of a kernel is none of a capture's; and it is the first on each GPU. */
static void test_kernel_that_is_not_loaded(void **) {
    int *value = new_ints(1);
    cudaGraph_t graph = NULL;
    for (int gpu = 0; gpu < 2; gpu++) {
        cudaStream_t mine;
        ok(cudaSetDevice(gpu));
        ok(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
        ok(cudaStreamBeginCapture(mine, cudaStreamCaptureModeThreadLocal));
        assert_int_equal(run(mine, add_two, 1, 1, value), cudaErrorStreamCaptureUnsupported);
        assert_int_equal(cudaStreamEndCapture(mine, &graph), cudaErrorStreamCaptureInvalidated);
        int *own = new_ints(1);
        ok(run(mine, add_two, 1, 1, own));
        ok(cudaStreamBeginCapture(mine, cudaStreamCaptureModeThreadLocal));
        ok(run(mine, add_two, 1, 1, value));
        ok(cudaStreamEndCapture(mine, &graph));
        ok(cudaGraphDestroy(graph));
        ok(cudaStreamDestroy(mine));
        ok(cudaFree(own));
    }
    ok(cudaSetDevice(0));
    ok(cudaFree(value));
}

/* Captures may then have them. */
static int load_kernels(void **) {
    int *value = new_ints(1);
    ok(run(stream, add_one, 1, 1, value));
    ok(cudaFree(value));
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_graph, load_kernels),
        cmocka_unit_test_setup(test_unjoined_capture, load_kernels),
        cmocka_unit_test_setup(test_spoilt_capture, load_kernels),
        cmocka_unit_test_setup(test_captures_of_threads, load_kernels),
        cmocka_unit_test_setup(test_event_of_an_ended_capture, load_kernels),
        cmocka_unit_test(test_kernel_that_is_not_loaded),
    };
    return run_on_two_gpus(tests);
}
