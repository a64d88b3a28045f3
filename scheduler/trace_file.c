/* A file of trace events is a first line, a line an event, and a last line, so that files can be
 * joined without being parsed. */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "scheduler/trace_private.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char head[] = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
static const char tail[] = "\n]}\n";

/* Text that is being written, and the events of it. */
typedef struct page {
    FILE *file;
    bpt_json_writer json;
    const bpt_trace_process *process;
    bool has_events;
} page;

static void open_event(page *p, const char *phase, const char *name, unsigned worker) {
    bpt_json_reset(&p->json);
    bpt_json_open_object(&p->json, NULL);
    bpt_json_put_text(&p->json, "ph", phase);
    bpt_json_put_text(&p->json, "name", name);
    bpt_json_put_u64(&p->json, "pid", p->process->rank);
    bpt_json_put_u64(&p->json, "tid", worker);
}

static bpt_status close_event(page *p) {
    const char *text;
    size_t length;
    bpt_json_close_object(&p->json);
    BPT_TRY(bpt_json_end_text(&p->json, &text, &length));
    fprintf(p->file, "%s%s", p->has_events ? ",\n" : "", text);
    p->has_events = true;
    return BPT_OK;
}

/* A metadata event: its only argument is a name. */
static bpt_status write_name(page *p, const char *what, unsigned worker, const char *name) {
    open_event(p, "M", what, worker);
    bpt_json_open_object(&p->json, "args");
    bpt_json_put_text(&p->json, "name", name);
    bpt_json_close_object(&p->json);
    return close_event(p);
}

static void open_span(page *p, const char *phase, unsigned tid, const bpt__span *s,
                      uint64_t at_ns) {
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", s->info.label ? s->info.label : "",
             s->info.label && s->info.kind ? " " : "", s->info.kind ? s->info.kind : "");
    open_event(p, phase, name, tid);
    bpt_json_put_text(&p->json, "cat", s->info.kind ? s->info.kind : "task");
    bpt_json_put_real(&p->json, "ts", (double)(int64_t)(at_ns - p->process->origin_ns) * 1e-3);
}

static void put_argument(page *p, const char *key, uint64_t value) {
    bpt_json_open_object(&p->json, "args");
    bpt_json_put_u64(&p->json, key, value);
    bpt_json_close_object(&p->json);
}

static bpt_status write_span(page *p, unsigned worker, const bpt__span *s) {
    open_span(p, "X", worker, s, s->begin_ns);
    bpt_json_put_real(&p->json, "dur", (double)(s->end_ns - s->begin_ns) * 1e-3);
    put_argument(p, "id", s->id);
    return close_event(p);
}

static uint64_t first_kept(const bpt_trace *trace, const bpt__ring *ring) {
    return ring->n > trace->capacity ? ring->n - trace->capacity : 0;
}

static bpt_status write_worker(page *p, const bpt_trace *trace, unsigned worker) {
    char name[32];
    const bpt__ring *const ring = &trace->rings[worker];
    snprintf(name, sizeof name, "worker %u", worker);
    BPT_TRY(write_name(p, "thread_name", worker, name));
    for (uint64_t i = first_kept(trace, ring); i < ring->n; i++)
        BPT_TRY(write_span(p, worker, &ring->spans[i % trace->capacity]));
    return BPT_OK;
}

/* One of the two ends of a message; viewers find them by an id that no other message has. */
static void open_end(page *p, const char *phase, unsigned tid, const bpt__span *s, uint64_t at_ns,
                     uint64_t number) {
    char id[48];
    snprintf(id, sizeof id, "%u.%" PRIu64, p->process->rank, number);
    open_span(p, phase, tid, s, at_ns);
    bpt_json_put_text(&p->json, "id", id);
}

/* Viewers nest the complete events of a thread, which messages are not. */
static bpt_status write_messages(page *p, const bpt_trace *trace) {
    const unsigned tid = trace->n_workers;
    const bpt__ring *const ring = &trace->rings[tid];
    if (ring->n) BPT_TRY(write_name(p, "thread_name", tid, "messages"));
    for (uint64_t i = first_kept(trace, ring); i < ring->n; i++) {
        const bpt__span *const s = &ring->spans[i % trace->capacity];
        open_end(p, "b", tid, s, s->begin_ns, i);
        put_argument(p, "bytes", s->id);
        BPT_TRY(close_event(p));
        open_end(p, "e", tid, s, s->end_ns, i);
        BPT_TRY(close_event(p));
    }
    return BPT_OK;
}

