/* How a split comes to be, in the order of the file: the staging database and the switch (what runs
 * inside transactions), records into values and values into chunks, begin and end. */
#include "storage/writer.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/catalog.h"
#include "storage/directory.h"
#include "storage/draft.h"
#include "storage/environment.h"
#include "storage/statistics.h"
#include "storage/value.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16 * 1024 * 1024 }; /* of values to a transaction */

struct bpt_writer {
    char *path;
    int lock;     /* open file that holds the writer lock, -1 for none */
    bool created; /* the directory: remove it if nothing comes of it */
    bool committed;
    MDB_env *env;
    bpt__catalog *catalog; /* as it was before */
    MDB_dbi staging;
    bool staged; /* the staging database exists */

    bpt__draft draft; /* the split to be */
    bpt__statistics statistics;
    uint64_t database_id;

    size_t record_bytes;
    size_t page_bytes;
    uint8_t *chunk; /* values, one after another; the value under way is the last */
    size_t chunk_bytes;
    size_t chunk_values;
    size_t *ends;      /* of the sealed values in the chunk, shape [chunk_values] */
    size_t n_sealed;   /* whole values in the chunk */
    uint32_t n_open;   /* records in the value under way */
    uint32_t n_values; /* stored in earlier chunks */
};

static bpt_status read_catalog(bpt_writer *w) {
    MDB_txn *txn;
    const int code = mdb_txn_begin(w->env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", w->path);
    const bpt_status status = bpt__catalog_read(txn, w->path, &w->catalog);
    mdb_txn_abort(txn);
    return bpt__environment_settle(w->env, status);
}

/* ---- transactions ---- */

/* The body of a write transaction. Sets *code to LMDB's where LMDB is what failed. */
typedef bpt_status (*txn_body)(bpt_writer *w, MDB_txn *txn, int *code);

static bpt_status grow_map(bpt_writer *w) {
    MDB_envinfo info;
    mdb_env_info(w->env, &info);
    const size_t need = 2 * w->chunk_bytes + (1 << 20);
    const size_t limit = (size_t)1
                         << 30; /* double up to this, then add it: page_walk.c relies on it */
    const size_t step = info.me_mapsize < limit ? info.me_mapsize : limit;
    size_t size = info.me_mapsize + (step > need ? step : need);
    size = (size + w->page_bytes - 1) / w->page_bytes * w->page_bytes;
    const int code = mdb_env_set_mapsize(w->env, size);
    if (code != 0) return bpt__lmdb_fail(code, "enlarge the map of", w->path);
    bpt_debug("map of %s grown to %zu bytes", w->path, size);
    return BPT_OK;
}

static bpt_status write_failure(const bpt_writer *w, int code) {
    BPT_TRY(bpt__environment_settle(w->env, BPT_OK));
    const size_t need = w->chunk_bytes + (1 << 20);
    const bpt_status status = bpt__environment_unwritten(w->env, w->path, need, code);
    if (status == BPT_ENOSPC)
        bpt_hint("make room and run this again; the splits that were there are unharmed");
    return status;
}

/* Runs a body in a transaction, again with a larger map where the map is too small. */
static bpt_status in_transaction(bpt_writer *w, txn_body body) {
    for (;;) {
        MDB_txn *txn;
        int code = mdb_txn_begin(w->env, NULL, 0, &txn);
        if (code != 0) return write_failure(w, code);
        bpt_status status = bpt__environment_settle(w->env, BPT_OK);
        if (status == BPT_OK) status = body(w, txn, &code);
        if (code == 0) status = bpt__environment_settle(w->env, status);
        if (status == BPT_OK && code == 0)
            code = mdb_txn_commit(txn);
        else
            mdb_txn_abort(txn);
        BPT_TRY(status);
        if (code == 0) return BPT_OK;
        if (code != MDB_MAP_FULL) return write_failure(w, code);
        BPT_TRY(grow_map(w));
    }
}

static int drop_database(MDB_txn *txn, const char *name) {
    MDB_dbi dbi;
    const int code = mdb_dbi_open(txn, name, 0, &dbi);
    if (code == MDB_NOTFOUND) return 0;
    return code == 0 ? mdb_drop(txn, dbi, 1) : code;
}

static bool is_in_use(const bpt_writer *w, const char *name, size_t length) {
    if (length == strlen(BPT__META) && memcmp(name, BPT__META, length) == 0) return true;
    for (size_t s = 0; s < bpt__catalog_info(w->catalog)->n_splits; s++) {
        const char *database = bpt__catalog_location(w->catalog, s)->database;
        if (length == strlen(database) && memcmp(name, database, length) == 0) return true;
    }
    return false;
}

/* Drops one database that belongs to no split: what a killed writer left. *found: there was one. */
static bpt_status drop_leftover(bpt_writer *w, MDB_txn *txn, bool *found, int *code) {
    MDB_dbi root;
    MDB_cursor *cursor;
    MDB_val key, value;
    *found = false;
    *code = mdb_dbi_open(txn, NULL, 0, &root);
    if (*code == 0) *code = mdb_cursor_open(txn, root, &cursor);
    if (*code != 0) return BPT_OK;
    char *name = NULL;
    bpt_status status = BPT_OK;
    for (MDB_cursor_op op = MDB_FIRST; !name; op = MDB_NEXT) {
        *code = mdb_cursor_get(cursor, &key, &value, op);
        if (*code != 0) break;
        if (is_in_use(w, key.mv_data, key.mv_size)) continue;
        BPT_TRY_GOTO(status, bpt_strf(&name, "%.*s", (int)key.mv_size, (char *)key.mv_data), done);
    }
    if (*code == MDB_NOTFOUND) *code = 0;
done:
    mdb_cursor_close(cursor);
    if (name) {
        bpt_info("dropping %s, which an interrupted ingestion left in %s", name, w->path);
        *found = true;
        *code = drop_database(txn, name);
    }
    bpt_free(name);
    return status;
}

static bpt_status begin_staging(bpt_writer *w, MDB_txn *txn, int *code) {
    MDB_dbi meta;
    *code = mdb_dbi_open(txn, BPT__META, MDB_CREATE, &meta);
    for (bool found = true; found && *code == 0;) BPT_TRY(drop_leftover(w, txn, &found, code));
    if (*code == 0) *code = mdb_dbi_open(txn, w->draft.location.database, MDB_CREATE, &w->staging);
    return BPT_OK;
}

static bpt_status drop_staging(bpt_writer *w, MDB_txn *txn, int *code) {
    *code = mdb_drop(txn, w->staging, 1);
    return BPT_OK;
}

static bpt_status store_chunk(bpt_writer *w, MDB_txn *txn, int *code) {
    for (size_t i = 0; i < w->n_sealed && *code == 0; i++) {
        uint8_t name[BPT__VALUE_KEY];
        bpt__value_key(w->n_values + (uint32_t)i, name);
        const size_t begin = i > 0 ? w->ends[i - 1] : 0;
        MDB_val key = {sizeof name, name}, value = {w->ends[i] - begin, w->chunk + begin};
        *code = mdb_put(txn, w->staging, &key, &value, MDB_APPEND);
    }
    return BPT_OK;
}

static bpt_status switch_over(bpt_writer *w, MDB_txn *txn, int *code) {
    const bpt_split *replaced = bpt__catalog_find(w->catalog, w->draft.split.name);
    if (replaced)
        *code = drop_database(txn, bpt__catalog_location(w->catalog, replaced->number)->database);
    if (*code != 0) return BPT_OK;
    return bpt__catalog_write(txn, &w->draft.info, &w->draft.split, &w->draft.location, code);
}

/* ---- records ---- */

static bpt_status flush_chunk(bpt_writer *w) {
    if (w->n_sealed == 0) return BPT_OK;
    BPT_TRY(in_transaction(w, store_chunk));
    w->n_values += (uint32_t)w->n_sealed;
    w->n_sealed = 0;
    return BPT_OK;
}

/* @return where the value under way begins in the chunk */
static size_t open_at(const bpt_writer *w) {
    return w->n_sealed > 0 ? w->ends[w->n_sealed - 1] : 0;
}

/* Ends a value whose labels and records are in place. */
static void seal(bpt_writer *w, uint32_t n, size_t record_bytes) {
    uint8_t *value = w->chunk + open_at(w);
    const size_t used = bpt__value_bytes(record_bytes, n);
    const size_t size = bpt__value_padded(used, w->page_bytes);
    const uint64_t v = (uint64_t)w->n_values + w->n_sealed;
    memset(value + used, 0, size - used);
    bpt__value_seal(value, size,
                    &(bpt__value_place){.database = w->database_id,
                                        .first = v * w->draft.location.pack,
                                        .n = n,
                                        .record_bytes = (uint32_t)record_bytes});
    w->ends[w->n_sealed] = open_at(w) + size;
    w->n_sealed++;
}

/* Ends the value under way. One that is not full is moved together and is the split's last. */
static bpt_status seal_value(bpt_writer *w) {
    const uint32_t n = w->n_open, pack = w->draft.location.pack;
    uint8_t *value = w->chunk + open_at(w);
    if (n < pack)
        memmove((void *)(uintptr_t)bpt__value_pixels(value, w->record_bytes, n, 0),
                bpt__value_pixels(value, w->record_bytes, pack, 0), n * w->record_bytes);
    seal(w, n, w->record_bytes);
    w->n_open = 0;
    return w->n_sealed == w->chunk_values ? flush_chunk(w) : BPT_OK;
}

static bpt_status check_label(const bpt_writer *w, uint32_t label) {
    if (label >= w->draft.info.n_classes)
        return bpt_fail(BPT_EDATA, "image %llu has label %u, but there are %u classes (0 to %u)",
                        (unsigned long long)w->statistics.count, label, w->draft.info.n_classes,
                        w->draft.info.n_classes - 1);
    if (w->statistics.count == UINT32_MAX)
        return bpt_fail(BPT_EFULL, "a split holds at most %u images", UINT32_MAX);
    return BPT_OK;
}

static void put_label(uint8_t *value, size_t k, uint32_t label) {
    const uint16_t stored = htole16((uint16_t)label);
    memcpy(value + BPT__VALUE_HEADER + k * sizeof stored, &stored, sizeof stored);
}

bpt_status bpt_writer_append(bpt_writer *w, const uint8_t *pixels, uint32_t label) {
    assert(!w->draft.info.encoded);
    BPT_TRY(check_label(w, label));
    uint8_t *value = w->chunk + open_at(w);
    put_label(value, w->n_open, label);
    memcpy((void *)(uintptr_t)bpt__value_pixels(value, w->record_bytes, w->draft.location.pack,
                                                w->n_open),
           pixels, w->record_bytes);
    bpt__statistics_add(&w->statistics, pixels, label);
    return ++w->n_open == w->draft.location.pack ? seal_value(w) : BPT_OK;
}

/* ---- encoded records: one to a value ---- */

static void widen_extent(bpt_extent *e, const bpt_record *r, bool first) {
    const uint64_t pixels = (uint64_t)r->H * r->W;
    if (first || r->H < e->least_H) e->least_H = r->H;
    if (first || r->W < e->least_W) e->least_W = r->W;
    if (r->H > e->most_H) e->most_H = r->H;
    if (r->W > e->most_W) e->most_W = r->W;
    if (pixels > e->most_pixels) e->most_pixels = pixels;
    e->pixels += pixels;
    e->bytes += r->size;
}

/* Makes room in the chunk for a value. */
static bpt_status make_room(bpt_writer *w, size_t size) {
    if (w->n_sealed == w->chunk_values || (w->n_sealed > 0 && size > w->chunk_bytes - open_at(w)))
        BPT_TRY(flush_chunk(w));
    return BPT_GROW("write buffer", size, &w->chunk, &w->chunk_bytes);
}

bpt_status bpt_writer_append_record(bpt_writer *w, const bpt_record *record, uint32_t label) {
    assert(w->draft.info.encoded);
    const uint32_t C = w->draft.info.C;
    const size_t bytes = bpt__record_bytes(record, C);
    BPT_TRY(check_label(w, label));
    BPT_TRY(make_room(w, bpt__value_padded(bpt__value_bytes(bytes, 1), w->page_bytes)));
    uint8_t *value = w->chunk + open_at(w);
    put_label(value, 0, label);
    bpt__record_write(record, C, (uint8_t *)(uintptr_t)bpt__value_pixels(value, bytes, 1, 0));
    seal(w, 1, bytes);
    widen_extent(&w->draft.split.extent, record, w->statistics.count == 0);
    bpt__statistics_add_sums(&w->statistics, (uint64_t)record->H * record->W, record->sum,
                             record->square, label);
    return BPT_OK;
}

/* ---- begin and end ---- */

static bpt_status plan_values(bpt_writer *w) {
    MDB_stat stat;
    mdb_env_stat(w->env, &stat);
    w->page_bytes = stat.ms_psize;
    if (w->draft.info.encoded) {
        w->draft.location.pack = 1;
        w->chunk_bytes = CHUNK_BYTES;
        w->chunk_values = CHUNK_BYTES / w->page_bytes; /* none has less than a page */
    } else {
        w->record_bytes = (size_t)w->draft.info.C * w->draft.info.H * w->draft.info.W;
        w->draft.location.pack = bpt__value_pack(w->record_bytes, w->page_bytes);
        const size_t value_bytes = bpt__value_padded(
            bpt__value_bytes(w->record_bytes, w->draft.location.pack), w->page_bytes);
        w->chunk_values = CHUNK_BYTES / value_bytes;
        if (w->chunk_values == 0) w->chunk_values = 1;
        BPT_TRY(bpt_size_multiply(w->chunk_values, value_bytes, &w->chunk_bytes));
    }
    BPT_TRY(BPT_NEW("ends of values", w->chunk_values, &w->ends));
    return BPT_NEW("write buffer", w->chunk_bytes, &w->chunk);
}

static bpt_status open_steps(bpt_writer *w, const char *path, const bpt_writer_options *o) {
    BPT_TRY(bpt_strdup(path, &w->path));
    bool created;
    BPT_TRY(bpt__directory_lock(&bpt__dataset_files, path, &w->lock, &created));
    w->created = created; /* known only now: what somebody else is filling is not ours to remove */
    BPT_TRY(bpt__environment_write(&bpt__dataset_files, path, &w->env));
    BPT_TRY(read_catalog(w));
    BPT_TRY(bpt__draft_make(w->catalog, o, &w->draft));
    w->database_id = bpt__database_id(w->draft.location.database);
    BPT_TRY(bpt__statistics_init(&w->statistics, o->C,
                                 w->draft.info.encoded ? 0 : (size_t)o->H * o->W,
                                 w->draft.info.n_classes));
    BPT_TRY(plan_values(w));
    /* A chunk's head page may reach the disk late: losing the last chunk in a power cut loses
     * nothing that was promised. The switch is synchronous again. */
    mdb_env_set_flags(w->env, MDB_NOMETASYNC, 1);
    BPT_TRY(in_transaction(w, begin_staging));
    w->staged = true;
    return BPT_OK;
}

bpt_status bpt_writer_open(const char *path, const bpt_writer_options *options, bpt_writer **out) {
    BPT_TRY(bpt__draft_check(options));
    bpt_writer *w;
    BPT_TRY(BPT_NEW("writer", 1, &w));
    w->lock = -1;
    const bpt_status status = open_steps(w, path, options);
    if (status == BPT_OK) {
        *out = w;
        return BPT_OK;
    }
    bpt_writer_close(w);
    return status;
}

static bpt_status sync_directories(const bpt_writer *w) {
    char *parent;
    BPT_TRY(bpt_dir_sync(w->path));
    BPT_TRY(bpt_strf(&parent, "%s/..", w->path));
    const bpt_status status = bpt_dir_sync(parent);
    bpt_free(parent);
    return status;
}

bpt_status bpt_writer_commit(bpt_writer *w) {
    if (w->statistics.count == 0)
        return bpt_fail(BPT_EDATA, "split %s would have no images", w->draft.split.name);
    if (w->n_open > 0) BPT_TRY(seal_value(w));
    BPT_TRY(flush_chunk(w));
    double *mean = NULL, *std = NULL;
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("means", w->draft.info.C, &mean), done);
    BPT_TRY_GOTO(status, BPT_NEW("deviations", w->draft.info.C, &std), done);
    bpt__statistics_finish(&w->statistics, mean, std);
    w->draft.split.count = (uint32_t)w->statistics.count;
    w->draft.split.per_class = w->statistics.per_class;
    w->draft.split.mean = mean;
    w->draft.split.std = std;
    if (w->created) BPT_TRY_GOTO(status, sync_directories(w), done);
    mdb_env_set_flags(w->env, MDB_NOMETASYNC, 0);
    BPT_TRY_GOTO(status, in_transaction(w, switch_over), done);
    w->committed = true;
done:
    bpt_free(mean);
    bpt_free(std);
    return status;
}

