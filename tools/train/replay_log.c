#include "tools/train/replay_log.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

typedef bpt_status (*line_fn)(const bpt_json_doc *doc, void *context);

/* Calls @p take for each line of a file of JSON objects. */
static bpt_status read_lines(const char *path, line_fn take, void *context) {
    char *text;
    size_t size;
    BPT_TRY(bpt_file_read(path, (size_t)4 << 30, &text, &size));
    bpt_status status = BPT_OK;
    for (char *line = text; status == BPT_OK && *line;) {
        const size_t length = strcspn(line, "\n");
        bpt_json_doc *doc;
        status = bpt_json_parse(path, line, length, &doc);
        if (status != BPT_OK) break;
        status = take(doc, context);
        bpt_json_doc_free(doc);
        line += length + (line[length] == '\n');
    }
    bpt_free(text);
    return status;
}

/* ---- steps of a worker ---- */

typedef struct {
    bpt_replay_worker *worker;
    uint32_t n_workers;
} worker_reader;

static bpt_status take_push(const bpt_json_doc *d, bpt_replay_worker *w) {
    const bpt_json *o = bpt_json_root(d);
    bpt_replay_push push;
    BPT_TRY(bpt_json_get_u64(d, o, "pushed_at", 0, UINT64_MAX, &push.pushed_at));
    BPT_TRY(bpt_json_get_u64(d, o, "landed_at", push.pushed_at, UINT64_MAX, &push.landed_at));
    BPT_TRY(bpt_json_get_u64(d, o, "progress", 0, UINT64_MAX, &push.progress));
    BPT_TRY(bpt_json_get_bool(d, o, "met", &push.met));
    BPT_TRY(BPT_GROW("pushes", w->n_pushes + 1, &w->pushes, &w->pushes_capacity));
    w->pushes[w->n_pushes++] = push;
    return BPT_OK;
}

static bpt_status take_pass(const bpt_json_doc *d, bpt_replay_worker *w) {
    const bpt_json *o = bpt_json_root(d);
    uint64_t pass, rounds;
    BPT_TRY(bpt_json_get_u64(d, o, "pass", 0, UINT64_MAX, &pass));
    BPT_TRY(bpt_json_get_u64(d, o, "rounds", 1, UINT32_MAX, &rounds));
    if (pass != w->n_passes)
        return bpt_fail(BPT_EUSAGE,
                        "the step log lacks pass %zu: a share smaller than a batch, or a "
                        "resumed run, cannot be replayed",
                        w->n_passes);
    BPT_TRY(BPT_GROW("passes", w->n_passes + 1, &w->pass_rounds, &w->passes_capacity));
    w->pass_rounds[w->n_passes++] = (uint32_t)rounds;
    return BPT_OK;
}

static bpt_status take_round(const bpt_json_doc *d, worker_reader *r) {
    bpt_replay_worker *w = r->worker;
    const bpt_json *count;
    const size_t first = w->n_rounds * r->n_workers;
    BPT_TRY(bpt_json_get_array(d, bpt_json_root(d), "count", &count));
    if (bpt_json_size(count) != r->n_workers)
        return bpt_fail(BPT_EDATA, "the step log speaks of %zu ranks, there are logs of %" PRIu32,
                        bpt_json_size(count), r->n_workers);
    BPT_TRY(BPT_GROW("rounds", first + r->n_workers, &w->round_counts, &w->counts_capacity));
    for (uint32_t i = 0; i < r->n_workers; i++) {
        uint64_t n;
        BPT_TRY(bpt_json_get_u64(d, bpt_json_at(count, i), NULL, 0, UINT32_MAX, &n));
        w->round_counts[first + i] = (uint32_t)n;
    }
    w->n_rounds++;
    return BPT_OK;
}

static bpt_status take_step_line(const bpt_json_doc *doc, void *context) {
    worker_reader *r = context;
    const bpt_json *o = bpt_json_root(doc);
    if (bpt_json_find(o, "pushed_at")) return take_push(doc, r->worker);
    if (bpt_json_find(o, "pass")) return take_pass(doc, r->worker);
    return take_round(doc, r);
}

