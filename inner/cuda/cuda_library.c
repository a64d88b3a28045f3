#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "inner/cuda/cuda_library_private.h"
#include "inner/loops/value_type.h"

#include <stdio.h>

enum {
    N_RUNS = 3,      /* of a measurement */
    N_PATTERN = 4094 /* values; no power of two, at which rows would be alike */
};

bpt_status bpt__cudnn_failed(const bpt_cuda_library *library, cudnnStatus_t code, const char *call,
                             const char *file, int line) {
    const bpt_status status =
        code == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED     ? BPT_ENOMEM
        : code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ? BPT_EFULL
                                                                       : BPT_EBACKEND;
    char more[BPT__REFUSAL_SIZE] = "";
    library->f.cudnnGetLastErrorString(more, sizeof more);
    more[sizeof more - 1] = '\0';
    bpt_error_record(status, "cuDNN: %s (%d) in %s, %s:%d%s%s",
                     library->f.cudnnGetErrorString(code), (int)code, call, file, line,
                     more[0] ? ": " : "", more);
    if (status == BPT_EFULL) bpt_cuda_hint_full(0);
    return status;
}

bpt_status bpt__cublaslt_failed(const bpt_cuda_library *library, cublasStatus_t code,
                                const char *call, const char *file, int line) {
    const bool memory = code == CUBLAS_STATUS_ALLOC_FAILED; /* of descriptions: the host's */
    return bpt_fail(memory ? BPT_ENOMEM : BPT_EBACKEND, "cuBLASLt: %s (%d) in %s, %s:%d",
                    library->f.cublasLtGetStatusString(code), (int)code, call, file, line);
}

/* ---- life ---- */

/* On cards whose caches are small it is the time that it takes that counts. */
#ifndef BPT_CUDA_DELAY_BYTES
#define BPT_CUDA_DELAY_BYTES ((size_t)128 << 20)
#endif

