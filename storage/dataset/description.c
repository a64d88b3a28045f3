#include "storage/dataset/description.h"

#include "base/memory.h"
#include "storage/dataset/catalog.h"
#include "storage/environment/environment.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { LENGTHS = 8 }; /* bytes of both lengths of an entry */

static char *put_length(char *at, size_t length) {
    const uint32_t stored = htole32((uint32_t)length);
    memcpy(at, &stored, sizeof stored);
    return at + sizeof stored;
}

static char *put_bytes(char *at, const MDB_val *bytes) {
    memcpy(at, bytes->mv_data, bytes->mv_size);
    return at + bytes->mv_size;
}

/* Goes through the entries twice: the first time only to count. Pages that writers have taken since
 * may have more.
 * @param out NULL: count
 * @param[in,out] size bytes: in, room at @p out */
static int collect(MDB_cursor *cursor, char *out, size_t *size) {
    MDB_val key, value;
    const size_t room = *size;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (*size = 0; code == 0; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        const size_t bytes = LENGTHS + key.mv_size + value.mv_size;
        if (out && bytes > room - *size) return MDB_CORRUPTED;
        if (out) {
            char *at = put_length(put_length(out + *size, key.mv_size), value.mv_size);
            put_bytes(put_bytes(at, &key), &value);
        }
        *size += bytes;
    }
    return code == MDB_NOTFOUND ? 0 : code;
}

bpt_status bpt__description_read(MDB_txn *txn, const char *path, char **description, size_t *size) {
    MDB_dbi meta;
    MDB_cursor *cursor = NULL;
    char *text = NULL;
    bpt_status status = BPT_OK;
    *size = 0;
    int code = mdb_dbi_open(txn, BPT__META, 0, &meta);
    if (code == MDB_NOTFOUND) return bpt_alloc("description", 0, 1, (void **)description);
    if (code == 0) code = mdb_cursor_open(txn, meta, &cursor);
    if (code == 0) code = collect(cursor, NULL, size);
    if (code == 0) status = bpt_alloc("description", *size, 1, (void **)&text);
    if (code == 0 && status == BPT_OK) code = collect(cursor, text, size);
    if (cursor) mdb_cursor_close(cursor);
    if (code != 0) status = bpt__lmdb_fail(code, "read", path);
    if (bpt__environment_gone(mdb_txn_env(txn)))
        status = bpt_fail(BPT_ECANCELED, "%s was written to while it was read", path);
    if (status == BPT_OK)
        *description = text;
    else
        bpt_free(text);
    return status;
}

/* Takes the next entry off the block. @return whether it is all there */
static bool take_entry(const char **at, size_t *left, MDB_val *key, MDB_val *value) {
    uint32_t lengths[2];
    if (*left < sizeof lengths) return false;
    memcpy(lengths, *at, sizeof lengths);
    key->mv_size = le32toh(lengths[0]);
    value->mv_size = le32toh(lengths[1]);
    *at += sizeof lengths;
    *left -= sizeof lengths;
    if (key->mv_size == 0 || key->mv_size > *left || value->mv_size > *left - key->mv_size)
        return false;
    key->mv_data = (void *)(uintptr_t)*at;
    value->mv_data = (void *)(uintptr_t)(*at + key->mv_size);
    *at += key->mv_size + value->mv_size;
    *left -= key->mv_size + value->mv_size;
    return true;
}

bpt_status bpt__description_write(MDB_txn *txn, const char *description, size_t size, int *code) {
    MDB_dbi meta;
    MDB_val key, value;
    *code = mdb_dbi_open(txn, BPT__META, MDB_CREATE, &meta);
    for (size_t left = size; left > 0 && *code == 0;) {
        if (!take_entry(&description, &left, &key, &value))
            return bpt_fail(BPT_EDATA, "the description of the dataset is cut off");
        *code = mdb_put(txn, meta, &key, &value, 0);
    }
    return BPT_OK;
}
