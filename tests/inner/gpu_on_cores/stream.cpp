#include "tests/inner/gpu_on_cores/stream.h"

#include "tests/inner/gpu_on_cores/device_memory.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using gpu_on_cores::failed;

/* Something that is done in its turn. */
struct task {
    std::function<void()> work;
    CUstream_st *stream;
    std::vector<std::shared_ptr<task>> after; /* of other streams, or of a graph */
    int gpu;                                  /* whose memory alone it reaches, or ALL_GPUS */
    bool done;
    bool is_mark; /* an event's, not work */
};
typedef std::shared_ptr<task> task_ref;

struct CUgraph_st {
    std::vector<task_ref> tasks;
    /* its capture: */
    std::thread::id by;
    enum cudaStreamCaptureMode mode;
    bool ended, invalid;
};

struct CUgraphExec_st {
    std::vector<std::function<void()>> works;
    std::vector<int> gpus;                 /* that these reach */
    std::vector<std::vector<size_t>> next; /* those that wait for it */
    std::vector<size_t> n_before;
};

struct CUstream_st {
    int gpu;
    std::deque<task_ref> queue;
    std::shared_ptr<CUgraph_st> captures; /* NULL: it does not */
    bool began_capture, goes_first;
    std::vector<task_ref> last; /* of a capture: what the next task comes after */
};

struct CUevent_st {
    task_ref mark;
    std::shared_ptr<CUgraph_st> in; /* a capture; NULL: none */
    std::shared_ptr<double> ms;     /* when it was passed */
    int gpu;
    bool times; /* else nobody may ask when it was passed */
};

