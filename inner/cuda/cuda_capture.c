#include "inner/cuda/cuda_capture.h"

#include "base/memory.h"
#include "inner/cuda/cuda_hand_out.h"

#include <cuda_runtime_api.h>

/* How a work is run, one way after the other. */
typedef enum way { BY_TASKS, MEASURED, REPLAYED } way;

struct bpt_cuda_captured {
    cudaGraphExec_t *graphs; /* of its pieces; NULL: not yet; shape [n] */
    size_t n;
    way next;
};

bpt_status bpt_cuda_captured_create(bpt_cuda_captured **captured) {
    BPT_TRY(BPT_NEW("CUDA graphs", BPT_DEVICE_N_WORKS, captured));
    for (int work = 0; work < BPT_DEVICE_N_WORKS; work++)
        BPT_TRY(bpt_cuda_captured_cut(*captured, (bpt_device_work)work, 1));
    return BPT_OK;
}

static void clear(bpt_cuda_captured *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->graphs[i]) cudaGraphExecDestroy(c->graphs[i]);
    bpt_free(c->graphs);
    *c = (bpt_cuda_captured){0};
}

void bpt_cuda_captured_free(bpt_cuda_captured *captured) {
    for (int work = 0; captured && work < BPT_DEVICE_N_WORKS; work++) clear(&captured[work]);
    bpt_free(captured);
}

bpt_status bpt_cuda_captured_cut(bpt_cuda_captured *captured, bpt_device_work work, size_t n) {
    bpt_cuda_captured *c = &captured[work];
    cudaGraphExec_t *graphs;
    BPT_TRY(BPT_NEW("pieces of a CUDA graph", n, &graphs));
    clear(c);
    *c = (bpt_cuda_captured){.graphs = graphs, .n = n};
    return BPT_OK;
}

size_t bpt_cuda_given_bytes(const bpt_device_network *net) {
    return sizeof(bpt_cuda_given) + 3 * (size_t)net->batch * sizeof(int32_t);
}

bpt_status bpt_cuda_run_task(const bpt_device_network *net, const bpt_cuda_task *task) {
    return task->fn(net, task->arg, net->stream);
}

static bpt_status begin(const bpt_device_network *net) {
    BPT_TRY(bpt_cuda_copy(net->stream, net->given, net->host_given, bpt_cuda_given_bytes(net)));
    return bpt_cuda_set(net->stream, net->outcome, 0, sizeof *net->outcome);
}

static bpt_status end(const bpt_device_network *net) {
    return bpt_cuda_copy(net->stream, net->host_outcome, net->outcome, sizeof *net->outcome);
}

/* ---- pieces of a work ---- */

/* Where it is cut, for what takes gradients behind each; else there is one. */
static bpt_cuda_hand_out *cut_for(const bpt_device_network *net, bpt_device_work work) {
    return work == BPT_DEVICE_GRADIENT ? net->hand_out : NULL;
}

static bpt_status run_piece(const bpt_device_network *net, bpt_device_work work, size_t piece) {
    const unsigned phases = bpt__cuda_phases(work);
    const bpt_cuda_hand_out *h = cut_for(net, work);
    const size_t first = piece > 0 ? bpt_cuda_hand_out_end(h, piece - 1) : 0;
    const size_t last = h ? bpt_cuda_hand_out_end(h, piece) : net->n_tasks;
    bpt_cuda_library_use(net->device->library, net->workspace);
    if (piece == 0) BPT_TRY(begin(net));
    for (size_t i = first; i < last; i++)
        if (net->tasks[i].phase & phases) BPT_TRY(bpt_cuda_run_task(net, &net->tasks[i]));
    return last == net->n_tasks ? end(net) : BPT_OK;
}

static bpt_status hand_out(const bpt_device_network *net, bpt_device_work work, size_t piece) {
    bpt_cuda_hand_out *h = cut_for(net, work);
    return h ? bpt_cuda_hand_out_copy(net, h, piece) : BPT_OK;
}

/* ---- the run that is measured ---- */

