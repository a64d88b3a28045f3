/* What a writer does inside transactions: the staging database and the switch. */
#include "base/log.h"
#include "base/memory.h"
#include "storage/dataset/value.h"
#include "storage/environment/environment.h"
#include "storage/writer/writer_private.h"

#include <string.h>

/* @return bytes that a transaction writes, but for pages of LMDB's own: those of the last chunk,
 * and of a whole one before there is any */
static size_t transaction_bytes(const bpt_writer *w) {
    const bpt__chunk *c = &w->storing;
    const size_t bytes = (c->n > 0 ? c->ends[c->n - 1] : 0) + c->notes.n_text;
    return bytes > w->chunk_bytes ? bytes : w->chunk_bytes;
}

static bpt_status grow_map(bpt_writer *w) {
    MDB_envinfo info;
    mdb_env_info(w->env, &info);
    const size_t need = 2 * transaction_bytes(w) + (1 << 20);
    const size_t limit = (size_t)1
                         << 30; /* double up to this, then add it: page_walk.c relies on it */
    const size_t step = info.me_mapsize < limit ? info.me_mapsize : limit;
    size_t size = info.me_mapsize + (step > need ? step : need);
    size = (size + w->page_bytes - 1) / w->page_bytes * w->page_bytes;
    w->mapped = false;
    BPT_TRY(bpt__environment_map(w->env, w->path, size));
    w->mapped = true;
    bpt_debug("map of %s grown to %zu bytes", w->path, size);
    return BPT_OK;
}

static bpt_status write_failure(const bpt_writer *w, int code) {
    BPT_TRY(bpt__environment_settle(w->env, BPT_OK));
    const size_t need = transaction_bytes(w) + (1 << 20);
    const bpt_status status = bpt__environment_unwritten(w->env, w->path, need, code);
    if (status == BPT_ENOSPC)
        bpt_hint("make room and run this again; the splits that were there are unharmed");
    return status;
}

/* Runs a body in a transaction, again with a larger map where the map is too small. */
bpt_status bpt__writer_transact(bpt_writer *w, bpt__writer_body body) {
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

/* By its name: to drop one closes it, and the transaction may have to be run again. */
static int drop_database(MDB_txn *txn, const char *name) {
    MDB_dbi dbi;
    const int code = mdb_dbi_open(txn, name, 0, &dbi);
    if (code == MDB_NOTFOUND) return 0;
    return code == 0 ? mdb_drop(txn, dbi, 1) : code;
}

static bool is_in_use(const bpt_writer *w, const char *name, size_t length) {
    if (length == strlen(BPT__META) && memcmp(name, BPT__META, length) == 0) return true;
    const bpt_dataset_info *info = bpt__catalog_info(w->catalog);
    for (size_t s = 0; s < info->n_splits; s++)
        for (size_t p = 0; p < info->splits[s].n_intakes; p++) {
            const char *database = bpt__catalog_location(w->catalog, s, p)->database;
            if (length == strlen(database) && memcmp(name, database, length) == 0) return true;
        }
    return false;
}

/* Says what is lost, and that it need not have been. */
static void tell_of_leftover(const bpt_writer *w, const char *name, bool has_journal) {
    if (strcmp(name, BPT__JOURNAL) == 0) return;
    if (has_journal)
        bpt_warn(
            "dropping %s, which an interrupted ingestion left in %s; --resume goes on with such",
            name, w->path);
    else
        bpt_info("dropping %s, which an interrupted ingestion left in %s", name, w->path);
}

/* Names are texts, as writers make them; another is no leftover but damage, which page_walk.h
 * cannot see. */
static bpt_status copy_name(const bpt_writer *w, const MDB_val *key, char **name) {
    if (memchr(key->mv_data, '\0', key->mv_size))
        return bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: the name of a database in it",
                        w->path);
    return bpt_strf(name, "%.*s", (int)key->mv_size, (char *)key->mv_data);
}

/* Drops one database that belongs to no split: what a killed writer left. *found: there was one. */
static bpt_status drop_leftover(bpt_writer *w, MDB_txn *txn, bool has_journal, bool *found,
                                int *code) {
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
        BPT_TRY_GOTO(status, copy_name(w, &key, &name), done);
    }
    if (*code == MDB_NOTFOUND) *code = 0;
