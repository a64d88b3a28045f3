/** @file tests/inner/gpu_on_cores/host_work.h
 * Work of the host in the place of a kernel.
 *
 * Threads: any. */
#ifndef TESTS_INNER_GPU_ON_CORES_HOST_WORK_H
#define TESTS_INNER_GPU_ON_CORES_HOST_WORK_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Puts a call of @p fn on a stream. It may touch the GPU's memory.
 * @param arg what it is called with: @p bytes, copied now
 * @return CUDA's error */
cudaError_t gpu_on_cores_put(cudaStream_t stream, void (*fn)(const void *arg), const void *arg,
                             size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