static bpt_status write_all(page *p, const bpt_trace *trace) {
    fputs(head, p->file);
    BPT_TRY(write_name(p, "process_name", 0, p->process->name));
    for (unsigned w = 0; w < trace->n_workers; w++) BPT_TRY(write_worker(p, trace, w));
    BPT_TRY(write_messages(p, trace));
    fputs(tail, p->file);
    return BPT_OK;
}

/* ---- a file that is replaced as a whole ---- */

/* What is written goes to a new file, which takes the place of @p path at the end. A device or a
 * pipe is written to as it is, and never removed. */
typedef struct {
    FILE *file;
    const char *path;
    char *temporary; /* NULL: written in place */
} output;

static bpt_status open_temporary(output *o, const char *stem) {
    BPT_TRY(bpt_strf(&o->temporary, "%s.tmp-%ld", stem, (long)getpid()));
    const int fd = open(o->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0) o->file = fdopen(fd, "w");
    if (o->file) return BPT_OK;
    const bpt_status status = bpt_fail_write(errno, "write", o->path);
    if (fd >= 0) {
        close(fd);
        (void)unlink(o->temporary);
    }
    bpt_free(o->temporary);
    return status;
}

/* @param stem what the name of the new file begins with: a path in the folder of @p path */
static bpt_status open_output(const char *path, const char *stem, output *o) {
    struct stat there;
    *o = (output){.path = path};
    if (stat(path, &there) != 0 || S_ISREG(there.st_mode)) return open_temporary(o, stem);
    o->file = fopen(path, "w");
    return o->file ? BPT_OK : bpt_fail_write(errno, "write", path);
}

/* Puts the file in its place, or, after an error, leaves what was there. */
static bpt_status close_output(output *o, bpt_status status) {
    errno = 0;
    const bool failed = ferror(o->file) != 0;
    if ((fclose(o->file) != 0 || failed) && status == BPT_OK)
        status = bpt_fail_write(errno ? errno : EIO, "write", o->path);
    if (!o->temporary) return status;
    if (status == BPT_OK && rename(o->temporary, o->path) != 0)
        status = bpt_fail_write(errno, "write", o->path);
    if (status != BPT_OK) (void)unlink(o->temporary);
    bpt_free(o->temporary);
    return status;
}

bpt_status bpt_trace_write(const bpt_trace *trace, const bpt_trace_process *process,
                           const char *path) {
    output o;
    BPT_TRY(open_output(path, path, &o));
    page p = {.file = o.file, .process = process};
    const bpt_status status = write_all(&p, trace);
    bpt_json_free(&p.json);
    return close_output(&o, status);
}

bpt_status bpt_trace_check_place(const char *path) {
    char begin[sizeof head - 1];
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return BPT_OK;
    FILE *file = fopen(path, "r");
    if (!file) return bpt_fail_write(errno, "read", path);
    const size_t n = fread(begin, 1, sizeof begin, file);
    fclose(file);
    if (n == sizeof begin && memcmp(begin, head, n) == 0) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EEXIST, "%s exists already and is no trace", path);
    bpt_hint("name another file for the trace");
    return status;
}

/* Appends the events of one file. */
static bpt_status append(page *p, const char *path) {
    char *text;
    size_t size;
    BPT_TRY(bpt_file_read(path, SIZE_MAX, &text, &size));
    const size_t ends = sizeof head - 1 + sizeof tail - 1;
    bpt_status status = BPT_OK;
    if (size < ends || memcmp(text, head, sizeof head - 1) != 0 ||
        memcmp(text + size - (sizeof tail - 1), tail, sizeof tail - 1) != 0)
        status = bpt_fail(BPT_EDATA, "%s is no trace", path);
    if (status == BPT_OK) {
        if (p->has_events) fputs(",\n", p->file);
        (void)fwrite(text + sizeof head - 1, 1, size - ends, p->file);
        p->has_events = true;
    }
    bpt_free(text);
    return status;
}

static bpt_status append_all(page *p, const char *const *paths, size_t n_paths, size_t *n_joined) {
    fputs(head, p->file);
    for (size_t i = 0; i < n_paths; i++) {
        const bpt_status status = append(p, paths[i]);
        if (status == BPT_ENOENT) continue;
        BPT_TRY(status);
        ++*n_joined;
    }
    fputs(tail, p->file);
    return BPT_OK;
}

bpt_status bpt_trace_join(const char *const *paths, size_t n_paths, const char *path,
                          size_t *n_joined) {
    output o;
    BPT_TRY(bpt_trace_check_place(path));
    BPT_TRY(open_output(path, paths[0], &o));
    page p = {.file = o.file};
    *n_joined = 0;
    BPT_TRY(close_output(&o, append_all(&p, paths, n_paths, n_joined)));
    for (size_t i = 0; i < n_paths; i++) (void)unlink(paths[i]);
    return BPT_OK;
}
