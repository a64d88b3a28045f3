/** @file tests/inner/gpu_on_cores/grid.h
 * Runs the threads of a kernel's grid, block after block. A thread runs until it waits for others;
 * then the next one does. Half of all grids, as drawn, are run from the last block and thread to
 * the first, and in half of them, drawn anew, each warp runs as far as it can before another goes
 * on, so that what depends on an order that CUDA does not promise differs from launch to launch.
 *
 * A barrier that some threads of a block never come to, and a shuffle that some lanes of a warp do
 * not take part in, end the process: on a GPU they would hang, or be undefined.
 *
 * Threads: one at a time (stream.h sees to that). */
#ifndef TESTS_INNER_GPU_ON_CORES_GRID_H
#define TESTS_INNER_GPU_ON_CORES_GRID_H

#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {
    }
};

/* Of the thread that runs. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace gpu_on_cores {

enum { WARP = 32, MAX_THREADS = 1024, MAX_THREADS_Z = 64, MAX_GRID_Y = 65535 };

/** Runs a kernel's body for each thread of a grid. */
void run_grid(dim3 blocks, dim3 threads, const std::function<void()> &body);

/** Puts a grid on a stream. @param kernel its function, which tells it from others
 * @return cudaErrorInvalidConfiguration of one that no GPU runs, what gpu_on_cores_launch_fails()
 * says, or cudaErrorStreamCaptureUnsupported, where a capture would be the kernel's first launch on
 * this GPU, which loads it */
cudaError_t launch(const void *kernel, dim3 blocks, dim3 threads, cudaStream_t stream,
                   std::function<void()> body);

/* ---- called by the thread that runs ---- */

/** Waits for all threads of the block. @return whether @p x was true of all */
int wait_for_block(bool x = true);

/** Gives @p word to the lane whose number differs by the bits of @p other, and takes its word.
 * @param lanes that take part: all 32 have to */
uint64_t exchange(unsigned lanes, uint64_t word, int other);

} // namespace gpu_on_cores

/** For a test to define: what the next launch fails with, cudaSuccess if it does not. */
extern "C" __attribute__((weak)) cudaError_t gpu_on_cores_launch_fails(void);

#endif
