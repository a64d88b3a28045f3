#include "tools/train/replay/replay_log.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "outer/data/partition.h"
#include "tools/train/replay/replay_check.h"

#include <inttypes.h>
#include <string.h>

/* What the lines of one file are read into. */
typedef struct {
    const bpt_replay_facts *facts;
    bpt_replay_logs *logs;
    uint32_t rank;
    uint32_t shard; /* of updates: that rank hosted it */
    size_t line;
} reader;

typedef bpt_status (*line_fn)(reader *r, const bpt_json_doc *doc);

static bpt_status read_line(reader *r, const char *path, const char *text, size_t length,
                            line_fn take) {
    bpt_json_doc *doc;
    char *what;
    r->line++;
    BPT_TRY(bpt_strf(&what, "%s, line %zu", path, r->line));
    bpt_status status = bpt_json_parse(what, text, length, &doc);
    bpt_free(what);
    BPT_TRY(status);
    status = take(r, doc);
    bpt_json_doc_free(doc);
    return status;
}

/* Calls @p take for each line of a file of JSON objects. */
static bpt_status read_lines(reader *r, const char *path, line_fn take) {
    char *text;
    size_t size;
    BPT_TRY(bpt_file_read(path, (size_t)4 << 30, &text, &size));
    bpt_status status = BPT_OK;
    for (const char *line = text; status == BPT_OK && line < text + size;) {
        const size_t length = strcspn(line, "\n");
        status = read_line(r, path, line, length, take);
        line += length + 1;
    }
    bpt_free(text);
    return status;
}

static bpt_status name_line(const reader *r, const char *kind, bpt_status status) {
    bpt_error_record(status, "%s/exchange/%s.rank-%" PRIu32 ".jsonl, line %zu: %.400s",
                     r->facts->run, kind, r->rank, r->line, bpt_error_last()->text);
    return status;
}

/* Fields that are there are read one by one; this finds those that should not be there. */
static bpt_status count_fields(const reader *r, const char *kind, const bpt_json *o, size_t n) {
    if (bpt_json_size(o) == n) return BPT_OK;
    return name_line(r, kind,
                     bpt_fail(BPT_EDATA, "%zu fields instead of %zu", bpt_json_size(o), n));
}

/* ---- steps of a worker ---- */

/* A push is due as many steps after the one before as was decided when that one was answered, and
 * made no earlier than it was answered. One for a meeting comes as soon as the rank hears of it,
 * and is waited for at once; one that asks for a meeting comes when a signal does, and the next is
 * for that meeting. */
static bpt_status take_push(reader *r, const bpt_json_doc *d) {
    bpt_replay_worker *w = &r->logs->workers[r->rank];
    const bpt_json *o = bpt_json_root(d);
    bpt_replay_push push = {.line = r->line},
                    before = {.met = true, .every = r->facts->first_every};
    if (w->n_pushes > 0) before = w->pushes[w->n_pushes - 1];
    const uint64_t period = before.pushed_at + before.every;
    const uint64_t due = period > before.landed_at ? period : before.landed_at;
    const uint64_t next = before.met ? before.pushed_at + 1 : before.landed_at;
    BPT_TRY(bpt_json_get_bool(d, o, "met", &push.met));
    if (before.asks && !push.met)
        return name_line(r, "steps",
                         bpt_fail(BPT_EDATA, "\"met\" is false behind a push before its time"));
    BPT_TRY(bpt_json_get_u64(d, o, "pushed_at", next, due, &push.pushed_at));
    push.asks = !push.met && push.pushed_at < due;
    BPT_TRY(bpt_json_get_u64(d, o, "landed_at", push.pushed_at + !push.met,
                             push.met ? push.pushed_at : INT64_MAX, &push.landed_at));
    BPT_TRY(
        bpt_json_get_u64(d, o, "every", r->facts->least_every, r->facts->most_every, &push.every));
    BPT_TRY(bpt_json_get_u64(d, o, "progress", before.progress + r->facts->batch, INT64_MAX,
                             &push.progress));
    BPT_TRY(count_fields(r, "steps", o, 5));
    BPT_TRY(BPT_GROW("pushes", w->n_pushes + 1, &w->pushes, &w->pushes_capacity));
    w->pushes[w->n_pushes++] = push;
    return BPT_OK;
}

