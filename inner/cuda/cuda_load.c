/* Finds the functions of both libraries in their files. */
#include "inner/cuda/cuda_library_private.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static const char *const cudnn_name = "libcudnn.so." TEXT(CUDNN_MAJOR);
static const char *const cublaslt_name = "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR);

typedef struct symbol {
    const char *name;
    size_t offset; /* of its pointer in the table */
} symbol;

#define X(name) {#name, offsetof(bpt__cuda_functions, name)},
static const symbol cudnn_symbols[] = {BPT__CUDNN_FUNCTIONS(X)};
static const symbol cublaslt_symbols[] = {BPT__CUBLASLT_FUNCTIONS(X)};
#undef X

static void hint_install(void) {
    bpt_hint(
        "cuDNN %d and cuBLAS of CUDA %d are needed, and their folders in LD_LIBRARY_PATH where the "
        "system does not look (of pip's nvidia-cudnn-cu%d: site-packages/nvidia/*/lib)",
        CUDNN_MAJOR, CUBLAS_VER_MAJOR, CUBLAS_VER_MAJOR);
}

/* A library stays loaded until the process ends: threads and kernels of its own live that long. */
static bpt_status load(const char *file, const symbol *symbols, size_t n,
                       bpt__cuda_functions *functions) {
    void *const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const bpt_status status =
            bpt_fail(BPT_EBACKEND, "a GPU cannot be used without %s: %s", file, dlerror());
        hint_install();
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        void *const found = dlsym(handle, symbols[i].name);
        if (!found) {
            const bpt_status status =
                bpt_fail(BPT_EBACKEND, "%s is too old: it has no %s()", file, symbols[i].name);
            hint_install();
            return status;
        }
        memcpy((char *)functions + symbols[i].offset, &found, sizeof found);
    }
    return BPT_OK;
}

/* cuBLASLt first: cuDNN then finds it in the process, wherever it was loaded from. */
bpt_status bpt__cuda_load(bpt__cuda_functions *functions) {
    BPT_TRY(
        load(cublaslt_name, cublaslt_symbols, sizeof cublaslt_symbols / sizeof(symbol), functions));
    return load(cudnn_name, cudnn_symbols, sizeof cudnn_symbols / sizeof(symbol), functions);
}
