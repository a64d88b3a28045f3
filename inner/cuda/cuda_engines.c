/* Which of cuDNN's engines a graph's plans are made of. Heuristics name them in the order of the
 * time they are thought to take. */
#include "base/clock.h"
#include "inner/cuda/cuda_graph.h"

#include <assert.h>

enum {
    N_CONFIGS = 48,       /* that are asked for */
    FEW = 3,              /* plans, so that others are asked for */
    PLANS_NS = 500000000, /* once there is a plan, no other is begun so long after a list was asked
                           * for */
    MAX_NOTES = CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
};

#define BIT(note) (1u << CUDNN_NUMERICAL_NOTE_##note)

/* The same input has to give the same bits, and sums are floats. Of floats no algorithm may lose
 * precision, and unless they may have 10 bits of mantissa, tensor cores may not see them. */
static unsigned refused_notes(const bpt__conv_graph *graph) {
    unsigned refused =
        BIT(NONDETERMINISTIC) | BIT(DOWN_CONVERT_INPUTS) | BIT(REDUCED_PRECISION_REDUCTION);
    if (graph->form.problem.type != BPT_F32) return refused;
    refused |= BIT(FFT) | BIT(WINOGRAD) | BIT(WINOGRAD_TILE_4x4) | BIT(WINOGRAD_TILE_6x6) |
               BIT(WINOGRAD_TILE_13x13);
    return graph->library->tf32 ? refused : refused | BIT(TENSOR_CORE);
}

/* Notes that cannot be read count as all of them. */
static unsigned notes_of(bpt_cuda_library *library, cudnnBackendDescriptor_t engine) {
    cudnnBackendNumericalNote_t notes[MAX_NOTES];
    int64_t n = 0;
    const cudnnStatus_t code = library->f.cudnnBackendGetAttribute(
        engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &n, notes);
    if (code != CUDNN_STATUS_SUCCESS) {
        bpt__cudnn_refused(library, "an engine's notes", code);
        return ~0u;
    }
    unsigned bits = 0;
    for (int64_t i = 0; i < n && i < MAX_NOTES; i++)
        if ((unsigned)notes[i] < 32) bits |= 1u << (unsigned)notes[i];
    return bits;
}

static bool may_run(const bpt__conv_graph *graph, cudnnBackendDescriptor_t engine) {
    return (notes_of(graph->library, engine) & refused_notes(graph)) == 0;
}

/* ---- plans ---- */

static bool read_workspace(bpt_cuda_library *library, bpt__conv_plan *plan) {
    int64_t bytes = 0, n = 0;
    const cudnnStatus_t code = library->f.cudnnBackendGetAttribute(
        plan->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes);
    if (code != CUDNN_STATUS_SUCCESS || bytes < 0) {
        bpt__cudnn_refused(library, "a plan's workspace", code);
        return false;
    }
    plan->workspace = (size_t)bytes;
    return plan->workspace <= BPT_CUDA_MAX_WORKSPACE;
}