static bpt_status take_pass(reader *r, const bpt_json_doc *d) {
    bpt_replay_worker *w = &r->logs->workers[r->rank];
    const bpt_json *o = bpt_json_root(d);
    uint64_t pass, rounds;
    BPT_TRY(bpt_json_get_u64(d, o, "pass", 0, INT64_MAX, &pass));
    if (pass != w->n_passes)
        return name_line(r, "steps",
                         bpt_fail(BPT_EUSAGE,
                                  "\"pass\" is %" PRIu64
                                  " instead of %zu, as in a resumed run, which "
                                  "cannot be replayed",
                                  pass, w->n_passes));
    const uint32_t least = w->n_passes > 0 ? w->passes[w->n_passes - 1].rounds : 1;
    const uint32_t most = w->n_rounds > 0 ? (uint32_t)w->n_rounds : 1; /* that it has heard of */
    BPT_TRY(bpt_json_get_u64(d, o, "rounds", least, most, &rounds));
    BPT_TRY(count_fields(r, "steps", o, 2));
    BPT_TRY(BPT_GROW("passes", w->n_passes + 1, &w->passes, &w->passes_capacity));
    w->passes[w->n_passes++] = (bpt_replay_pass){.line = r->line, .rounds = (uint32_t)rounds};
    return BPT_OK;
}

static bpt_status read_held(reader *r, const bpt_json_doc *d, const bpt_json *held, uint32_t *to) {
    const uint32_t m = r->logs->n_workers;
    if (bpt_json_size(held) != m)
        return bpt_fail(BPT_EDATA, "\"held\" speaks of %zu ranks, there are logs of %" PRIu32,
                        bpt_json_size(held), m);
    for (uint32_t i = 0; i < m; i++) {
        uint64_t n;
        if (bpt_json_get_u64(d, bpt_json_at(held, i), NULL, 0, UINT32_MAX, &n) != BPT_OK)
            return bpt_fail(BPT_EDATA, "\"held\" has what is no count");
        to[i] = (uint32_t)n;
    }
    return BPT_OK;
}

static bpt_status take_held(reader *r, const bpt_json_doc *d, const bpt_json *json) {
    bpt_replay_worker *w = &r->logs->workers[r->rank];
    const bpt_replay_facts *f = r->facts;
    const uint32_t m = r->logs->n_workers;
    const size_t first = w->n_rounds * m;
    BPT_TRY(BPT_GROW("rounds", first + m, &w->held, &w->held_capacity));
    uint32_t *held = w->held + first;
    bpt_status status = read_held(r, d, json, held);
    if (status != BPT_OK) return name_line(r, "steps", status);
    status = bpt_partition_check_round(f->n_samples, f->n_rounds, (uint32_t)w->n_rounds,
                                       w->n_rounds > 0 ? held - m : NULL, held, m);
    if (status == BPT_OK) return BPT_OK;
    bpt_error_record(status, "\"held\": %.400s", bpt_error_last()->text);
    return name_line(r, "steps", status);
}

static bpt_status take_round(reader *r, const bpt_json_doc *d) {
    bpt_replay_worker *w = &r->logs->workers[r->rank];
    const bpt_json *o = bpt_json_root(d), *held;
    uint64_t round;
    if (w->n_rounds == r->facts->n_rounds && !r->facts->rebalances)
        return name_line(r, "steps",
                         bpt_fail(BPT_EDATA, "a \"round\" after the last of %zu", w->n_rounds));
    BPT_TRY(bpt_json_get_u64(d, o, "round", w->n_rounds, w->n_rounds, &round));
    BPT_TRY(bpt_json_get_array(d, o, "held", &held));
    BPT_TRY(count_fields(r, "steps", o, 2));
    BPT_TRY(take_held(r, d, held));
    BPT_TRY(BPT_GROW("rounds", w->n_rounds + 1, &w->round_lines, &w->round_lines_capacity));
    w->round_lines[w->n_rounds++] = r->line;
    return BPT_OK;
}

static bpt_status take_step_line(reader *r, const bpt_json_doc *doc) {
    const bpt_json *o = bpt_json_root(doc);
    r->logs->workers[r->rank].n_lines = r->line;
    if (bpt_json_find(o, "pass")) return take_pass(r, doc);
    if (bpt_json_find(o, "round")) return take_round(r, doc);
    return take_push(r, doc);
}

/* ---- updates of a shard ---- */

