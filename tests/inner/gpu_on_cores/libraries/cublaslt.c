/* cuBLASLt's products. Its matrices are column by column: D (m x n) = op(A) op(B) is D' = op(B)'
 * op(A)' of rows. */
#include "tests/inner/gpu_on_cores/host_work.h"
#include "tests/inner/gpu_on_cores/libraries/libraries.h"
#include "tests/inner/gpu_on_cores/products.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

enum { N_ALIGNMENTS = 4 };

struct cublasLtContext {
    char nothing;
};

struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cublasOperation_t a, b;
    cublasLtEpilogue_t epilogue;
    const float *bias;
};

struct cublasLtMatrixLayoutOpaque_t {
    bpt_value_type type;
    int64_t rows, columns;
};

struct cublasLtMatmulPreferenceOpaque_t {
    uint64_t workspace;
    uint32_t schemes, alignments[N_ALIGNMENTS];
};

#define STRIKE()                                                                                   \
    do {                                                                                           \
        if (libraries_strike(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;                     \
    } while (0)

/* ---- handles and descriptions ---- */

size_t cublasLtGetVersion(void) {
    return 1;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED   ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == CUBLAS_STATUS_SUCCESS       ? "CUBLAS_STATUS_SUCCESS"
                                                   : "CUBLAS_STATUS_EXECUTION_FAILED";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    STRIKE();
    *handle = libraries_new(sizeof **handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    libraries_free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    STRIKE();
    if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    *desc = libraries_new(sizeof **desc);
    (*desc)->compute = compute;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    libraries_free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t take(void *to, size_t to_bytes, const void *value, size_t bytes) {
    if (bytes != to_bytes) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes) {
    STRIKE();
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&desc->a, sizeof desc->a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&desc->b, sizeof desc->b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&desc->epilogue, sizeof desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&desc->bias, sizeof desc->bias, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
    STRIKE();
    if (stride != (int64_t)rows) return CUBLAS_STATUS_NOT_SUPPORTED;
    *layout = libraries_new(sizeof **layout);
    **layout = (struct cublasLtMatrixLayoutOpaque_t){type == CUDA_R_16BF ? BPT_BF16 : BPT_F32,
                                                     (int64_t)rows, (int64_t)columns};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    libraries_free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    STRIKE();
    *preference = libraries_new(sizeof **preference);
    (*preference)->schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    libraries_free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes) {
    STRIKE();
    switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return take(&p->workspace, sizeof p->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return take(&p->schemes, sizeof p->schemes, value, bytes);
    default:
        return take(&p->alignments[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                    sizeof *p->alignments, value, bytes);
    }
}

/* ---- algorithms ---- */

/* Other bits each time only where sums may be added up in place; 10 bits of mantissa only where
 * that is asked for, or values have no more. */
static bool is_there(const struct cublasLtMatmulDescOpaque_t *desc, bpt_value_type type,
                     const struct cublasLtMatmulPreferenceOpaque_t *preference,
                     enum libraries_engine engine) {
    switch (engine) {
    case LIBRARIES_UNSTABLE:
        return preference->schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE;
    case LIBRARIES_TENSOR:
        return type == BPT_BF16 || desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    case LIBRARIES_WINOGRAD:
        return false;
    case LIBRARIES_ROOMY:
        return preference->workspace >= LIBRARIES_ROOM;
    default:
        return true;
    }
}

/* A bias is of the result's type, and not of every shape. */
static bool has_epilogue(const struct cublasLtMatmulDescOpaque_t *desc,
                         const struct cublasLtMatrixLayoutOpaque_t *d) {
    return desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
           (desc->bias && d->type == BPT_F32 && d->rows % 2 == 0);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int n_wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *n) {
    STRIKE();
    *n = 0;
    if (!handle || c != d || !b || !has_epilogue(desc, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = libraries_on_cores.n_forgotten; i < LIBRARIES_N_ENGINES && *n < n_wanted; i++) {
        if (!is_there(desc, a->type, preference, (enum libraries_engine)i)) continue;
        results[(*n)++] = (cublasLtMatmulHeuristicResult_t){
            .algo = {{(uint64_t)i}},
            .workspaceSize = libraries_room((enum libraries_engine)i),
            .state = i == LIBRARIES_UNBUILT ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS,
        };
    }
    return *n ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* ---- running ---- */

typedef struct run_call {
    struct cublasLtMatmulDescOpaque_t desc;
    struct cublasLtMatrixLayoutOpaque_t a, b, d;
    enum libraries_engine engine;
    const void *a_at, *b_at;
    void *d_at, *workspace;
} run_call;

static int64_t values_of(const struct cublasLtMatrixLayoutOpaque_t *layout) {
    return layout->rows * layout->columns;
}

static void add_bias(const run_call *call, float *out) {
    if (call->desc.epilogue != CUBLASLT_EPILOGUE_BIAS) return;
    for (int64_t i = 0; i < values_of(&call->d); i++) out[i] += call->desc.bias[i % call->d.rows];
}

/* It is the engine's from its begin to its end. */
static void use_workspace(const run_call *call) {
    if (call->engine == LIBRARIES_ROOMY) memset(call->workspace, 0xFF, LIBRARIES_ROOM);
}

static void run(const void *arg) {
    const run_call *call = arg;
    const int64_t n = values_of(&call->d);
    const bool a_turned = call->desc.a == CUBLAS_OP_T, b_turned = call->desc.b == CUBLAS_OP_T;
    use_workspace(call);
    if (call->engine == LIBRARIES_UNSTABLE) {
        memset(call->d_at, 0xFF, (size_t)n * bpt_value_bytes(call->d.type));
        return;
    }
    float *a = libraries_read(call->engine, call->a.type, call->a_at, values_of(&call->a));
    float *b = libraries_read(call->engine, call->b.type, call->b_at, values_of(&call->b));
    float *out = malloc((size_t)n * sizeof *out);
    if (!out) abort();
    gpu_on_cores_multiply(b_turned ? 'T' : 'N', a_turned ? 'T' : 'N', call->d.columns, call->d.rows,
                          a_turned ? call->a.rows : call->a.columns, b, call->b.rows, a,
                          call->a.rows, 0.0f, out, call->d.rows);
    add_bias(call, out);
    gpu_on_cores_write(call->d.type, out, n, call->d_at);
    use_workspace(call);
    free(a);
    free(b);
    free(out);
}

/* To what the search has promised: matrices to 16 bytes, the others as memory of a GPU begins. */
static bool is_aligned(const void *at, unsigned bytes) {
    return at && (uintptr_t)at % bytes == 0;
}

static bool has_room(const void *workspace, size_t bytes) {
    return is_aligned(workspace, 256) && bytes >= LIBRARIES_ROOM;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream) {
    const enum libraries_engine engine = (enum libraries_engine)algo->data[0];
    const run_call call = {*desc, *a_layout, *b_layout, *d_layout, engine, a, b, d, workspace};
    STRIKE();
    if (!handle || *(const float *)alpha != 1.0f || *(const float *)beta != 0.0f || c != d ||
        c_layout != d_layout || !is_aligned(a, 16) || !is_aligned(b, 16) || !is_aligned(d, 16) ||
        (engine == LIBRARIES_ROOMY && !has_room(workspace, workspace_bytes)) ||
        (desc->epilogue == CUBLASLT_EPILOGUE_BIAS && !is_aligned(desc->bias, 256)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (libraries_run(engine, desc->epilogue == CUBLASLT_EPILOGUE_BIAS))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return gpu_on_cores_put(stream, run, &call, sizeof call) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
