/** @file inner/cuda/cuda.h
 * What every part of inner/cuda/ uses: errors, memory of the GPU, streams.
 *
 * No CUDA header is included here, so that tests may include this one: a stream is CUDA's own
 * handle (cudaStream_t) under the name that its headers give the struct behind it.
 *
 * Threads: any; of a device, the one that owns it. */
#ifndef BPT_INNER_CUDA_CUDA_H
#define BPT_INNER_CUDA_CUDA_H

#include "base/status.h"
#include "inner/loops/value_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Work in order. What is put on it may be captured into a CUDA graph. */
typedef struct CUstream_st *bpt_cuda_stream;

/** Translates an error of CUDA's runtime.
 * @param code of cudaError_t, not cudaSuccess; @param call what failed, as it is in the source
 * @return said with call, file and line: BPT_EFULL, where the GPU's memory is full (with a hint),
 * or BPT_EBACKEND. BPT_ENOMEM is the host's memory, here and in all of inner/cuda/ */
bpt_status bpt_cuda_failed(int code, const char *call, const char *file, int line);

/** The hint where the GPU's memory is full.
 * @param n_fit samples a step for which it has room; 0: not known */
void bpt_cuda_hint_full(uint64_t n_fit);

/** Returns the translated error of a call of CUDA's runtime, if it is one. */
#define BPT_CUDA_TRY(call)                                                                         \
    do {                                                                                           \
        const int bpt_cuda_code = (int)(call);                                                     \
        if (bpt_cuda_code != 0) return bpt_cuda_failed(bpt_cuda_code, #call, __FILE__, __LINE__);  \
    } while (0)

/** Counts the GPUs that can be used.
 * @param[out] n 0 also where no driver is; @return BPT_OK, BPT_EBACKEND (the driver fails, or is
 * too old: with hint) */
bpt_status bpt_cuda_count(int *n);

/** Makes a GPU the calling thread's. @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_cuda_use(int index);

/** @param[out] has whether this program's kernels run on the calling thread's GPU
 * @return BPT_OK, BPT_EFULL, BPT_EBACKEND */
bpt_status bpt_cuda_has_code(bool *has);

/** @param[out] bytes of the GPU's memory that nobody has; @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_cuda_free_bytes(size_t *bytes);

/** @param[out] at memory of the GPU, aligned to 256 bytes; bpt_cuda_free()
 * @return BPT_OK, BPT_EFULL, BPT_EBACKEND */
bpt_status bpt_cuda_allocate(size_t bytes, void **at);
void bpt_cuda_free(void *at);

/** The same, filled from the host's memory. Waits. */
bpt_status bpt_cuda_upload(const void *host, size_t bytes, void **at);

/** Memory of the host that the GPU reads and writes by itself; bpt_cuda_host_free().
 * @return BPT_OK, BPT_ENOMEM (so much cannot be pinned), BPT_EBACKEND */
bpt_status bpt_cuda_host_allocate(size_t bytes, void **at);
void bpt_cuda_host_free(void *at);

/** Makes the caller's memory such; bpt_cuda_unpin(), before it is freed.
 * @return whether the system pins that much; if not, a word to whoever debugs */
bool bpt_cuda_pin(void *at, size_t bytes);
void bpt_cuda_unpin(void *at);

bpt_status bpt_cuda_stream_create(bpt_cuda_stream *stream);
/** One whose work goes first where others wait for room on the GPU too. */
bpt_status bpt_cuda_stream_create_first(bpt_cuda_stream *stream);
void bpt_cuda_stream_free(bpt_cuda_stream stream);

/** Waits, asleep, until all is done that was put on a stream. */
bpt_status bpt_cuda_wait(bpt_cuda_stream stream);
/** The same where something has failed or ends: what fails here is not told, so that the words of
 * what failed before stay. NULL is allowed. */
void bpt_cuda_drain(bpt_cuda_stream stream);

/** Copies between any two places, and to the same value; in order with the stream's other work. The
 * host's memory is not to be touched before a wait. */
bpt_status bpt_cuda_copy(bpt_cuda_stream stream, void *to, const void *from, size_t bytes);
bpt_status bpt_cuda_set(bpt_cuda_stream stream, void *to, int value, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
