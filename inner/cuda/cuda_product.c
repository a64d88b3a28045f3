/* Matrices of cuBLASLt are column by column, so that a matrix of ours is the transpose of one of
 * its: x [n, c] is its X (c x n), the weights [k, c] are its W (c x k), y [n, k] is its Y (k x n).
 *
 *     forward   Y  = W' X        (k x n) from (k x c) (c x n)
 *     data      dX = W  dY       (c x n) from (c x k) (k x n)
 *     weights   dW = X  dY'      (c x k) from (c x n) (n x k)
 */
#include "base/log.h"
#include "base/memory.h"
#include "inner/cuda/cuda_bias.h"
#include "inner/cuda/cuda_library_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    N_RESULTS = 8, /* of heuristics, that are measured */
    ALIGNMENT = 16,
    WORKSPACE = 32 << 20, /* bytes at most: what cuBLAS itself takes on such GPUs */
};

/* Its words for one product D = op(A) op(B). */
typedef struct matrices {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d;
} matrices;

struct bpt_cuda_product {
    bpt_cuda_library *library;
    bpt_cuda_product_problem problem;
    bpt_cuda_conv_step step;
    bool bias_within; /* in the epilogue, not behind it */
    matrices matrices;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace_bytes;
    int place; /* of the algorithm, among those that heuristics name */
    uint64_t ns;
};

/* ---- description ---- */

