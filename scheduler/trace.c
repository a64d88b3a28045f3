#include "scheduler/trace.h"

#include "base/memory.h"
#include "scheduler/trace_private.h"

bpt_status bpt_trace_create(unsigned n_workers, size_t capacity, bpt_trace **out) {
    bpt_trace *trace;
    bpt_status status;
    BPT_TRY(BPT_NEW("trace", 1, &trace));
    trace->n_workers = n_workers;
    trace->capacity = capacity;
    BPT_TRY_GOTO(status, BPT_NEW("trace rings", n_workers + 1, &trace->rings), free_trace);
    for (unsigned r = 0; r <= n_workers; r++)
        BPT_TRY_GOTO(status, BPT_NEW("trace spans", capacity, &trace->rings[r].spans), free_trace);
    *out = trace;
    return BPT_OK;

free_trace:
    bpt_trace_free(trace);
    return status;
}

void bpt_trace_free(bpt_trace *trace) {
    if (!trace) return;
    for (unsigned r = 0; trace->rings && r <= trace->n_workers; r++)
        bpt_free(trace->rings[r].spans);
    bpt_free(trace->rings);
    bpt_free(trace);
}

static void add(bpt_trace *trace, unsigned ring, bpt__span span) {
    bpt__ring *const r = &trace->rings[ring];
    r->spans[r->n++ % trace->capacity] = span;
}

void bpt_trace_add(bpt_trace *trace, unsigned worker, bpt_task_info info, uint64_t id,
                   uint64_t begin_ns, uint64_t end_ns) {
    add(trace, worker, (bpt__span){info, id, begin_ns, end_ns});
}

void bpt_trace_add_message(bpt_trace *trace, bpt_task_info info, uint64_t bytes, uint64_t begin_ns,
                           uint64_t end_ns) {
    add(trace, trace->n_workers, (bpt__span){info, bytes, begin_ns, end_ns});
}

uint64_t bpt_trace_lost(const bpt_trace *trace) {
    uint64_t lost = 0;
    for (unsigned r = 0; r <= trace->n_workers; r++)
        if (trace->rings[r].n > trace->capacity) lost += trace->rings[r].n - trace->capacity;
    return lost;
}

size_t bpt_trace_bytes(unsigned n_workers, size_t capacity) {
    return (n_workers + (size_t)1) * (capacity * sizeof(bpt__span) + sizeof(bpt__ring));
}
