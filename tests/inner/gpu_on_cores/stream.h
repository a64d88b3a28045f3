/** @file tests/inner/gpu_on_cores/stream.h
 * Streams, events and graphs. What is put on a stream is done when somebody waits for it, or
 * sooner: a number drawn each time decides. So what lacks a wait for an event finds other work not
 * yet done, or done too early.
 *
 * Threads: any; one lock is held while something is put on a stream or done. */
#ifndef TESTS_INNER_GPU_ON_CORES_STREAM_H
#define TESTS_INNER_GPU_ON_CORES_STREAM_H

#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>
#include <mutex>

namespace gpu_on_cores {

/** Held by every function that touches what threads share. */
extern std::recursive_mutex lock;

/** Keeps an error for cudaGetLastError(). @return it */
cudaError_t failed(cudaError_t error);

/** @return the next of a series of numbers (Marsaglia's xorshift), the same in each process of the
 * same BPT_ORDER_ON_CORES */
uint64_t draw();

/** @return whether a capture forbids the calling thread what is unsafe meanwhile: one that began in
 * this thread, but in relaxed mode, or in any thread in global mode */
bool is_unsafe();

/** A call that captures forbid the calling thread: they become invalid.
 * @return cudaErrorStreamCaptureUnsupported, kept */
cudaError_t spoil_captures();

/** What no capture can take, or a wait for a stream that captures: its capture becomes invalid.
 * @return as spoil_captures() */
cudaError_t spoil_capture_of(cudaStream_t stream);

/** @return the calling thread's GPU */
int current_gpu();

/** What memory of GPUs work can reach. */
enum class reach {
    its_gpu,  /* the stream's, which has to be the calling thread's */
    all_gpus, /* as copies do */
};

/** Puts work on a stream, or into the graph that it captures; NULL is a stream too, one for each
 * GPU. @return cudaErrorInvalidResourceHandle: the stream is of another GPU */
cudaError_t put(cudaStream_t stream, reach how_far, std::function<void()> work);

/** @return whether this stream captures */
bool captures(cudaStream_t stream);

/** Does what is left on all streams. @return as spoil_captures() where is_unsafe() */
cudaError_t finish_all();

} // namespace gpu_on_cores

/** @return streams that there are */
extern "C" size_t gpu_on_cores_streams(void);

/** Whether nothing is done sooner than it is waited for. Before this call: some is. */
extern "C" void gpu_on_cores_only_when_waited_for(bool only);

/** @return work on streams that is not done yet, but of those that go first */
extern "C" size_t gpu_on_cores_undone(void);

#endif