static cudaDataType_t data_type(bpt_value_type type) {
    return type == BPT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static bpt_status set(const bpt_cuda_product *p, cublasLtMatmulDescAttributes_t name,
                      const void *value, size_t bytes) {
    BPT__CUBLASLT_TRY(p->library,
                      cublasLtMatmulDescSetAttribute(p->matrices.product, name, value, bytes));
    return BPT_OK;
}

static bpt_status make_layout(const bpt_cuda_product *p, cudaDataType_t type, int64_t rows,
                              int64_t columns, cublasLtMatrixLayout_t *layout) {
    BPT__CUBLASLT_TRY(p->library, cublasLtMatrixLayoutCreate(layout, type, (uint64_t)rows,
                                                             (uint64_t)columns, rows));
    return BPT_OK;
}

static bpt_status make_layouts(bpt_cuda_product *p) {
    const int64_t n = p->problem.n, c = p->problem.c, k = p->problem.k;
    const cudaDataType_t type = data_type(p->problem.type);
    matrices *m = &p->matrices;
    switch (p->step) {
    case BPT_CUDA_CONV_FORWARD:
        BPT_TRY(make_layout(p, type, c, k, &m->a));
        BPT_TRY(make_layout(p, type, c, n, &m->b));
        return make_layout(p, type, k, n, &m->d);
    case BPT_CUDA_CONV_BACKWARD_DATA:
        BPT_TRY(make_layout(p, type, c, k, &m->a));
        BPT_TRY(make_layout(p, type, k, n, &m->b));
        return make_layout(p, type, c, n, &m->d);
    case BPT_CUDA_CONV_BACKWARD_WEIGHTS:
        BPT_TRY(make_layout(p, type, c, n, &m->a));
        BPT_TRY(make_layout(p, type, k, n, &m->b));
        return make_layout(p, CUDA_R_32F, c, k, &m->d);
    }
    return bpt_fail(BPT_EBACKEND, "no such step of a product: %d", (int)p->step);
}

static bpt_status make_product(bpt_cuda_product *p) {
    const bool fast = p->library->tf32 && p->problem.type == BPT_F32;
    const cublasOperation_t turned = CUBLAS_OP_T;
    const cublasLtEpilogue_t with_bias = CUBLASLT_EPILOGUE_BIAS;
    BPT__CUBLASLT_TRY(p->library, cublasLtMatmulDescCreate(&p->matrices.product,
                                                           fast ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                : CUBLAS_COMPUTE_32F,
                                                           CUDA_R_32F));
    if (p->step == BPT_CUDA_CONV_FORWARD)
        BPT_TRY(set(p, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
    if (p->step == BPT_CUDA_CONV_BACKWARD_WEIGHTS)
        BPT_TRY(set(p, CUBLASLT_MATMUL_DESC_TRANSB, &turned, sizeof turned));
    if (p->bias_within)
        BPT_TRY(set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &with_bias, sizeof with_bias));
    return BPT_OK;
}

static void matrices_free(bpt_cuda_library *library, matrices *m) {
    if (m->d) library->f.cublasLtMatrixLayoutDestroy(m->d);
    if (m->b) library->f.cublasLtMatrixLayoutDestroy(m->b);
    if (m->a) library->f.cublasLtMatrixLayoutDestroy(m->a);
    if (m->product) library->f.cublasLtMatmulDescDestroy(m->product);
    *m = (matrices){0};
}

/* ---- running ---- */

static bpt_status multiply(bpt_cuda_stream stream, const bpt_cuda_product *p, const void *a,
                           const void *b, const float *bias, void *out, void *workspace) {
    const matrices *m = &p->matrices;
    const float one = 1, zero = 0;
    /* The weights come first in its products, and second among our arguments. */
    const bool swapped = p->step != BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    const void *first = swapped ? b : a, *second = swapped ? a : b;
    if (p->bias_within) BPT_TRY(set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    BPT__CUBLASLT_TRY(p->library,
                      cublasLtMatmul(p->library->cublaslt, m->product, &one, first, m->a, second,
                                     m->b, &zero, out, m->d, out, m->d, &p->algorithm, workspace,
                                     p->workspace_bytes, stream));
    return BPT_OK;
}

static bool bias_behind(const bpt_cuda_product *p) {
    return p->problem.bias && !p->bias_within && p->step == BPT_CUDA_CONV_FORWARD;
}

static bpt_status run(bpt_cuda_stream stream, const bpt_cuda_product *p, const void *a,
                      const void *b, const float *bias, void *out, void *workspace) {
    BPT_TRY(multiply(stream, p, a, b, bias, out, workspace));
    if (!bias_behind(p)) return BPT_OK;
    return bpt_cuda_bias(stream, out, bias, false, p->problem.type, p->problem.n, p->problem.k);
}

bpt_status bpt_cuda_product_run(bpt_cuda_stream stream, const bpt_cuda_product *product,
                                const void *a, const void *b, const float *bias, void *out) {
    void *workspace = product->library->workspace;
    assert(workspace || product->workspace_bytes == 0);
    return run(stream, product, a, b, bias, out, workspace);
}

/* ---- choice ---- */

/* Memory for what is measured. */
typedef struct search {
    bpt_cuda_product *product;
    size_t workspace_bytes; /* the most that an algorithm wants */
    bpt__operands operands;
    const bpt__choice *known; /* NULL: nothing is */
} search;

static bpt_status run_measured(bpt_cuda_stream stream, void *arg) {
    const search *s = arg;
    const bpt__operands *o = &s->operands;
    return run(stream, s->product, o->a, o->b, o->bias, o->out, o->workspace);
}

static bpt_status prefer(const bpt_cuda_product *p, cublasLtMatmulPreference_t preference,
                         cublasLtMatmulPreferenceAttributes_t name, const void *value,
                         size_t bytes) {
    BPT__CUBLASLT_TRY(p->library,
                      cublasLtMatmulPreferenceSetAttribute(preference, name, value, bytes));
    return BPT_OK;
}

/* Sums that are split may not be added up in place, in an order that is another each time. */
static bpt_status fill_preference(const bpt_cuda_product *p,
                                  cublasLtMatmulPreference_t preference) {
    const uint64_t workspace = WORKSPACE;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, alignment = ALIGNMENT;
    const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    BPT_TRY(prefer(p, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                   sizeof workspace));
    BPT_TRY(prefer(p, preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                   sizeof schemes));
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned; i++)
        BPT_TRY(prefer(p, preference, aligned[i], &alignment, sizeof alignment));
    return BPT_OK;
}

/* @param[out] n 0 where there is none: no error */
static bpt_status ask(const bpt_cuda_product *p, cublasLtMatmulHeuristicResult_t *results, int *n) {
    bpt_cuda_library *library = p->library;
    const bpt__cuda_functions *f = &library->f;
    const matrices *m = &p->matrices;
    cublasLtMatmulPreference_t preference = NULL;
    BPT__CUBLASLT_TRY(library, cublasLtMatmulPreferenceCreate(&preference));
    const bpt_status status = fill_preference(p, preference);
    *n = 0;
    if (status == BPT_OK) {
        const cublasStatus_t code =
            f->cublasLtMatmulAlgoGetHeuristic(library->cublaslt, m->product, m->a, m->b, m->d, m->d,
                                              preference, N_RESULTS, results, n);
        if (code != CUBLAS_STATUS_SUCCESS) *n = 0;
        snprintf(library->refusal, sizeof library->refusal, "%s", f->cublasLtGetStatusString(code));
    }
    f->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

static bool may_run(const cublasLtMatmulHeuristicResult_t *result) {
    return result->state == CUBLAS_STATUS_SUCCESS && result->workspaceSize <= WORKSPACE;
}

static void take(bpt_cuda_product *p, const cublasLtMatmulHeuristicResult_t *result, int place,
                 uint64_t ns) {
    p->algorithm = result->algo;
    p->workspace_bytes = result->workspaceSize;
    p->place = place;
    p->ns = ns;
}

/* One that does not run is passed over. */
static bpt_status measure(search *s, const cublasLtMatmulHeuristicResult_t *result, int place) {
    char what[128];
    bpt_cuda_product *p = s->product;
    const bpt_cuda_product best = *p;
    if (!may_run(result) || result->workspaceSize > s->workspace_bytes) return BPT_OK;
    take(p, result, place, UINT64_MAX);
    snprintf(what, sizeof what, "algorithm %d of cuBLASLt for the %s of a fully connected layer",
             place, bpt__step_text(p->step));
    BPT_TRY(bpt__measure(p->library, run_measured, s, s->operands.delay, what, &p->ns));
    if (p->ns >= best.ns) *p = best;
    return BPT_OK;
}

static bpt_status allocate(search *s) {
    const bpt_cuda_product_problem *p = &s->product->problem;
    const size_t bytes = bpt_value_bytes(p->type), weights = (size_t)(p->k * p->c);
    const bpt__operand_bytes sizes = {
        .x = (size_t)(p->n * p->c) * bytes,
        .y = (size_t)(p->n * p->k) * bytes,
        .weights = weights * bytes,
        .float_weights = weights * sizeof(float),
        .bias = (size_t)p->k * sizeof(float),
        .workspace = s->workspace_bytes,
    };
    return bpt__operands_allocate(s->product->library, s->product->step, &sizes, &s->operands);
}

static bpt_status measure_all(search *s, const cublasLtMatmulHeuristicResult_t *results, int n) {
    if (n == 0) return BPT_OK;
    s->workspace_bytes = 0;
    for (int i = 0; i < n; i++)
        if (may_run(&results[i]) && results[i].workspaceSize > s->workspace_bytes)
            s->workspace_bytes = results[i].workspaceSize;
    bpt_status status = allocate(s);
    if (status == BPT_EFULL && s->workspace_bytes > 0) { /* those that want none still are */
        s->workspace_bytes = 0;
        status = allocate(s);
    }
    for (int i = 0; i < n && status == BPT_OK; i++) status = measure(s, &results[i], i);
    bpt_cuda_free(s->operands.block);
    return status;
}

/* In place of what p has where one is faster. */
static bpt_status choose(search *s) {
    cublasLtMatmulHeuristicResult_t results[N_RESULTS];
    /* Of the bias an algorithm is told the alignment by its pointer: any memory of a GPU's. */
    const float *const bias = (const float *)(uintptr_t)256;
    int n = 0;
    bpt_cuda_product *p = s->product;
    BPT_TRY(make_product(p));
    if (p->bias_within) BPT_TRY(set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    BPT_TRY(make_layouts(p));
    BPT_TRY(ask(p, results, &n));
    if (s->known && s->known->place < n && may_run(&results[s->known->place]))
        take(p, &results[s->known->place], (int)s->known->place, (uint64_t)s->known->ns);
    return s->known ? BPT_OK : measure_all(s, results, n);
}

static bool may_have_bias_within(const bpt_cuda_product *p) {
    return p->problem.bias && p->step == BPT_CUDA_CONV_FORWARD && p->problem.type == BPT_F32;
}

/* The bias is within where it is of the result's type, which is what cuBLASLt wants; behind where
 * it is not, or where no algorithm has it. */
static bpt_status choose_bias(search *s) {
    bpt_cuda_product *p = s->product;
    p->ns = UINT64_MAX;
    p->bias_within = may_have_bias_within(p);
    if (p->bias_within) {
        BPT_TRY(choose(s));
        if (p->ns != UINT64_MAX) return BPT_OK;
        matrices_free(p->library, &p->matrices);
        p->bias_within = false;
    }
    BPT_TRY(choose(s));
    if (p->ns != UINT64_MAX) return BPT_OK;
    return bpt_fail(BPT_EBACKEND,
                    "cuBLASLt has no algorithm for step %d of a product of %" PRId64
                    " samples, %" PRId64 " to %" PRId64 " values: %s",
                    (int)p->step, p->problem.n, p->problem.c, p->problem.k, p->library->refusal);
}

static void name_problem(const bpt_cuda_product *p, char key[BPT__CHOICE_KEY_SIZE]) {
    snprintf(key, BPT__CHOICE_KEY_SIZE,
             "product step %d type %d n%" PRId64 " c%" PRId64 " k%" PRId64 "%s", (int)p->step,
             (int)p->problem.type, p->problem.n, p->problem.c, p->problem.k,
             p->problem.bias ? " bias" : "");
}

/* Leaves p->ns at UINT64_MAX where nothing is known, or there is no such algorithm here. */
static bpt_status use_known(bpt_cuda_product *p, const char *key) {
    const bpt__choice *known = bpt__choices_find(&p->library->choices, key);
    search s = {.product = p, .known = known};
    p->ns = UINT64_MAX;
    if (!known || known->list != 0 || (known->way == 1 && !may_have_bias_within(p))) return BPT_OK;
    p->bias_within = known->way == 1;
    BPT_TRY(choose(&s));
    if (p->ns == UINT64_MAX) matrices_free(p->library, &p->matrices);
    return BPT_OK;
}

static bpt_status search_algorithm(bpt_cuda_product *p) {
    char key[BPT__CHOICE_KEY_SIZE];
    name_problem(p, key);
    BPT_TRY(use_known(p, key));
    if (p->ns != UINT64_MAX) return BPT_OK;
    search s = {.product = p};
    BPT_TRY(choose_bias(&s));
    bpt__choice c = {.way = p->bias_within, .place = p->place, .ns = (int64_t)p->ns};
    strcpy(c.key, key);
    BPT_TRY(bpt__choices_note(&p->library->choices, &c));
    p->library->n_measured++;
    return BPT_OK;
}

bpt_status bpt_cuda_product_create(bpt_cuda_library *library,
                                   const bpt_cuda_product_problem *problem, bpt_cuda_conv_step step,
                                   bpt_cuda_product **product) {
    bpt_cuda_product *made = NULL;
    BPT_TRY(BPT_NEW("product", 1, &made));
    *made = (bpt_cuda_product){.library = library, .problem = *problem, .step = step};
    const bpt_status status = search_algorithm(made);
    if (status != BPT_OK) {
        bpt_cuda_product_free(made);
        return status;
    }
    bpt__library_want(library, made->workspace_bytes);
    bpt_debug("cuBLASLt: step %d of %" PRId64 " x %" PRId64 " to %" PRId64 ": %.1f us", (int)step,
              problem->n, problem->c, problem->k, (double)made->ns * 1e-3);
    *product = made;
    return BPT_OK;
}

void bpt_cuda_product_free(bpt_cuda_product *product) {
    if (!product) return;
    matrices_free(product->library, &product->matrices);
    bpt_free(product);
}

uint64_t bpt_cuda_product_ns(const bpt_cuda_product *product) {
    return product->ns;
}
