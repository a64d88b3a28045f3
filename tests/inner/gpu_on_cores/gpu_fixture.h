/** @file tests/inner/gpu_on_cores/gpu_fixture.h
 * What tests of the GPU made of cores have in common: two streams, calls that are to go well, a
 * kernel. Each test program has its own of it.
 *
 * Threads: the test's own. Include it last, as cmocka, which it includes. */
#ifndef TESTS_INNER_GPU_ON_CORES_GPU_FIXTURE_H
#define TESTS_INNER_GPU_ON_CORES_GPU_FIXTURE_H

#include <cuda_runtime.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
extern "C" {
#include <cmocka.h>
}

static cudaStream_t stream, other;

static void ok(cudaError_t error) {
    if (error != cudaSuccess) fail_msg("%s", cudaGetErrorName(error));
}

static int *new_ints(size_t n) {
    void *at = NULL;
    ok(cudaMalloc(&at, n * sizeof(int)));
    return (int *)at;
}

static void read_ints(const int *from, int *to, size_t n) {
    ok(cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyDefault, stream));
    ok(cudaStreamSynchronize(stream));
}

template <typename... P, typename... A>
static cudaError_t run(cudaStream_t on, void (*kernel)(P...), dim3 blocks, dim3 threads,
                       A... args) {
    const cudaLaunchConfig_t config = {blocks, threads, 0, on};
    return cudaLaunchKernelEx(&config, kernel, args...);
}

static __global__ void add_one(int *value) {
    ++*value;
}

/* Runs @p tests where two GPUs are, with the two streams. */
template <size_t N_TESTS> static int run_on_two_gpus(const CMUnitTest (&tests)[N_TESTS]) {
    setenv("BPT_GPUS_ON_CORES", "2", 1);
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ok(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ok(cudaStreamDestroy(stream));
    ok(cudaStreamDestroy(other));
    return failed;
}

#endif