done:
    mdb_cursor_close(cursor);
    if (name) {
        tell_of_leftover(w, name, has_journal);
        *found = true;
        *code = drop_database(txn, name);
    }
    bpt_free(name);
    return status;
}

/* In a transaction of its own: LMDB uses the pages again in the one after the next, which is the
 * first that needs many. */
bpt_status bpt__writer_drop_leftovers(bpt_writer *w, MDB_txn *txn, int *code) {
    MDB_dbi journal;
    *code = mdb_dbi_open(txn, BPT__JOURNAL, 0, &journal);
    const bool has_journal = *code == 0;
    if (*code == MDB_NOTFOUND) *code = 0;
    for (bool found = true; found && *code == 0;)
        BPT_TRY(drop_leftover(w, txn, has_journal, &found, code));
    return BPT_OK;
}

bpt_status bpt__writer_begin_staging(bpt_writer *w, MDB_txn *txn, int *code) {
    MDB_dbi meta;
    *code = mdb_dbi_open(txn, BPT__META, MDB_CREATE, &meta);
    if (*code == 0) *code = mdb_dbi_open(txn, w->split.draft.database, MDB_CREATE, &w->staging);
    if (*code != 0 || !w->resumable) return BPT_OK;
    const bpt_dataset_info *info = &w->split.draft.info;
    bpt__journal_head head = {
        .C = info->C, .H = info->H, .W = info->W, .pack = w->split.draft.location->pack};
    memcpy(head.database, w->split.draft.database,
           strlen(w->split.draft.database)); /* there is room */
    *code = bpt__journal_create(txn, &head, &w->journal);
    return BPT_OK;
}

bpt_status bpt__writer_drop_staging(bpt_writer *w, MDB_txn *txn, int *code) {
    *code = 0;
    for (size_t i = 0; i < w->n_whole && *code == 0; i++)
        *code = drop_database(txn, w->whole[i].draft.database);
    if (*code == 0 && w->split.draft.database) *code = drop_database(txn, w->split.draft.database);
    if (*code == 0) *code = drop_database(txn, BPT__JOURNAL);
    return BPT_OK;
}

bpt_status bpt__writer_store_chunk(bpt_writer *w, MDB_txn *txn, int *code) {
    const bpt__chunk *c = &w->storing;
    for (size_t i = 0; i < c->n && *code == 0; i++) {
        uint8_t name[BPT__VALUE_KEY];
        bpt__value_key(c->first + (uint32_t)i, name);
        const size_t begin = i > 0 ? c->ends[i - 1] : 0;
        MDB_val key = {sizeof name, name}, value = {c->ends[i] - begin, c->bytes + begin};
        *code = mdb_put(txn, w->staging, &key, &value, MDB_APPEND);
    }
    if (*code == 0) *code = bpt__notes_store(&c->notes, txn, w->journal);
    return BPT_OK;
}

/* Drops the databases of the split that is replaced. */
static int drop_replaced(bpt_writer *w, MDB_txn *txn, const bpt__draft *draft) {
    const bpt_split *there = bpt__catalog_find(w->catalog, draft->split.name);
    int code = 0;
    if (!there || draft->split.n_intakes > 1) return 0;
    for (size_t p = 0; p < there->n_intakes && code == 0; p++)
        code = drop_database(txn, bpt__catalog_location(w->catalog, there->number, p)->database);
    return code;
}

static bpt_status show(bpt_writer *w, MDB_txn *txn, const bpt__new_split *s, int *code) {
    bpt_split split = s->draft.split;
    split.count = (uint32_t)s->statistics.count;
    *code = drop_replaced(w, txn, &s->draft);
    if (*code != 0) return BPT_OK;
    return bpt__catalog_write(txn, &s->draft.info, &split, s->draft.locations, code);
}

bpt_status bpt__writer_switch_over(bpt_writer *w, MDB_txn *txn, int *code) {
    *code = drop_database(txn, BPT__JOURNAL);
    for (size_t i = 0; i < w->n_whole && *code == 0; i++) BPT_TRY(show(w, txn, &w->whole[i], code));
    return *code == 0 ? show(w, txn, &w->split, code) : BPT_OK;
}
