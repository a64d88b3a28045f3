#include "tests/inner/gpu_on_cores/host_work.h"

#include "tests/inner/gpu_on_cores/stream.h"

#include <vector>

cudaError_t gpu_on_cores_put(cudaStream_t stream, void (*fn)(const void *arg), const void *arg,
                             size_t bytes) {
    const char *from = (const char *)arg;
    return gpu_on_cores::put(
        stream, gpu_on_cores::reach::its_gpu,
        [fn, copy = std::vector<char>(from, from + bytes)] { fn(copy.data()); });
}