/* From its configuration. */
static bool finish_plan(bpt_cuda_library *library, bpt__conv_plan *plan) {
    plan->plan = bpt__descriptor(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    return bpt__set(library, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                    &library->cudnn) &&
           bpt__set(library, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->config) &&
           bpt__finalize(library, plan->plan, "a plan") && read_workspace(library, plan);
}

void bpt__plan_free(bpt_cuda_library *library, bpt__conv_plan *plan) {
    bpt__descriptor_free(library, plan->plan);
    bpt__descriptor_free(library, plan->config);
    bpt__descriptor_free(library, plan->engine);
    *plan = (bpt__conv_plan){0};
}

/* ---- engines that heuristics name ---- */

static bool config_may_run(const bpt__conv_graph *graph, cudnnBackendDescriptor_t config) {
    bpt_cuda_library *library = graph->library;
    cudnnBackendDescriptor_t engine = bpt__descriptor(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!engine) return false;
    int64_t n = 0;
    const cudnnStatus_t code = library->f.cudnnBackendGetAttribute(
        config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    if (code != CUDNN_STATUS_SUCCESS) bpt__cudnn_refused(library, "a choice's engine", code);
    const bool may = code == CUDNN_STATUS_SUCCESS && may_run(graph, engine);
    bpt__descriptor_free(library, engine);
    return may;
}

/* What is asked of heuristics. */
typedef struct question {
    bpt__conv_graph *graph;
    bpt__engine_list list;
    int64_t only;    /* place of the one engine that is wanted; -1: as many as there is time for */
    uint64_t end_ns; /* then */
    bpt__conv_plan *plans; /* shape [n_plans], up to BPT__MAX_PLANS */
    size_t n_plans;
} question;

static bool is_wanted(const question *q, int64_t place) {
    if (q->only >= 0) return place == q->only;
    return q->n_plans < BPT__MAX_PLANS && (q->n_plans == 0 || bpt_clock_ns() < q->end_ns);
}

/* Takes the configuration over where there will be a plan. */
static void take_config(question *q, cudnnBackendDescriptor_t config, int64_t place) {
    bpt__conv_plan plan = {.config = config, .list = q->list, .place = place};
    if (is_wanted(q, place) && config_may_run(q->graph, config) &&
        finish_plan(q->graph->library, &plan))
        q->plans[q->n_plans++] = plan;
    else
        bpt__plan_free(q->graph->library, &plan);
}

/* @return how many configurations there are; what is behind them in the array is to free too */
static int64_t read_configs(bpt_cuda_library *library, cudnnBackendDescriptor_t heuristics,
                            cudnnBackendDescriptor_t *configs) {
    for (int i = 0; i < N_CONFIGS; i++) {
        configs[i] = bpt__descriptor(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        if (!configs[i]) return 0;
    }
    int64_t n = 0;
    const cudnnStatus_t code =
        library->f.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, N_CONFIGS, &n, configs);
    if (code != CUDNN_STATUS_SUCCESS) {
        bpt__cudnn_refused(library, "heuristics' choices", code);
        return 0;
    }
    return n < N_CONFIGS ? n : N_CONFIGS;
}

static void ask(question *q) {
    static const cudnnBackendHeurMode_t modes[] = {
        [BPT__ENGINES_LIKELY] = CUDNN_HEUR_MODE_A,
        [BPT__ENGINES_FALLBACK] = CUDNN_HEUR_MODE_FALLBACK,
    };
    bpt_cuda_library *library = q->graph->library;
    cudnnBackendDescriptor_t heuristics =
        bpt__descriptor(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnnBackendDescriptor_t configs[N_CONFIGS] = {NULL};
    int64_t n = 0;
    q->end_ns = bpt_clock_ns() + PLANS_NS;
    if (bpt__set(library, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &q->graph->whole) &&
        bpt__set(library, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
                 &modes[q->list]) &&
        bpt__finalize(library, heuristics, "heuristics"))
        n = read_configs(library, heuristics, configs);
    for (int64_t i = 0; i < n; i++) take_config(q, configs[i], i);
    for (int64_t i = n; i < N_CONFIGS; i++) bpt__descriptor_free(library, configs[i]);
    bpt__descriptor_free(library, heuristics);
}

/* ---- all engines ---- */

static bool make_engine(bpt__conv_graph *graph, int64_t index, bpt__conv_plan *plan) {
    bpt_cuda_library *library = graph->library;
    plan->engine = bpt__descriptor(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!bpt__set(library, plan->engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->whole) ||
        !bpt__set(library, plan->engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                  &index) ||
        !bpt__finalize(library, plan->engine, "an engine") || !may_run(graph, plan->engine))
        return false;
    plan->config = bpt__descriptor(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    return bpt__set(library, plan->config, CUDNN_ATTR_ENGINECFG_ENGINE,
                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->engine) &&
           bpt__finalize(library, plan->config, "an engine's settings") &&
           finish_plan(library, plan);
}

size_t bpt__graph_all_plans(bpt__conv_graph *graph, bpt__conv_plan *plans) {
    int64_t n_engines = 0, n = 0;
    size_t n_plans = 0;
    const cudnnStatus_t code = graph->library->f.cudnnBackendGetAttribute(
        graph->whole, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &n,
        &n_engines);
    if (code != CUDNN_STATUS_SUCCESS) return 0;
    for (int64_t i = 0; i < n_engines && n_plans < BPT__MAX_PLANS; i++) {
        bpt__conv_plan plan = {.list = BPT__ENGINES_ALL, .place = i};
        if (make_engine(graph, i, &plan))
            plans[n_plans++] = plan;
        else
            bpt__plan_free(graph->library, &plan);
    }
    return n_plans;
}

size_t bpt__graph_plans(bpt__conv_graph *graph, bpt__conv_plan *plans) {
    question q = {.graph = graph, .list = BPT__ENGINES_LIKELY, .only = -1, .plans = plans};
    ask(&q);
    q.list = BPT__ENGINES_FALLBACK;
    if (q.n_plans < FEW) ask(&q);
    return q.n_plans;
}

bool bpt__graph_plan(bpt__conv_graph *graph, bpt__engine_list list, int64_t place,
                     bpt__conv_plan *plan) {
    *plan = (bpt__conv_plan){.list = list, .place = place};
    assert(place >= 0);
    if (list == BPT__ENGINES_ALL) {
        const bool made = make_engine(graph, place, plan);
        if (!made) bpt__plan_free(graph->library, plan);
        return made;
    }
    question q = {.graph = graph, .list = list, .only = place, .plans = plan};
    ask(&q);
    return q.n_plans == 1;
}

/* ---- running ---- */

static bpt_status fill_pack(bpt_cuda_library *library, cudnnBackendDescriptor_t pack,
                            const int64_t *ids, void *const *pointers, int64_t n, void *workspace) {
    BPT__CUDNN_TRY(library, cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                                     CUDNN_TYPE_INT64, n, ids));
    BPT__CUDNN_TRY(library, cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                                     CUDNN_TYPE_VOID_PTR, n, pointers));
    BPT__CUDNN_TRY(library, cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                                     CUDNN_TYPE_VOID_PTR, 1, &workspace));
    BPT__CUDNN_TRY(library, cudnnBackendFinalize(pack));
    return BPT_OK;
}

static bpt_status execute(bpt_cuda_library *library, cudnnBackendDescriptor_t plan,
                          cudnnBackendDescriptor_t pack) {
    BPT__CUDNN_TRY(library, cudnnBackendExecute(library->cudnn, plan, pack));
    return BPT_OK;
}

bpt_status bpt__plan_run(bpt_cuda_stream stream, const bpt__conv_graph *graph,
                         const bpt__conv_plan *plan, const void *a, const void *b,
                         const float *bias, void *out, void *workspace) {
    bpt_cuda_library *library = graph->library;
    const int64_t ids[] = {BPT__TENSOR_A, BPT__TENSOR_B, BPT__TENSOR_OUT, BPT__TENSOR_BIAS};
    void *const pointers[] = {(void *)a, (void *)b, out, (void *)bias};
    cudnnBackendDescriptor_t pack = NULL;
    BPT__CUDNN_TRY(library, cudnnSetStream(library->cudnn, stream));
    BPT__CUDNN_TRY(library,
                   cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    bpt_status status = fill_pack(library, pack, ids, pointers, bias ? 4 : 3, workspace);
    if (status == BPT_OK) status = execute(library, plan->plan, pack);
    bpt__descriptor_free(library, pack);
    return status;
}