static bpt_status take_update_line(reader *r, const bpt_json_doc *d) {
    bpt_replay_shard *s = &r->logs->shards[r->shard];
    const bpt_json *o = bpt_json_root(d);
    bpt_replay_update u;
    uint64_t shard, worker, version;
    BPT_TRY(bpt_json_get_u64(d, o, "shard", r->shard, r->shard, &shard));
    BPT_TRY(bpt_json_get_u64(d, o, "version", 1, INT64_MAX, &version));
    if (version != s->n + 1)
        return name_line(r, "updates",
                         bpt_fail(BPT_EUSAGE,
                                  "\"version\" is %" PRIu64 " instead of %zu, as in a resumed run, "
                                  "which cannot be replayed",
                                  version, s->n + 1));
    BPT_TRY(bpt_json_get_u64(d, o, "worker", 0, r->logs->n_workers - 1, &worker));
    BPT_TRY(bpt_json_get_u64(d, o, "seq", 1, INT64_MAX, &u.seq));
    BPT_TRY(bpt_json_get_u64(d, o, "base", 0, s->n, &u.base));
    BPT_TRY(bpt_json_get_real(d, o, "gamma", &u.gamma));
    BPT_TRY(bpt_json_get_real(d, o, "q", &u.quality));
    BPT_TRY(bpt_json_get_u64(d, o, "staleness", 0, s->n, &u.staleness));
    BPT_TRY(bpt_json_get_u64(d, o, "lead", 0, r->facts->max_staleness, &u.lead));
    BPT_TRY(count_fields(r, "updates", o, 9));
    const double most = r->logs->n_workers * (1 + 1e-12); /* as far as one can divide */
    const bool right = r->facts->judged ? u.quality > 0 && u.quality <= most : u.quality == 1;
    if (!right)
        return name_line(r, "updates",
                         bpt_fail(BPT_EDATA, "\"q\" is %g: not %s", u.quality,
                                  r->facts->judged ? "a share of all qualities" : "1"));
    u.worker = (uint32_t)worker;
    BPT_TRY(BPT_GROW("updates", s->n + 1, &s->updates, &s->capacity));
    s->updates[s->n++] = u;
    return BPT_OK;
}

/* ---- a run ---- */

static bpt_status log_path(const char *run, const char *kind, uint32_t rank, char **path) {
    return bpt_strf(path, "%s/exchange/%s.rank-%" PRIu32 ".jsonl", run, kind, rank);
}

bpt_status bpt_replay_count_workers(const char *run, uint32_t *n) {
    for (*n = 0;; ++*n) {
        char *path;
        BPT_TRY(log_path(run, "steps", *n, &path));
        const bool exists = bpt_path_exists(path);
        bpt_free(path);
        if (!exists) break;
    }
    if (*n > 0) return BPT_OK;
    return bpt_fail(BPT_EUSAGE, "%s holds no step logs: only agwu and easgd runs can be replayed",
                    run);
}

static bpt_status read_log(reader *r, const char *kind, line_fn take) {
    char *path;
    BPT_TRY(log_path(r->facts->run, kind, r->rank, &path));
    const bpt_status status = read_lines(r, path, take);
    bpt_free(path);
    return status;
}

static bpt_status read_worker(const bpt_replay_facts *facts, bpt_replay_logs *logs, uint32_t rank) {
    reader steps = {.facts = facts, .logs = logs, .rank = rank};
    return read_log(&steps, "steps", take_step_line);
}

static bpt_status read_shard(const bpt_replay_facts *facts, bpt_replay_logs *logs, uint32_t shard) {
    reader updates = {
        .facts = facts, .logs = logs, .rank = logs->first_host + shard, .shard = shard};
    return read_log(&updates, "updates", take_update_line);
}

bpt_status bpt_replay_logs_read(const bpt_replay_facts *facts, uint32_t n_workers,
                                bpt_replay_logs *logs) {
    *logs = (bpt_replay_logs){
        .n_workers = n_workers,
        .n_shards = facts->n_servers ? facts->n_servers : n_workers,
        .first_host = facts->n_servers ? n_workers : 0,
    };
    bpt_status status = BPT_NEW("replay workers", n_workers, &logs->workers);
    if (status == BPT_OK) status = BPT_NEW("replay shards", logs->n_shards, &logs->shards);
    for (uint32_t r = 0; status == BPT_OK && r < n_workers; r++)
        status = read_worker(facts, logs, r);
    for (uint32_t s = 0; status == BPT_OK && s < logs->n_shards; s++)
        status = read_shard(facts, logs, s);
    if (status == BPT_OK) status = bpt_replay_logs_check(logs, facts);
    if (status != BPT_OK) bpt_replay_logs_free(logs);
    return status;
}

void bpt_replay_logs_free(bpt_replay_logs *logs) {
    for (uint32_t r = 0; r < logs->n_workers && logs->workers; r++) {
        bpt_free(logs->workers[r].pushes);
        bpt_free(logs->workers[r].passes);
        bpt_free(logs->workers[r].held);
        bpt_free(logs->workers[r].round_lines);
    }
    for (uint32_t s = 0; s < logs->n_shards && logs->shards; s++) bpt_free(logs->shards[s].updates);
    bpt_free(logs->workers);
    bpt_free(logs->shards);
    *logs = (bpt_replay_logs){0};
}