/* At least a few times what the GPU keeps of its memory in its cache. */
static bpt_status size_delay(bpt_cuda_library *library) {
    int device, cache;
    BPT_CUDA_TRY(cudaGetDevice(&device));
    BPT_CUDA_TRY(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
    library->delay_bytes = (size_t)cache / 2 * 5;
    if (library->delay_bytes < BPT_CUDA_DELAY_BYTES) library->delay_bytes = BPT_CUDA_DELAY_BYTES;
    return BPT_OK;
}

static bpt_status start(bpt_cuda_library *library) {
    BPT_TRY(bpt__cuda_load(&library->f));
    BPT__CUDNN_TRY(library, cudnnCreate(&library->cudnn));
    BPT__CUBLASLT_TRY(library, cublasLtCreate(&library->cublaslt));
    BPT_TRY(bpt_cuda_stream_create(&library->stream));
    BPT_CUDA_TRY(cudaEventCreate(&library->start));
    BPT_CUDA_TRY(cudaEventCreate(&library->stop));
    BPT_TRY(size_delay(library));
    bpt_debug("cuDNN %d", (int)library->f.cudnnGetVersion());
    return BPT_OK;
}

bpt_status bpt_cuda_library_open(bool tf32, bpt_cuda_library **library) {
    bpt_cuda_library *opened = NULL;
    BPT_TRY(BPT_NEW("CUDA libraries", 1, &opened));
    opened->tf32 = tf32;
    const bpt_status status = start(opened);
    if (status != BPT_OK) {
        bpt_cuda_library_free(opened);
        return status;
    }
    *library = opened;
    return BPT_OK;
}

void bpt_cuda_library_free(bpt_cuda_library *library) {
    if (!library) return;
    bpt__conv_engines_free(library);
    bpt__choices_clear(&library->choices);
    if (library->stop) cudaEventDestroy(library->stop);
    if (library->start) cudaEventDestroy(library->start);
    bpt_cuda_stream_free(library->stream);
    if (library->cublaslt) library->f.cublasLtDestroy(library->cublaslt);
    if (library->cudnn) library->f.cudnnDestroy(library->cudnn);
    bpt_free(library);
}

/* ---- choices ---- */

static bpt__choice_terms terms_of(const bpt_cuda_library *library, const char *gpu) {
    return (bpt__choice_terms){
        .gpu = gpu,
        .cudnn = (int64_t)library->f.cudnnGetVersion(),
        .cublaslt = (int64_t)library->f.cublasLtGetVersion(),
        .tf32 = library->tf32,
    };
}

unsigned bpt_cuda_library_measured(const bpt_cuda_library *library) {
    return library->n_measured;
}

bpt_status bpt_cuda_library_write_choices(const bpt_cuda_library *library, const char *gpu,
                                          char **text) {
    const bpt__choice_terms terms = terms_of(library, gpu);
    return bpt__choices_write(&library->choices, &terms, text);
}

bpt_status bpt_cuda_library_read_choices(bpt_cuda_library *library, const char *gpu,
                                         const bpt_yaml *doc, const bpt_yaml_node *map,
                                         const char **unlike) {
    const bpt__choice_terms terms = terms_of(library, gpu);
    return bpt__choices_read(&library->choices, doc, map, &terms, unlike);
}

/* ---- the workspace ---- */

size_t bpt_cuda_library_workspace(const bpt_cuda_library *library) {
    return library->workspace_bytes;
}

void bpt_cuda_library_use(bpt_cuda_library *library, void *workspace) {
    library->workspace = workspace;
}

void bpt__library_want(bpt_cuda_library *library, size_t bytes) {
    if (bytes > library->workspace_bytes) library->workspace_bytes = bytes;
}

/* ---- measurement ---- */

const char *bpt__step_text(bpt_cuda_conv_step step) {
    static const char *const texts[] = {
        [BPT_CUDA_CONV_FORWARD] = "forward pass",
        [BPT_CUDA_CONV_BACKWARD_DATA] = "input's gradient",
        [BPT_CUDA_CONV_BACKWARD_WEIGHTS] = "weights' gradient",
    };
    return texts[step];
}

/* @return where the next piece of a block is; moves @p used behind it. NULL as block only counts */
static void *take_piece(void *block, size_t bytes, size_t *used) {
    const size_t at = *used;
    *used = bpt_size_add(at, bpt__piece_bytes(bytes));
    return block ? (char *)block + at : NULL;
}

/* @return bytes of all of them; o->block NULL only counts */
static size_t place_operands(const bpt_cuda_library *library, bpt_cuda_conv_step step,
                             const bpt__operand_bytes *n, bpt__operands *o) {
    const bool data = step == BPT_CUDA_CONV_BACKWARD_DATA;
    const bool weights = step == BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    size_t used = 0;
    o->a = take_piece(o->block, data ? n->y : n->x, &used);
    o->b = take_piece(o->block, weights ? n->y : n->weights, &used);
    o->bias = take_piece(o->block, n->bias, &used);
    o->out = take_piece(o->block, weights ? n->float_weights : data ? n->x : n->y, &used);
    o->workspace = take_piece(o->block, n->workspace, &used);
    o->delay = take_piece(o->block, library->delay_bytes, &used);
    return used;
}

/* Begins with the pattern, of whose neighbours any two are a float too, and doubles it. */
static bpt_status repeat(bpt_cuda_stream stream, const bpt_bf16 *values, void *at, size_t bytes) {
    size_t done = N_PATTERN * sizeof *values;
    if (done > bytes) done = bytes;
    BPT_TRY(bpt_cuda_copy(stream, at, values, done));
    while (done < bytes) {
        const size_t n = done < bytes - done ? done : bytes - done;
        BPT_TRY(bpt_cuda_copy(stream, (char *)at + done, at, n));
        done += n;
    }
    return bpt_cuda_wait(stream);
}

static bpt_status fill(bpt_cuda_library *library, void *at, size_t bytes) {
    bpt_bf16 values[N_PATTERN];
    bpt_random r = bpt_random_stream(0, BPT_PURPOSE_SYNTHETIC, 0);
    for (size_t i = 0; i < N_PATTERN; i++)
        values[i] = bpt_to_bf16(2.0f * bpt_random_uniform(&r) - 1.0f);
    const bpt_status status = repeat(library->stream, values, at, bytes);
    if (status != BPT_OK) bpt_cuda_drain(library->stream); /* nobody reads the values any more */
    return status;
}

bpt_status bpt__operands_allocate(bpt_cuda_library *library, bpt_cuda_conv_step step,
                                  const bpt__operand_bytes *bytes, bpt__operands *o) {
    *o = (bpt__operands){0};
    BPT_TRY(bpt_cuda_allocate(place_operands(library, step, bytes, o), &o->block));
    place_operands(library, step, bytes, o);
    return fill(library, o->block, (size_t)((char *)o->workspace - (char *)o->block));
}

static bpt_status time_once(bpt_cuda_library *library, bpt__work_fn work, void *arg, void *delay,
                            uint64_t *ns) {
    BPT_TRY(bpt_cuda_set(library->stream, delay, 0, library->delay_bytes));
    BPT_CUDA_TRY(cudaEventRecord(library->start, library->stream));
    BPT_TRY(work(library->stream, arg));
    BPT_CUDA_TRY(cudaEventRecord(library->stop, library->stream));
    BPT_TRY(bpt_cuda_wait(library->stream));
    float ms = 0;
    BPT_CUDA_TRY(cudaEventElapsedTime(&ms, library->start, library->stop));
    *ns = (uint64_t)((double)ms * 1e6);
    return BPT_OK;
}

static void insert_sorted(uint64_t *values, size_t n, uint64_t value) {
    for (; n > 0 && values[n - 1] > value; n--) values[n] = values[n - 1];
    values[n] = value;
}

static bpt_status measure(bpt_cuda_library *library, bpt__work_fn work, void *arg, void *delay,
                          uint64_t *ns) {
    uint64_t times[N_RUNS];
    BPT_TRY(work(library->stream, arg));
    BPT_TRY(bpt_cuda_wait(library->stream));
    for (size_t i = 0; i < N_RUNS; i++) {
        uint64_t time = 0;
        BPT_TRY(time_once(library, work, arg, delay, &time));
        insert_sorted(times, i, time);
    }
    *ns = times[N_RUNS / 2];
    return BPT_OK;
}

bpt_status bpt__measure(bpt_cuda_library *library, bpt__work_fn work, void *arg, void *delay,
                        const char *what, uint64_t *ns) {
    const bpt_status status = measure(library, work, arg, delay, ns);
    if (status == BPT_OK) return BPT_OK;
    *ns = UINT64_MAX;
    snprintf(library->refusal, sizeof library->refusal, "%.*s", (int)sizeof library->refusal - 1,
             bpt_error_last()->text);
    if (bpt_cuda_wait(library->stream) == BPT_OK) return BPT_OK;
    const bpt_status lost =
        bpt_fail(BPT_EBACKEND, "the GPU runs nothing any more since %s was tried: %s", what,
                 library->refusal);
    bpt_hint("update the library, or the driver; --device cpu computes without either");
    return lost;
}