/* ---- updates of a shard ---- */

typedef struct {
    bpt_replay_shard *shard;
    uint32_t n_workers;
} shard_reader;

static bpt_status take_update_line(const bpt_json_doc *d, void *context) {
    shard_reader *r = context;
    bpt_replay_shard *s = r->shard;
    const bpt_json *o = bpt_json_root(d);
    bpt_replay_update u;
    uint64_t worker;
    double gamma, q;
    BPT_TRY(bpt_json_get_u64(d, o, "worker", 0, r->n_workers - 1, &worker));
    BPT_TRY(bpt_json_get_u64(d, o, "version", 1, UINT64_MAX, &u.version));
    BPT_TRY(bpt_json_get_u64(d, o, "seq", 1, UINT64_MAX, &u.seq));
    BPT_TRY(bpt_json_get_real(d, o, "gamma", &gamma));
    BPT_TRY(bpt_json_get_real(d, o, "q", &q));
    if (u.version != s->n + 1)
        return bpt_fail(BPT_EUSAGE,
                        "the update log lacks version %zu: a resumed run cannot be "
                        "replayed",
                        s->n + 1);
    u.worker = (uint32_t)worker;
    u.factor = (float)(gamma * q);
    BPT_TRY(BPT_GROW("updates", s->n + 1, &s->updates, &s->capacity));
    s->updates[s->n++] = u;
    return BPT_OK;
}

/* ---- a run ---- */

static bpt_status log_path(const char *run, const char *kind, uint32_t rank, char **path) {
    return bpt_strf(path, "%s/exchange/%s.rank-%" PRIu32 ".jsonl", run, kind, rank);
}

static bpt_status count_workers(const char *run, uint32_t *n) {
    for (*n = 0;; ++*n) {
        char *path;
        BPT_TRY(log_path(run, "steps", *n, &path));
        const bool exists = bpt_path_exists(path);
        bpt_free(path);
        if (!exists) break;
    }
    if (*n > 0) return BPT_OK;
    return bpt_fail(BPT_EUSAGE, "%s holds no step logs: only agwu runs can be replayed", run);
}

static bpt_status read_rank(const char *run, bpt_replay_logs *logs, uint32_t rank) {
    worker_reader reader = {&logs->workers[rank], logs->n_workers};
    shard_reader updates = {&logs->shards[rank], logs->n_workers};
    char *path;
    BPT_TRY(log_path(run, "steps", rank, &path));
    bpt_status status = read_lines(path, take_step_line, &reader);
    bpt_free(path);
    BPT_TRY(status);
    BPT_TRY(log_path(run, "updates", rank, &path));
    status = read_lines(path, take_update_line, &updates);
    bpt_free(path);
    return status;
}

bpt_status bpt_replay_logs_read(const char *run, bpt_replay_logs *logs) {
    *logs = (bpt_replay_logs){0};
    BPT_TRY(count_workers(run, &logs->n_workers));
    bpt_status status = BPT_NEW("replay workers", logs->n_workers, &logs->workers);
    if (status == BPT_OK) status = BPT_NEW("replay shards", logs->n_workers, &logs->shards);
    for (uint32_t r = 0; status == BPT_OK && r < logs->n_workers; r++)
        status = read_rank(run, logs, r);
    if (status != BPT_OK) bpt_replay_logs_free(logs);
    return status;
}

void bpt_replay_logs_free(bpt_replay_logs *logs) {
    for (uint32_t r = 0; r < logs->n_workers; r++) {
        if (logs->workers) {
            bpt_free(logs->workers[r].pushes);
            bpt_free(logs->workers[r].pass_rounds);
            bpt_free(logs->workers[r].round_counts);
        }
        if (logs->shards) bpt_free(logs->shards[r].updates);
    }
    bpt_free(logs->workers);
    bpt_free(logs->shards);
    *logs = (bpt_replay_logs){0};
}
