/** @file tests/inner/cuda_fixture.h
 * A GPU for tests of kernels: its memory, values of both types, comparison with references.
 *
 * Every function ends the running test where something fails.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_CUDA_FIXTURE_H
#define TESTS_INNER_CUDA_FIXTURE_H

#include "inner/cuda/cuda.h"

#include <stddef.h>
#include <stdint.h>

/** To call first in main(): makes the first GPU this thread's, with a stream.
 * @return 0, or what main() is to return: 77 (with a reason on stderr) where there is no GPU */
int cuda_begin(void);
void cuda_end(void);

bpt_cuda_stream cuda_stream(void);

/** @return whether a case of so many values is left out: under sanitizers, where the GPU is made of
 * cores (gpu_on_cores) and takes long. It has few processors, so that smaller cases of batch norms
 * fill it too; of kernels whose grids follow the values alone some large ones stay */
bool cuda_leaves_out(size_t n_values);

/** Ends the test, with the error's text, unless @p status is BPT_OK. */
void cuda_ok(bpt_status status);

/** @return memory of the GPU, all bytes 0xFF: of floats and bfloat16, NaNs. Some bytes behind it
 * are watched: cuda_download() says if they have been written. cuda_free() */
void *cuda_poisoned(size_t bytes);

/** @return the same, filled from @p host */
void *cuda_upload(const void *host, size_t bytes);
void *cuda_upload_values(bpt_value_type type, const float *host, size_t n);
void cuda_free(void *at);

/** Waits for the stream and copies from the begin of what cuda_poisoned() or an upload gave. */
void cuda_download(const void *at, void *host, size_t bytes);

/** @param n all values that were allocated; @return them as floats; free() */
float *cuda_download_values(bpt_value_type type, const void *at, size_t n);

/** @return standard normal numbers that the type has, others for each @p id; free() */
float *cuda_random(bpt_value_type type, size_t n, uint64_t id);

/** @return @p x as the type stores it */
float cuda_rounded(bpt_value_type type, float x);

/** Compares: |values - reference| / |reference| (of Euclid) is to be at most 1e-5 of floats, 1e-2
 * of bfloat16; all zeros are to be just that.
 * @param what names it if it is not so */
void cuda_compare(const char *what, bpt_value_type type, const float *values,
                  const double *reference, size_t n);

#endif
