/* cuDNN's graphs of convolutions. Descriptors keep what they are told; a graph is understood when
 * it is finalized (cudnn_graph.c), and run by oneDNN's product. */
#include "tests/inner/gpu_on_cores/host_work.h"
#include "tests/inner/gpu_on_cores/libraries/cudnn_graph.h"
#include "tests/inner/gpu_on_cores/products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cudnnContext {
    cudaStream_t stream;
};

static char last_words[128];

cudnnStatus_t cudnn_refuse(cudnnStatus_t status, const char *words) {
    snprintf(last_words, sizeof last_words, "%s", words);
    return status;
}

#define STRIKE()                                                                                   \
    do {                                                                                           \
        if (libraries_strike(__func__))                                                            \
            return cudnn_refuse(CUDNN_STATUS_EXECUTION_FAILED, "by intent");                       \
    } while (0)

size_t cudnnGetVersion(void) {
    return 1;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
           : status == CUDNN_STATUS_BAD_PARAM   ? "CUDNN_STATUS_BAD_PARAM"
                                                : "CUDNN_STATUS_EXECUTION_FAILED";
}

void cudnnGetLastErrorString(char *text, size_t size) {
    snprintf(text, size, "%s", last_words);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    STRIKE();
    *handle = libraries_new(sizeof **handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    libraries_free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    STRIKE();
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out) {
    STRIKE();
    descriptor *d = libraries_new(sizeof *d);
    d->type = type;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
    libraries_free(d);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- attributes ---- */

static size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(void *);
    default:
        return sizeof(int); /* enumerations, floats */
    }
}

static attribute *find(descriptor *d, cudnnBackendAttributeName_t name) {
    int i = 0;
    while (i < d->n_attributes && d->attributes[i].name != name) i++;
    if (i == MAX_ATTRIBUTES) return NULL;
    if (i == d->n_attributes) d->n_attributes++;
    return &d->attributes[i];
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n,
                                       const void *values) {
    descriptor *d = of;
    STRIKE();
    attribute *a = find(d, name);
    if (d->finalized || !a || n < 1 || (size_t)n * size_of(type) > VALUE_BYTES)
        return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "set too late, or too many");
    *a = (attribute){.name = name, .type = type, .n = n};
    memcpy(a->bytes, values, (size_t)n * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

/* ---- engines ---- */

/* Which ones heuristics name. */
static int list_engines(const bpt_cuda_conv_problem *p, cudnnBackendHeurMode_t mode,
                        enum libraries_engine engines[LIBRARIES_N_ENGINES]) {
    int n = 0, first = libraries_on_cores.n_forgotten;
    if (mode == CUDNN_HEUR_MODE_FALLBACK) {
        engines[0] = p->groups == p->c && p->c > 1 ? LIBRARIES_UNSTABLE : LIBRARIES_PLAIN;
        return 1;
    }
    for (int i = first; p->groups == 1 && i < LIBRARIES_N_ENGINES; i++)
        engines[n++] = (enum libraries_engine)i;
    return n;
}

static int list_notes(enum libraries_engine engine, cudnnBackendNumericalNote_t notes[2]) {
    switch (engine) {
    case LIBRARIES_UNSTABLE:
        notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        notes[1] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        return 2;
    case LIBRARIES_TENSOR:
        notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        return 1;
    case LIBRARIES_WINOGRAD:
        notes[0] = CUDNN_NUMERICAL_NOTE_WINOGRAD;
        return 1;
    default:
        return 0;
    }
}

static void become(descriptor *d, const descriptor *graph, enum libraries_engine engine) {
    d->graph = graph;
    d->engine = engine;
    d->finalized = true;
}

static cudnnStatus_t finalize_heuristics(const descriptor *d) {
    const bool good = cudnn_part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                 CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) &&
                      cudnn_values(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1);
    return good ? CUDNN_STATUS_SUCCESS
                : cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "no graph, or no mode");
}

static cudnnStatus_t finalize_engine(descriptor *d) {
    const int64_t *index = cudnn_integers(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1);
    const descriptor *graph =
        cudnn_part(d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (!graph || !index || *index < 0 || *index >= LIBRARIES_N_ENGINES)
        return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "no such engine");
    become(d, graph, (enum libraries_engine) * index);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_config(descriptor *d) {
    const descriptor *engine =
        cudnn_part(d, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!engine) return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "no engine");
    become(d, engine->graph, engine->engine);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_plan(descriptor *d) {
    const descriptor *config =
        cudnn_part(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!config || !cudnn_values(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1))
        return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "no settings");
    if (config->engine == LIBRARIES_UNBUILT)
        return cudnn_refuse(CUDNN_STATUS_NOT_SUPPORTED, "not of this shape");
    become(d, config->graph, config->engine);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

static cudnnStatus_t finalize(descriptor *d) {
    switch (d->type) {
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return finalize_heuristics(d);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
        return finalize_engine(d);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
        return finalize_config(d);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return finalize_plan(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return CUDNN_STATUS_SUCCESS;
    default:
        return cudnn_check_graph(d);
    }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of) {
    descriptor *d = of;
    STRIKE();
    if (d->finalized) return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "finalized twice");
    const cudnnStatus_t status = finalize(d);
    d->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

static int64_t get_results(const descriptor *d, int64_t n_wanted, descriptor **configs) {
    enum libraries_engine engines[LIBRARIES_N_ENGINES];
    const descriptor *graph = cudnn_part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                         CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const cudnnBackendHeurMode_t *mode =
        cudnn_values(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1);
    const int64_t n = list_engines(&graph->work.problem, *mode, engines);
    for (int64_t i = 0; i < n && i < n_wanted; i++) become(configs[i], graph, engines[i]);
    return n; /* that there are, however many were wanted */
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n_wanted,
                                       int64_t *n, void *values) {
    const descriptor *d = of;
    cudnnBackendNumericalNote_t notes[2];
    STRIKE();
    if (!d->finalized || n_wanted < 1) return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "got too early");
    *n = 1;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        *n = get_results(d, n_wanted, values);
    else if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        become(*(descriptor **)values, d->graph, d->engine);
    else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE)
        memcpy(values, notes, (size_t)(*n = list_notes(d->engine, notes)) * sizeof *notes);
    else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64)
        *(int64_t *)values = (int64_t)libraries_room(d->engine);
    else if (name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT && type == CUDNN_TYPE_INT64)
        *(int64_t *)values = LIBRARIES_N_ENGINES;
    else
        return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "no such attribute to get");
    return CUDNN_STATUS_SUCCESS;
}