namespace gpu_on_cores {

std::recursive_mutex lock;
static std::set<CUstream_st *> streams;
static std::map<int, CUstream_st> null_streams; /* of each GPU */
static bool only_when_waited_for;

static CUstream_st *find(cudaStream_t stream) {
    if (stream) return stream;
    CUstream_st *found = &null_streams[current_gpu()];
    found->gpu = current_gpu();
    return found;
}

/* ---- doing ---- */

/* Not 0, of which nothing but zeros would come. */
static uint64_t first_state() {
    const char *order = getenv("BPT_ORDER_ON_CORES");
    return 0x9E3779B97F4A7C15u * (2 * (order ? strtoull(order, nullptr, 10) : 0) + 1);
}

uint64_t draw() {
    static uint64_t state = first_state();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void finish(const task_ref &last);

/* The first task of a stream, and before it those that it is to come after. */
static void do_first(CUstream_st *stream) {
    const task_ref first = stream->queue.front();
    for (const task_ref &before : first->after) finish(before);
    if (first->done) return; /* by one of these */
    stream->queue.pop_front();
    first->done = true;
    open_memory::turn_to(first->gpu);
    first->work();
}

static void finish(const task_ref &last) {
    while (!last->done) do_first(last->stream);
}

static void finish_stream(CUstream_st *stream) {
    const open_memory open;
    while (!stream->queue.empty()) do_first(stream);
}

/* ---- putting ---- */

/* As CUDA does it to threads that have not exchanged their mode. */
static bool forbids(const CUgraph_st &capture) {
    if (capture.by != std::this_thread::get_id())
        return capture.mode == cudaStreamCaptureModeGlobal;
    return capture.mode != cudaStreamCaptureModeRelaxed;
}

bool is_unsafe() {
    for (const CUstream_st *stream : streams)
        if (stream->captures && forbids(*stream->captures)) return true;
    return false;
}

cudaError_t spoil_captures() {
    for (const CUstream_st *stream : streams)
        if (stream->captures && forbids(*stream->captures)) stream->captures->invalid = true;
    return failed(cudaErrorStreamCaptureUnsupported);
}

cudaError_t spoil_capture_of(cudaStream_t stream) {
    find(stream)->captures->invalid = true;
    return failed(cudaErrorStreamCaptureUnsupported);
}

bool captures(cudaStream_t stream) {
    return find(stream)->captures != nullptr;
}

static task_ref add(CUstream_st *stream, int gpu, std::function<void()> work,
                    std::vector<task_ref> after) {
    auto t =
        std::make_shared<task>(task{std::move(work), stream, std::move(after), gpu, false, false});
    if (stream->captures) {
        t->after.insert(t->after.end(), stream->last.begin(), stream->last.end());
        stream->captures->tasks.push_back(t);
        stream->last = {t};
        return t;
    }
    stream->queue.push_back(t);
    enum { EAGER = 4 }; /* one of so many */
    if (!only_when_waited_for && draw() % EAGER == 0) finish_stream(stream);
    return t;
}

cudaError_t put(cudaStream_t stream, reach how_far, std::function<void()> work) {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    CUstream_st *on = find(stream);
    if (on->captures && on->captures->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    if (how_far == reach::its_gpu && on->gpu != current_gpu())
        return failed(cudaErrorInvalidResourceHandle);
    add(on, how_far == reach::its_gpu ? on->gpu : ALL_GPUS, std::move(work), {});
    return cudaSuccess;
}

cudaError_t finish_all() {
    if (is_unsafe()) return spoil_captures();
    for (auto &of_gpu : null_streams) finish_stream(&of_gpu.second);
    for (CUstream_st *stream : streams) finish_stream(stream);
    return cudaSuccess;
}

/* ---- graphs ---- */

/* In any order in which none comes before what it waits for. */
static void run_graph(const CUgraphExec_st &exec) {
    std::vector<size_t> n_before = exec.n_before, ready;
    for (size_t i = 0; i < n_before.size(); i++)
        if (n_before[i] == 0) ready.push_back(i);
    while (!ready.empty()) {
        std::swap(ready[draw() % ready.size()], ready.back());
        const size_t i = ready.back();
        ready.pop_back();
        open_memory::turn_to(exec.gpus[i]);
        exec.works[i]();
        for (const size_t other : exec.next[i])
            if (--n_before[other] == 0) ready.push_back(other);
    }
}

static CUgraphExec_st *make_exec(const CUgraph_st &graph) {
    auto *exec = new CUgraphExec_st;
    for (const task_ref &t : graph.tasks) {
        const size_t place = exec->works.size();
        exec->works.push_back(t->work);
        exec->gpus.push_back(t->gpu);
        exec->next.emplace_back();
        exec->n_before.push_back(0);
        for (size_t i = 0; i < place; i++)
            for (const task_ref &before : t->after) {
                if (graph.tasks[i] != before) continue;
                exec->next[i].push_back(place);
                exec->n_before[place]++;
            }
    }
    return exec;
}

static double now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

} // namespace gpu_on_cores

using namespace gpu_on_cores;

typedef std::lock_guard<std::recursive_mutex> holder;

/* ---- streams ---- */

size_t gpu_on_cores_streams(void) {
    const holder hold(lock);
    return streams.size();
}

void gpu_on_cores_only_when_waited_for(bool only) {
    const holder hold(lock);
    only_when_waited_for = only;
}

size_t gpu_on_cores_undone(void) {
    const holder hold(lock);
    size_t n = 0;
    for (const CUstream_st *stream : streams)
        for (const task_ref &t : stream->queue) n += !stream->goes_first && !t->is_mark;
    return n;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    const holder hold(lock);
    if (flags != cudaStreamNonBlocking) return failed(cudaErrorInvalidValue);
    *stream = new CUstream_st{};
    (*stream)->gpu = current_gpu();
    streams.insert(*stream);
    return cudaSuccess;
}

/* Any order is allowed, so that priorities change nothing here. */
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    if (priority < -5 || priority > 0) return failed(cudaErrorInvalidValue);
    const cudaError_t error = cudaStreamCreateWithFlags(stream, flags);
    if (error == cudaSuccess) (*stream)->goes_first = priority < 0;
    return error;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    const holder hold(lock);
    finish_stream(stream);
    streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

/* A stream that captures there is no waiting for, whoever waits; another one is a call that CUDA
 * takes as unsafe, if it does not forbid it. */
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const holder hold(lock);
    if (captures(stream)) return spoil_capture_of(stream);
    if (is_unsafe()) return spoil_captures();
    finish_stream(find(stream));
    return cudaSuccess;
}

/* An event that was recorded into a capture takes the stream that waits for it into that. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    const holder hold(lock);
    CUstream_st *waiting = find(stream);
    if (flags != 0) return failed(cudaErrorInvalidValue);
    if (!event->mark) return cudaSuccess;
    if (event->in && event->in->ended) return failed(cudaErrorCapturedEvent);
    if (event->in && !waiting->captures) waiting->captures = event->in;
    if (waiting->captures != event->in) return failed(cudaErrorStreamCaptureUnsupported);
    if (event->in)
        waiting->last.push_back(event->mark);
    else
        add(waiting, ALL_GPUS, [] {}, {event->mark});
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    const holder hold(lock);
    *event = new CUevent_st{};
    (*event)->gpu = current_gpu();
    (*event)->times = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    const holder hold(lock);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const holder hold(lock);
    CUstream_st *on = find(stream);
    if (event->gpu != on->gpu) return failed(cudaErrorInvalidResourceHandle);
    event->in = on->captures;
    event->ms = std::make_shared<double>(0.0);
    event->mark = add(on, ALL_GPUS, [ms = event->ms] { *ms = now_ms(); }, {});
    event->mark->is_mark = true;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const holder hold(lock);
    if (is_unsafe()) return spoil_captures();
    if (event->in) return failed(cudaErrorCapturedEvent);
    const open_memory open;
    if (event->mark) finish(event->mark);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop) {
    const holder hold(lock);
    if (!start->mark || !stop->mark || !start->times || !stop->times || start->gpu != stop->gpu)
        return failed(cudaErrorInvalidResourceHandle);
    if (!start->mark->done || !stop->mark->done) return failed(cudaErrorNotReady);
    *ms = (float)(*stop->ms - *start->ms);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    const holder hold(lock);
    if (!stream || stream->captures) return failed(cudaErrorStreamCaptureUnsupported);
    stream->captures = std::make_shared<CUgraph_st>();
    stream->captures->by = std::this_thread::get_id();
    stream->captures->mode = mode;
    stream->began_capture = true;
    return cudaSuccess;
}

/* Streams that came into the capture have to be waited for by the one that began it. */
static bool is_joined(const CUstream_st &origin, const CUstream_st &other) {
    std::vector<const task *> seen;
    for (const task_ref &t : origin.last) seen.push_back(t.get());
    for (size_t i = 0; i < seen.size(); i++)
        for (const task_ref &before : seen[i]->after) seen.push_back(before.get());
    for (const task_ref &t : other.last)
        if (std::find(seen.begin(), seen.end(), t.get()) == seen.end()) return false;
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    const holder hold(lock);
    if (!stream || !stream->captures || !stream->began_capture)
        return failed(cudaErrorInvalidValue);
    bool joined = true;
    const std::shared_ptr<CUgraph_st> captured = stream->captures;
    for (CUstream_st *other : streams) {
        if (other->captures != captured) continue;
        joined = joined && (other == stream || is_joined(*stream, *other));
        if (other == stream) continue;
        other->captures = nullptr;
        other->last.clear();
    }
    stream->captures = nullptr;
    stream->began_capture = false;
    stream->last.clear();
    captured->ended = true;
    *graph = nullptr;
    if (captured->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    if (!joined) return failed(cudaErrorStreamCaptureUnjoined);
    *graph = new CUgraph_st(*captured);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    const holder hold(lock);
    *exec = make_exec(*graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    return put(stream, reach::all_gpus, [exec] { run_graph(*exec); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    const holder hold(lock);
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    const holder hold(lock);
    const cudaError_t error = finish_all();
    delete exec;
    return error;
}
