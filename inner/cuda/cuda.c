#include "inner/cuda/cuda.h"

#include "base/log.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>

static bpt_status fail(bpt_status status, cudaError_t error, const char *call, const char *file,
                       int line) {
    cudaGetLastError(); /* an error that is told is over, unless the context is lost */
    return bpt_fail(status, "CUDA: %s (%s) in %s, %s:%d", cudaGetErrorString(error),
                    cudaGetErrorName(error), call, file, line);
}

bpt_status bpt_cuda_failed(int code, const char *call, const char *file, int line) {
    const bool full = code == cudaErrorMemoryAllocation;
    const bpt_status status =
        fail(full ? BPT_EFULL : BPT_EBACKEND, (cudaError_t)code, call, file, line);
    if (full) bpt_cuda_hint_full(0);
    return status;
}

void bpt_cuda_hint_full(uint64_t n_fit) {
    char room[80] = "";
    if (n_fit > 0)
        snprintf(room, sizeof room, " (about %" PRIu64 " sample%s a step would fit)", n_fit,
                 n_fit == 1 ? "" : "s");
    bpt_hint("a smaller --batch-size%s, or --device cpu; is the GPU in use by another program?",
             room);
}

/* It takes a driver of its own major version, whichever minor one. */
static bpt_status fail_driver(int version) {
    const bpt_status status =
        bpt_fail(BPT_EBACKEND, "the NVIDIA driver is for CUDA %d.%d, this bpt needs %d.0",
                 version / 1000, version % 1000 / 10, CUDART_VERSION / 1000);
    bpt_hint(
        "a newer driver, or bpt built with CUDA's toolkit for this one; --device cpu needs none");
    return status;
}

/* CUDA has one error for a driver that is too old and for none. */
static bpt_status check_driver(void) {
    int version = 0;
    const bool there = cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
    cudaGetLastError();
    return there ? fail_driver(version) : BPT_OK;
}

bpt_status bpt_cuda_count(int *n) {
    const cudaError_t error = cudaGetDeviceCount(n);
    if (error == cudaSuccess) return BPT_OK;
    *n = 0;
    cudaGetLastError();
    if (error == cudaErrorInsufficientDriver) return check_driver();
    if (error == cudaErrorNoDevice || error == cudaErrorStubLibrary) return BPT_OK;
    return bpt_cuda_failed(error, "cudaGetDeviceCount()", __FILE__, __LINE__);
}

bpt_status bpt_cuda_use(int index) {
    BPT_CUDA_TRY(cudaSetDevice(index));
    return BPT_OK;
}

bpt_status bpt_cuda_free_bytes(size_t *bytes) {
    size_t all;
    BPT_CUDA_TRY(cudaMemGetInfo(bytes, &all));
    return BPT_OK;
}

bpt_status bpt_cuda_allocate(size_t bytes, void **at) {
    BPT_CUDA_TRY(cudaMalloc(at, bytes ? bytes : 1));
    return BPT_OK;
}

void bpt_cuda_free(void *at) {
    cudaFree(at);
}

bpt_status bpt_cuda_upload(const void *host, size_t bytes, void **at) {
    BPT_TRY(bpt_cuda_allocate(bytes, at));
    BPT_TRY(bpt_cuda_copy(NULL, *at, host, bytes));
    return bpt_cuda_wait(NULL);
}

bpt_status bpt_cuda_host_allocate(size_t bytes, void **at) {
    const cudaError_t error = cudaHostAlloc(at, bytes ? bytes : 1, cudaHostAllocDefault);
    if (error == cudaSuccess) return BPT_OK;
    return fail(error == cudaErrorMemoryAllocation ? BPT_ENOMEM : BPT_EBACKEND, error,
                "cudaHostAlloc()", __FILE__, __LINE__);
}

void bpt_cuda_host_free(void *at) {
    if (at) cudaFreeHost(at);
}

bool bpt_cuda_pin(void *at, size_t bytes) {
    const cudaError_t error = cudaHostRegister(at, bytes, cudaHostRegisterDefault);
    if (error == cudaSuccess) return true;
    (void)cudaGetLastError();
    bpt_debug("%.1f MB could not be pinned (%s): copies of them take longer", (double)bytes * 1e-6,
              cudaGetErrorName(error));
    return false;
}

void bpt_cuda_unpin(void *at) {
    cudaHostUnregister(at);
}

bpt_status bpt_cuda_stream_create(bpt_cuda_stream *stream) {
    BPT_CUDA_TRY(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    return BPT_OK;
}

bpt_status bpt_cuda_stream_create_first(bpt_cuda_stream *stream) {
    int last, first;
    BPT_CUDA_TRY(cudaDeviceGetStreamPriorityRange(&last, &first));
    BPT_CUDA_TRY(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, first));
    return BPT_OK;
}

void bpt_cuda_stream_free(bpt_cuda_stream stream) {
    if (stream) cudaStreamDestroy(stream);
}

bpt_status bpt_cuda_wait(bpt_cuda_stream stream) {
    BPT_CUDA_TRY(cudaStreamSynchronize(stream));
    return BPT_OK;
}

void bpt_cuda_drain(bpt_cuda_stream stream) {
    if (stream && cudaStreamSynchronize(stream) != cudaSuccess) (void)cudaGetLastError();
}

bpt_status bpt_cuda_copy(bpt_cuda_stream stream, void *to, const void *from, size_t bytes) {
    BPT_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    return BPT_OK;
}

bpt_status bpt_cuda_set(bpt_cuda_stream stream, void *to, int value, size_t bytes) {
    BPT_CUDA_TRY(cudaMemsetAsync(to, value, bytes, stream));
    return BPT_OK;
}