/* ---- running ---- */

typedef struct run_call {
    graph_work work;
    enum libraries_engine engine;
    const void *a, *b;
    const float *bias;
    void *out, *workspace;
} run_call;

/* Values of a, b and the result. */
static void count_values(const graph_work *work, int64_t counts[3]) {
    const bpt_cuda_conv_problem *p = &work->problem;
    const int64_t x = p->n * p->h * p->w * p->c, y = p->n * p->p * p->q * p->k;
    const int64_t w = p->k * (p->c / p->groups) * p->kernel[0] * p->kernel[1];
    const bool data = work->step == BPT_CUDA_CONV_BACKWARD_DATA;
    const bool weights = work->step == BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    counts[0] = data ? y : x;
    counts[1] = weights ? y : w;
    counts[2] = weights ? w : data ? x : y;
}

static bool is_wrong(const run_call *call) {
    return call->engine == LIBRARIES_UNSTABLE ||
           (call->engine == LIBRARIES_WINOGRAD && call->work.problem.type == BPT_F32);
}

/* It is the engine's from its begin to its end. */
static void use_workspace(const run_call *call) {
    if (call->engine == LIBRARIES_ROOMY) memset(call->workspace, 0xFF, LIBRARIES_ROOM);
}

static void run(const void *arg) {
    const run_call *call = arg;
    bpt_cuda_conv_problem problem = call->work.problem;
    int64_t counts[3];
    count_values(&call->work, counts);
    use_workspace(call);
    if (is_wrong(call)) {
        memset(call->out, 0xFF, (size_t)counts[2] * bpt_value_bytes(call->work.out_type));
        return;
    }
    float *a = libraries_read(call->engine, problem.type, call->a, counts[0]);
    float *b = libraries_read(call->engine, problem.type, call->b, counts[1]);
    float *out = malloc((size_t)counts[2] * sizeof *out);
    problem.type = BPT_F32;
    if (!out) abort();
    gpu_on_cores_conv(&problem, call->work.step, a, b, call->bias, out);
    gpu_on_cores_write(call->work.out_type, out, counts[2], call->out);
    use_workspace(call);
    free(a);
    free(b);
    free(out);
}

/* @return where a tensor is; NULL: nobody has said, or it is not aligned as was promised */
static void *place_of(const descriptor *pack, int64_t id) {
    for (int64_t n = 1; n <= N_DIMS; n++) {
        const int64_t *ids = cudnn_integers(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, n);
        void *const *places =
            cudnn_values(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n);
        for (int64_t i = 0; ids && places && i < n; i++)
            if (ids[i] == id && (uintptr_t)places[i] % ALIGNMENT == 0) return places[i];
    }
    return NULL;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t of_plan,
                                  cudnnBackendDescriptor_t of_pack) {
    const descriptor *plan = of_plan, *pack = of_pack;
    void *const *workspace =
        cudnn_values(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1);
    const graph_work *work = &plan->graph->work;
    STRIKE();
    const run_call call = {*work,
                           plan->engine,
                           place_of(pack, work->a),
                           place_of(pack, work->b),
                           work->problem.bias ? place_of(pack, work->bias) : NULL,
                           place_of(pack, work->out),
                           workspace ? *workspace : NULL};
    if (!plan->finalized || !pack->finalized || !call.a || !call.b || !call.out || !workspace ||
        (work->problem.bias && !call.bias) || (plan->engine == LIBRARIES_ROOMY && !*workspace) ||
        (uintptr_t)*workspace % 256 != 0)
        return cudnn_refuse(CUDNN_STATUS_BAD_PARAM, "a tensor or the workspace is nowhere");
    const bool way = work->problem.bias || work->problem.relu ||
                     (work->step == BPT_CUDA_CONV_BACKWARD_WEIGHTS && work->out_type != BPT_F32);
    if (libraries_run(plan->engine, way))
        return cudnn_refuse(CUDNN_STATUS_EXECUTION_FAILED, "as it does");
    return gpu_on_cores_put(handle->stream, run, &call, sizeof call) == cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : cudnn_refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stream takes nothing");
}
