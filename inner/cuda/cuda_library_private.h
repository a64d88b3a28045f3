/** @file inner/cuda/cuda_library_private.h
 * What the files behind cuda_library.h share: the functions of both libraries as they were found
 * when the libraries were loaded, translators of their errors, and measurement.
 *
 * Threads: as cuda_library.h. */
#ifndef BPT_INNER_CUDA_CUDA_LIBRARY_PRIVATE_H
#define BPT_INNER_CUDA_CUDA_LIBRARY_PRIVATE_H

#include "base/memory.h"
#include "inner/cuda/cuda_choices.h"
#include "inner/cuda/cuda_library.h"

#include <cuda_runtime_api.h>
#include <cudnn.h>
/* A header that is not written for our warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wundef"
#include <cublasLt.h>
#pragma GCC diagnostic pop

#define BPT__CUDNN_FUNCTIONS(X)                                                                    \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnGetLastErrorString)                                                                     \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

#define BPT__CUBLASLT_FUNCTIONS(X)                                                                 \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmul)

/** Pointers to the libraries' functions, under their names. */
typedef struct bpt__cuda_functions {
#define X(name) __typeof__(name) *name;
    BPT__CUDNN_FUNCTIONS(X)
    BPT__CUBLASLT_FUNCTIONS(X)
#undef X
} bpt__cuda_functions;

/** An engine that was chosen for a step of a convolution (cuda_conv.c). */
typedef struct bpt__conv_engine bpt__conv_engine;

enum { BPT__REFUSAL_SIZE = 256 };

struct bpt_cuda_library {
    bpt__cuda_functions f;
    cudnnHandle_t cudnn;
    cublasLtHandle_t cublaslt;
    bool tf32;
    bpt_cuda_stream stream; /* for measurements */
    cudaEvent_t start, stop;
    size_t delay_bytes; /* bpt__measure() */
    void *workspace;
    size_t workspace_bytes;          /* the largest that is wanted */
    bpt__conv_engine *engines;       /* list: the same problem is measured once */
    bpt__choices choices;            /* that were read, or made since */
    unsigned n_measured;             /* of these, made */
    char refusal[BPT__REFUSAL_SIZE]; /* why the last that was tried could not be done */
};

/** Loads both libraries (cuda_load.c). @return BPT_OK, BPT_EBACKEND (missing or too old: says which
 * file is looked for; with a hint) */
bpt_status bpt__cuda_load(bpt__cuda_functions *functions);

/** Translate errors. @return BPT_ENOMEM, BPT_EFULL (as bpt_cuda_failed()) or BPT_EBACKEND, said
 * with call, file and line */
bpt_status bpt__cudnn_failed(const bpt_cuda_library *library, cudnnStatus_t code, const char *call,
                             const char *file, int line);
bpt_status bpt__cublaslt_failed(const bpt_cuda_library *library, cublasStatus_t code,
                                const char *call, const char *file, int line);

/** Call a function of the table and return its translated error, if it is one. */
#define BPT__CUDNN_TRY(library, call)                                                              \
    do {                                                                                           \
        const cudnnStatus_t bpt__code = (library)->f.call;                                         \
        if (bpt__code != CUDNN_STATUS_SUCCESS)                                                     \
            return bpt__cudnn_failed((library), bpt__code, #call, __FILE__, __LINE__);             \
    } while (0)
#define BPT__CUBLASLT_TRY(library, call)                                                           \
    do {                                                                                           \
        const cublasStatus_t bpt__code = (library)->f.call;                                        \
        if (bpt__code != CUBLAS_STATUS_SUCCESS)                                                    \
            return bpt__cublaslt_failed((library), bpt__code, #call, __FILE__, __LINE__);          \
    } while (0)

/** Lets the workspace that all share be of at least as many bytes. */
void bpt__library_want(bpt_cuda_library *library, size_t bytes);

/** @return a step for people */
const char *bpt__step_text(bpt_cuda_conv_step step);

/** Work to measure, put on the library's stream. */
typedef bpt_status (*bpt__work_fn)(bpt_cuda_stream stream, void *arg);

/** Runs it once, then some times more between events.
 * @param delay of library->delay_bytes: the GPU is kept busy with it until the work has been put on
 * the stream, and finds its caches as full of other things as they are in a step
 * @param what it is, for an error
 * @param[out] ns the median; UINT64_MAX: it does not run, and library->refusal holds why
 * @return BPT_OK, BPT_EBACKEND (it has left a GPU on which nothing runs any more; with a hint) */
bpt_status bpt__measure(bpt_cuda_library *library, bpt__work_fn work, void *arg, void *delay,
                        const char *what, uint64_t *ns);

/** @return bytes that something takes where pieces of a block lie one behind the other, each
 * aligned to 256 bytes */
static inline size_t bpt__piece_bytes(size_t bytes) {
    return bpt_size_add(bytes, 255) / 256 * 256;
}

/** What a step that is measured works on: bpt_cuda_conv_run() names it, the delay is that of
 * bpt__measure(). */
typedef struct bpt__operands {
    void *block; /* that they are in; bpt_cuda_free() */
    void *a, *b, *bias, *out, *workspace, *delay;
} bpt__operands;

/** Their sizes in bytes, by what they are in the forward pass. */
typedef struct bpt__operand_bytes {
    size_t x, y, weights; /* and their gradients, but for */
    size_t float_weights; /* those of the weights, which are floats */
    size_t bias, workspace;
} bpt__operand_bytes;

/** Takes memory for them, and fills all that may be read with values between -1 and 1, as floats
 * and as bfloat16: a GPU at the limit of its power takes longer for them than for zeros. The
 * workspace may hold anything, as it does in a step.
 * @param[out] operands .block is the caller's, also where that fails; NULL: there is none
 * @return BPT_OK, BPT_EFULL, BPT_EBACKEND; nothing is under way */
bpt_status bpt__operands_allocate(bpt_cuda_library *library, bpt_cuda_conv_step step,
                                  const bpt__operand_bytes *bytes, bpt__operands *operands);

/** Frees the list (cuda_conv.c). */
void bpt__conv_engines_free(bpt_cuda_library *library);

#endif
