#include "scheduler/trace.h"

#include "base/memory.h"
#include "scheduler/trace_private.h"

bpt_status bpt_trace_create(unsigned n_workers, size_t capacity, bpt_trace **out) {
    bpt_trace *trace;
    bpt_status status;
    BPT_TRY(BPT_NEW("trace", 1, &trace));
    BPT_TRY_GOTO(status, BPT_NEW("trace rings", n_workers, &trace->rings), free_trace);
    trace->capacity = capacity;
    for (; trace->n_workers < n_workers; trace->n_workers++)
        BPT_TRY_GOTO(status,
                     BPT_NEW("trace spans", capacity, &trace->rings[trace->n_workers].spans),
                     free_trace);
    *out = trace;
    return BPT_OK;

free_trace:
    bpt_trace_free(trace);
    return status;
}

void bpt_trace_free(bpt_trace *trace) {
    if (!trace) return;
    for (unsigned w = 0; w < trace->n_workers; w++) bpt_free(trace->rings[w].spans);
    bpt_free(trace->rings);
    bpt_free(trace);
}

void bpt_trace_add(bpt_trace *trace, unsigned worker, bpt_task_info info, uint64_t id,
                   uint64_t begin_ns, uint64_t end_ns) {
    bpt__ring *const ring = &trace->rings[worker];
    ring->spans[ring->n++ % trace->capacity] = (bpt__span){info, id, begin_ns, end_ns};
}

uint64_t bpt_trace_lost(const bpt_trace *trace) {
    uint64_t lost = 0;
    for (unsigned w = 0; w < trace->n_workers; w++)
        if (trace->rings[w].n > trace->capacity) lost += trace->rings[w].n - trace->capacity;
    return lost;
}