/* @param marks one more than tasks, recorded before each task and behind the last */
static bpt_status run_marked(const bpt_device_network *net, unsigned phases, cudaEvent_t *marks) {
    size_t n = 0;
    bpt_cuda_library_use(net->device->library, net->workspace);
    BPT_TRY(begin(net));
    BPT_CUDA_TRY(cudaEventRecord(marks[n++], net->stream));
    for (size_t i = 0; i < net->n_tasks; i++) {
        if (!(net->tasks[i].phase & phases)) continue;
        BPT_TRY(bpt_cuda_run_task(net, &net->tasks[i]));
        BPT_CUDA_TRY(cudaEventRecord(marks[n++], net->stream));
    }
    BPT_TRY(end(net));
    return bpt_cuda_wait(net->stream);
}

static bpt_status read_marks(bpt_device_network *net, unsigned phases, const cudaEvent_t *marks) {
    size_t n = 0;
    for (size_t i = 0; i < net->n_tasks; i++) {
        float ms;
        if (!(net->tasks[i].phase & phases)) continue;
        BPT_CUDA_TRY(cudaEventElapsedTime(&ms, marks[n], marks[n + 1]));
        net->tasks[i].ns = (uint64_t)((double)ms * 1e6);
        n++;
    }
    return BPT_OK;
}

static bpt_status create_marks(size_t n, cudaEvent_t *marks) {
    for (size_t i = 0; i < n; i++) BPT_CUDA_TRY(cudaEventCreate(&marks[i]));
    return BPT_OK;
}

static bpt_status measure(bpt_device_network *net, bpt_device_work work) {
    const unsigned phases = bpt__cuda_phases(work);
    const size_t n = net->n_tasks + 1;
    cudaEvent_t *marks;
    BPT_TRY(BPT_NEW("marks of tasks", n, &marks));
    bpt_status status = create_marks(n, marks);
    if (status == BPT_OK) status = run_marked(net, phases, marks);
    if (status == BPT_OK) status = read_marks(net, phases, marks);
    for (size_t i = 0; i < n; i++)
        if (marks[i]) cudaEventDestroy(marks[i]);
    bpt_free(marks);
    return status;
}

static bool is_step(bpt_device_work work) {
    return work == BPT_DEVICE_TRAIN || work == BPT_DEVICE_GRADIENT;
}

/* ---- the graph ---- */

/* @return the graph of what a piece puts on the stream; cudaGraphDestroy() */
static bpt_status capture(const bpt_device_network *net, bpt_device_work work, size_t piece,
                          cudaGraph_t *graph) {
    *graph = NULL;
    BPT_CUDA_TRY(cudaStreamBeginCapture(net->stream, cudaStreamCaptureModeThreadLocal));
    const bpt_status status = run_piece(net, work, piece);
    if (status == BPT_OK) {
        BPT_CUDA_TRY(cudaStreamEndCapture(net->stream, graph));
        return BPT_OK;
    }
    (void)cudaStreamEndCapture(net->stream, graph); /* fails too where the capture is void */
    (void)cudaGetLastError();
    if (*graph) cudaGraphDestroy(*graph);
    return status;
}

static bpt_status instantiate(cudaGraph_t graph, cudaGraphExec_t *out) {
    BPT_CUDA_TRY(cudaGraphInstantiate(out, graph, 0));
    return BPT_OK;
}

static bpt_status make_graph(const bpt_device_network *net, bpt_device_work work, size_t piece,
                             cudaGraphExec_t *out) {
    cudaGraph_t graph;
    BPT_TRY(capture(net, work, piece, &graph));
    const bpt_status status = instantiate(graph, out);
    cudaGraphDestroy(graph);
    return status;
}

static bpt_status replay(const bpt_device_network *net, bpt_device_work work, size_t piece) {
    cudaGraphExec_t *graph = &net->captured[work].graphs[piece];
    if (!*graph) BPT_TRY(make_graph(net, work, piece, graph));
    BPT_CUDA_TRY(cudaGraphLaunch(*graph, net->stream));
    return BPT_OK;
}

bpt_status bpt_cuda_start(bpt_device_network *net, bpt_device_work work) {
    bpt_cuda_captured *c = &net->captured[work];
    const way how = c->next;
    if (how == MEASURED) BPT_TRY(measure(net, work));
    for (size_t i = 0; i < c->n; i++) {
        if (how == BY_TASKS) BPT_TRY(run_piece(net, work, i));
        if (how == REPLAYED) BPT_TRY(replay(net, work, i));
        BPT_TRY(hand_out(net, work, i));
    }
    c->next = how == BY_TASKS && is_step(work) ? MEASURED : REPLAYED;
    return BPT_OK;
}
