/** @file scheduler/trace_private.h
 * What a trace is made of, for trace.c and trace_file.c. */
#ifndef BPT_SCHEDULER_TRACE_PRIVATE_H
#define BPT_SCHEDULER_TRACE_PRIVATE_H

#include "scheduler/trace.h"

typedef struct bpt__span {
    bpt_task_info info;
    uint64_t id;
    uint64_t begin_ns, end_ns;
} bpt__span;

typedef struct bpt__ring {
    _Alignas(64) bpt__span *spans; /* [capacity] */
    uint64_t n;                    /* spans ever added; the next goes to n % capacity */
} bpt__ring;

struct bpt_trace {
    unsigned n_workers;
    size_t capacity;
    bpt__ring *rings; /* [n_workers + 1]: the last one of messages, their bytes for ids */
};

#endif