/* Removes what a writer has made where there was no dataset before. */
static void remove_beginnings(const bpt_writer *w) {
    if (w->created) {
        bpt_dir_remove(w->path);
        return;
    }
    static const char *const files[] = {"data.mdb", "lock.mdb"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *file;
        if (bpt_strf(&file, "%s/%s", w->path, files[i]) != BPT_OK) return;
        unlink(file);
        bpt_free(file);
    }
}

void bpt_writer_close(bpt_writer *w) {
    if (!w) return;
    bpt_error error; /* what led here, not what happens on the way out */
    bpt_error_get(&error);
    const bool was_empty = w->created || (w->catalog && bpt__catalog_info(w->catalog)->format == 0);
    /* Where even this fails (a full disk), the next writer drops the staging database. */
    if (w->staged && !w->committed && !was_empty && !bpt__environment_lost(w->env))
        in_transaction(w, drop_staging);
    bpt__environment_close(w->env, NULL);
    if (!w->committed && was_empty) remove_beginnings(w);
    bpt_error_put(&error);
    if (w->lock >= 0) close(w->lock);
    bpt__statistics_free(&w->statistics);
    bpt__catalog_free(w->catalog);
    bpt__draft_free(&w->draft);
    bpt_free(w->chunk);
    bpt_free(w->ends);
    bpt_free(w->path);
    bpt_free(w);
}
