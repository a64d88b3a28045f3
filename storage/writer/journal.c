#include "storage/writer/journal.h"

#include "base/checksum.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/environment/environment.h"

#include <endian.h>
#include <string.h>

/* The head, little-endian: checksum of all that follows; C, H, W, pack; the database's name. Its
 * key has another length than those of notes. */
enum { AT_SHAPE = 8, AT_NAME = 24, NOTE_KEY = 8 };

static char head_key[] = "head";

int bpt__journal_create(MDB_txn *txn, const bpt__journal_head *head, MDB_dbi *journal) {
    uint8_t bytes[AT_NAME + BPT__DATABASE_NAME];
    const uint32_t shape[] = {head->C, head->H, head->W, head->pack};
    const size_t length = strlen(head->database);
    uint8_t *at = bytes + AT_SHAPE;
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) at = bpt_put_u32(at, shape[i]);
    memcpy(at, head->database, length);
    bpt_put_u64(bytes, bpt_checksum(bytes + AT_SHAPE, AT_NAME - AT_SHAPE + length));
    MDB_val key = {sizeof head_key - 1, head_key}, value = {AT_NAME + length, bytes};
    const int code = mdb_dbi_open(txn, BPT__JOURNAL, MDB_CREATE, journal);
    return code == 0 ? mdb_put(txn, *journal, &key, &value, 0) : code;
}

static bool read_head(const MDB_val *value, bpt__journal_head *head) {
    const uint8_t *bytes = value->mv_data;
    if (value->mv_size <= AT_NAME || value->mv_size >= AT_NAME + sizeof head->database)
        return false;
    if (bpt_get_u64(bytes) != bpt_checksum(bytes + AT_SHAPE, value->mv_size - AT_SHAPE))
        return false;
    *head = (bpt__journal_head){.C = bpt_get_u32(bytes + AT_SHAPE),
                                .H = bpt_get_u32(bytes + AT_SHAPE + 4),
                                .W = bpt_get_u32(bytes + AT_SHAPE + 8),
                                .pack = bpt_get_u32(bytes + AT_SHAPE + 12)};
    memcpy(head->database, bytes + AT_NAME, value->mv_size - AT_NAME);
    return true;
}

int bpt__journal_find(MDB_txn *txn, bpt__journal_head *head, MDB_dbi *journal, bool *found) {
    MDB_val key = {sizeof head_key - 1, head_key}, value;
    *found = false;
    int code = mdb_dbi_open(txn, BPT__JOURNAL, 0, journal);
    if (code == 0) code = mdb_get(txn, *journal, &key, &value);
    if (code == 0) *found = read_head(&value, head);
    return code == MDB_NOTFOUND ? 0 : code;
}

/* ---- notes ---- */

void bpt__notes_free(bpt__notes *notes) {
    bpt_free(notes->text);
    bpt_free(notes->items);
    *notes = (bpt__notes){0};
}

bpt_status bpt__notes_add(bpt__notes *notes, uint64_t item, const char *line) {
    const size_t size = strlen(line) + 1;
    BPT_TRY(BPT_GROW("notes", notes->n_text + size, &notes->text, &notes->text_capacity));
    BPT_TRY(BPT_GROW("notes", notes->n + 1, &notes->items, &notes->items_capacity));
    memcpy(notes->text + notes->n_text, line, size);
    notes->n_text += size;
    notes->items[notes->n++] = item;
    return BPT_OK;
}

int bpt__notes_store(const bpt__notes *notes, MDB_txn *txn, MDB_dbi journal) {
    char *line = notes->text;
    int code = 0;
    for (size_t i = 0; i < notes->n && code == 0; i++) {
        uint64_t item = htobe64(notes->items[i]);
        const size_t size = strlen(line) + 1;
        MDB_val key = {sizeof item, &item}, value = {size, line};
        code = mdb_put(txn, journal, &key, &value, 0);
        line += size;
    }
    return code;
}

void bpt__notes_clear(bpt__notes *notes) {
    notes->n = notes->n_text = 0;
}

bpt_status bpt__notes_read(MDB_txn *txn, MDB_dbi journal, const char *path,
                           bpt_status (*take)(void *arg, const char *line), void *arg,
                           uint64_t *n) {
    MDB_cursor *cursor;
    MDB_val key, value;
    bpt_status status = BPT_OK;
    *n = 0;
    int code = mdb_cursor_open(txn, journal, &cursor);
    if (code != 0) return bpt__lmdb_fail(code, "read", path);
    code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; code == 0 && status == BPT_OK; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        if (key.mv_size != NOTE_KEY) continue;
        const char *line = value.mv_data;
        if (value.mv_size == 0 || line[value.mv_size - 1] != '\0')
            status = bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: a note in its journal", path);
        else if (take)
            status = take(arg, line);
        ++*n;
    }
    mdb_cursor_close(cursor);
    if (status == BPT_OK && code != MDB_NOTFOUND) return bpt__lmdb_fail(code, "read", path);
    return status;
}
