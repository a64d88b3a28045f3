/** @file tests/inner/gpu_on_cores/device_memory.h
 * The memory of the GPUs that are made up. Only what runs on streams may touch it: for everybody
 * else it is not there, so that a program that does ends with a fault. Nor is that of one GPU there
 * for what another one runs.
 *
 * Threads: one that holds the lock (stream.h). */
#ifndef TESTS_INNER_GPU_ON_CORES_DEVICE_MEMORY_H
#define TESTS_INNER_GPU_ON_CORES_DEVICE_MEMORY_H

#include <cstddef>

namespace gpu_on_cores {

enum : size_t { MEMORY_BYTES = (size_t)1 << 30 }; /* of each */
enum { ALL_GPUS = -1 };

/** While there is one of these, memory can be touched of the GPU that it was last turned to. */
class open_memory {
  public:
    open_memory();
    ~open_memory();
    /** @param gpu or ALL_GPUS */
    static void turn_to(int gpu);
    open_memory(const open_memory &) = delete;
    open_memory &operator=(const open_memory &) = delete;
};

} // namespace gpu_on_cores

/** @return pieces of the host's memory that are pinned */
extern "C" size_t gpu_on_cores_pinned(void);

#endif
