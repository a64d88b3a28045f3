/** @file scheduler/trace.h
 * What every worker did and when, and which messages were under way, for a viewer: spans of time in
 * one ring a worker and one for messages, allocated before the run, written as trace events in JSON
 * (Perfetto, chrome://tracing).
 *
 * A full ring loses its oldest spans. A pool that has no trace pays one comparison a task.
 *
 * Threads: a worker's ring is written by that worker alone, that of messages by one thread; all
 * else by one thread while nothing runs and nothing is added. */
#ifndef BPT_SCHEDULER_TRACE_H
#define BPT_SCHEDULER_TRACE_H

#include "scheduler/graph.h"

typedef struct bpt_trace bpt_trace;

/** @param n_workers in [1, BPT_MAX_WORKERS]
 * @param capacity  spans of each ring, at least 1
 * @param[out] trace caller owns, bpt_trace_free(); records nothing yet
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_trace_create(unsigned n_workers, size_t capacity, bpt_trace **trace);

/** @param trace NULL is allowed; no pool has it any more */
void bpt_trace_free(bpt_trace *trace);

/** Notes a span of a worker: a task, a wait. Allocates nothing.
 * @param info  borrowed until the trace is written
 * @param id    number to be shown: of a task, of a step
 * @param begin_ns,end_ns readings of bpt_clock_ns() */
void bpt_trace_add(bpt_trace *trace, unsigned worker, bpt_task_info info, uint64_t id,
                   uint64_t begin_ns, uint64_t end_ns);

/** Notes a message: several may be under way at a time. Allocates nothing.
 * @param info  borrowed until the trace is written: {"send", "to rank 1"}
 * @param begin_ns,end_ns as above */
void bpt_trace_add_message(bpt_trace *trace, bpt_task_info info, uint64_t bytes, uint64_t begin_ns,
                           uint64_t end_ns);

/** @return bytes that a trace takes */
size_t bpt_trace_bytes(unsigned n_workers, size_t capacity);

/** @return spans that were lost since their rings were full */
uint64_t bpt_trace_lost(const bpt_trace *trace);

/** Which part of a common picture a trace is. */
typedef struct bpt_trace_process {
    unsigned rank;      /* "pid" of the events */
    const char *name;   /* "rank 0 on n1" */
    uint64_t origin_ns; /* reading of bpt_clock_ns() that is shown as time 0 */
} bpt_trace_process;

/** Writes one JSON object: {"traceEvents": [...]}, a line an event, times in microseconds. Each
 * span of a worker is a complete event ("ph": "X") with "tid" = worker, "name" = label and kind,
 * "cat" = kind, "args": {"id"}; a message an asynchronous one ("ph": "b" and "e" of one "id"), with
 * "args": {"bytes"}; metadata events name process and threads.
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM; on error what was there stays. Who is killed
 * meanwhile leaves "<path>.tmp-<its number>" */
bpt_status bpt_trace_write(const bpt_trace *trace, const bpt_trace_process *process,
                           const char *path);

/** A trace takes the place of a trace only: any other file with something in it stays.
 * @return BPT_OK (also: there is no file, or it is a device), BPT_EEXIST (with hint), BPT_EIO */
bpt_status bpt_trace_check_place(const char *path);

/** Joins files that bpt_trace_write() wrote into one, and removes them.
 * @param paths shape [n_paths], at least one, all in the folder of @p path; a missing one is passed
 *              over. Who is killed meanwhile leaves "<paths[0]>.tmp-<its number>"
 * @param[out] n_joined how many there were
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_EDATA (a file is no trace), BPT_ENOMEM, and those of
 *         bpt_trace_check_place(); on error the files stay */
bpt_status bpt_trace_join(const char *const *paths, size_t n_paths, const char *path,
                          size_t *n_joined);

#endif
