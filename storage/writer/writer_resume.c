/* Going on with what another writer left. */
#include "base/file.h"
#include "base/memory.h"
#include "storage/dataset/value.h"
#include "storage/environment/environment.h"
#include "storage/writer/terms.h"
#include "storage/writer/writer_private.h"

#include <sys/stat.h>

#include <stdint.h>
#include <string.h>

/* @param[out] head of the journal; its .database is "" where there is nothing to go on with */
static bpt_status find_staged(bpt_writer *w, bpt__journal_head *head) {
    MDB_txn *txn;
    MDB_dbi journal, records;
    MDB_stat stat;
    bool found = false;
    int code = mdb_txn_begin(w->env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", w->path);
    code = bpt__journal_find(txn, head, &journal, &found);
    if (code == 0 && found) code = mdb_dbi_open(txn, head->database, 0, &records);
    if (code == 0 && found) code = mdb_stat(txn, records, &stat);
    if (code == MDB_NOTFOUND || (code == 0 && found && stat.ms_entries == 0)) {
        found = false;
        code = 0;
    }
    mdb_txn_abort(txn);
    if (!found) head->database[0] = '\0';
    const bpt_status status = code == 0 ? BPT_OK : bpt__lmdb_fail(code, "read", w->path);
    return bpt__environment_settle(w->env, status);
}

static bpt_status open_staged(bpt_writer *w, MDB_txn *txn, int *code) {
    *code = mdb_dbi_open(txn, BPT__JOURNAL, 0, &w->journal);
    if (*code == 0) *code = mdb_dbi_open(txn, w->split.draft.database, 0, &w->staging);
    return BPT_OK;
}

static bpt_status damaged(const bpt_writer *w, const char *what) {
    const bpt_status status =
        bpt_fail(BPT_ECORRUPT, "what an ingestion that was stopped left of split %s in %s: %s",
                 w->split.draft.split.name, w->path, what);
    bpt_hint("leave out --resume to begin anew");
    return status;
}

/* Counts the records of a stored value in. */
static bpt_status take_value(bpt_writer *w, const MDB_val *value) {
    const uint8_t *data = value->mv_data;
    const uint32_t pack = w->split.draft.location->pack, C = w->split.draft.info.C;
    if (value->mv_size < BPT__VALUE_HEADER) return damaged(w, "a value is cut short");
    const uint32_t n = bpt__value_count(data);
    const size_t bytes =
        w->split.draft.info.encoded ? bpt__value_record_bytes(data) : w->record_bytes;
    const bpt__value_place place = {.database = w->database_id,
                                    .first = (uint64_t)w->n_stored * pack,
                                    .n = n,
                                    .record_bytes = (uint32_t)bytes};
    if (n == 0 || n > pack || w->ended || !bpt__value_intact(data, value->mv_size, &place))
        return damaged(w, "checksum mismatch");
    for (uint32_t k = 0; k < n; k++) {
        const uint8_t *pixels = bpt__value_pixels(data, bytes, n, k);
        const uint32_t label = bpt__value_label(data, k);
        bpt_record record;
        if (label >= w->split.draft.info.n_classes) return damaged(w, "a label is out of range");
        if (!w->split.draft.info.encoded)
            bpt__statistics_add(&w->split.statistics, pixels, label);
        else if (bpt__record_read(pixels, bytes, C, &record))
            bpt__writer_count_record(w, &record, label);
        else
            return damaged(w, "it is no encoded image");
    }
    w->ended = n < pack;
    w->filling.first = ++w->n_stored;
    return BPT_OK;
}

static bpt_status take_values(bpt_writer *w, MDB_txn *txn) {
    MDB_cursor *cursor;
    MDB_val key, value;
    bpt_status status = BPT_OK;
    int code = mdb_cursor_open(txn, w->staging, &cursor);
    if (code != 0) return bpt__lmdb_fail(code, "read", w->path);
    code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    while (code == 0 && status == BPT_OK) {
        uint8_t expected[BPT__VALUE_KEY];
        bpt__value_key(w->n_stored, expected);
        const bool next =
            key.mv_size == sizeof expected && memcmp(key.mv_data, expected, sizeof expected) == 0;
        status = next ? take_value(w, &value) : damaged(w, "a value is missing");
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    if (status == BPT_OK && code != MDB_NOTFOUND) return bpt__lmdb_fail(code, "read", w->path);
    return status;
}

bpt_status bpt_writer_notes(bpt_writer *w, bpt_status (*take)(void *arg, const char *line),
                            void *arg) {
    MDB_txn *txn;
    uint64_t n;
    bpt__writer_rest(w);
    const int code = mdb_txn_begin(w->env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", w->path);
    const bpt_status status = bpt__notes_read(txn, w->journal, w->path, take, arg, &n);
    mdb_txn_abort(txn);
    return bpt__environment_settle(w->env, status);
}

static bpt_status take_staged(bpt_writer *w) {
    MDB_txn *txn;
    const int code = mdb_txn_begin(w->env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", w->path);
    bpt_status status = take_values(w, txn);
    if (status == BPT_OK)
        status = bpt__notes_read(txn, w->journal, w->path, NULL, NULL, &w->n_notes);
    mdb_txn_abort(txn);
    return bpt__environment_settle(w->env, status);
}

static bpt_status resume_steps(bpt_writer *w, const char *path, const bpt_writer_options *options) {
    const bpt__terms terms = {options->terms, options->origin};
    bpt__journal_head head;
    BPT_TRY(bpt__writer_open_dataset(w, path));
    BPT_TRY(find_staged(w, &head));
    if (!head.database[0]) return BPT_OK;
    w->found = true;
    bool known;
    BPT_TRY(bpt__terms_compare(w->lock, path, &terms, &known));
    if (!known) {
        w->found = false; /* another program's, or a power cut took them: for nobody */
        return BPT_OK;
    }
    bpt_writer_options o = *options;
    o.C = head.C;
    o.H = head.H;
    o.W = head.W;
    BPT_TRY(bpt__draft_check(&o));
    BPT_TRY(bpt__writer_plan(w, &o));
    if (strcmp(head.database, w->split.draft.database) != 0 ||
        head.pack != w->split.draft.location->pack)
        return damaged(w, "it does not belong to the dataset as it is now");
    bpt__writer_relax(w);
    BPT_TRY(bpt__writer_transact(w, open_staged));
    w->staged = true;
    return take_staged(w);
}

bpt_status bpt_writer_resume(const char *path, const bpt_writer_options *options,
                             bpt_writer **out) {
    *out = NULL;
    if (!options->terms || !options->origin || !bpt_path_exists(path)) return BPT_OK;
    bpt_writer *w;
    BPT_TRY(BPT_NEW("writer", 1, &w));
    w->lock = -1;
    const bpt_status status = resume_steps(w, path, options);
    if (status == BPT_OK && w->found)
        *out = w;
    else
        bpt_writer_close(w);
    return status;
}

uint64_t bpt_writer_position(const bpt_writer *w) {
    return bpt__writer_count(w) + w->n_notes;
}

/* The terms were written then, and not again. */
struct timespec bpt_writer_begun(const bpt_writer *w) {
    struct stat info;
    return fstat(w->lock, &info) == 0 ? info.st_mtim : (struct timespec){.tv_sec = INT64_MAX};
}

void bpt_writer_shape(const bpt_writer *w, uint32_t *C, uint32_t *H, uint32_t *W) {
    *C = w->split.draft.info.C;
    *H = w->split.draft.info.H;
    *W = w->split.draft.info.W;
}

void bpt_writer_discard(bpt_writer *w) {
    w->discarded = !w->found;
}

uint64_t bpt_writer_kept(bpt_writer *w) {
    if (!w->resumable || w->committed || w->discarded) return 0;
    bpt__writer_rest(w);
    const uint64_t full = (uint64_t)w->n_stored * w->split.draft.location->pack;
    return full < bpt__writer_count(w) ? full : bpt__writer_count(w);
}
