#include "tests/storage/made_entry.h"

#include "base/checksum.h"

#include <endian.h>
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 16, SUM = sizeof(uint64_t) };

typedef struct made_entry {
    const char *key, *text;
} made_entry;

/* @param[out] entry checksum and text, shape [SUM + 2 MAX_TEXT]; @return its bytes; 0: not there */
static size_t altered(const MDB_val *value, const char *from, const char *to, char *entry) {
    char *text = value->mv_size > SUM && value->mv_size < SUM + MAX_TEXT
                     ? strndup((const char *)value->mv_data + SUM, value->mv_size - SUM)
                     : NULL;
    const char *at = text ? strstr(text, from) : NULL;
    int n = 0;
    if (at)
        n = snprintf(entry + SUM, 2 * MAX_TEXT, "%.*s%s%s", (int)(at - text), text, to,
                     at + strlen(from));
    const uint64_t checksum = htole64(bpt_checksum(entry + SUM, (size_t)n));
    memcpy(entry, &checksum, SUM);
    free(text);
    return at ? SUM + (size_t)n : 0;
}

static bool alter(MDB_txn *txn, const made_entry *e, const char *from) {
    static char entry[SUM + 2 * MAX_TEXT];
    MDB_val name = {strlen(e->key), (void *)(uintptr_t)e->key}, value;
    MDB_dbi meta;
    if (mdb_dbi_open(txn, "meta", 0, &meta) || mdb_get(txn, meta, &name, &value)) return false;
    value = (MDB_val){altered(&value, from, e->text, entry), entry};
    return value.mv_size && mdb_put(txn, meta, &name, &value, 0) == 0;
}

static bool put(MDB_txn *txn, const made_entry *e) {
    static char entry[SUM + MAX_TEXT];
    const size_t size = strlen(e->text);
    MDB_val name = {strlen(e->key), (void *)(uintptr_t)e->key}, value = {SUM + size, entry};
    MDB_dbi meta;
    if (size > MAX_TEXT || mdb_dbi_open(txn, "meta", 0, &meta)) return false;
    const uint64_t checksum = htole64(bpt_checksum(e->text, size));
    memcpy(entry, &checksum, SUM);
    memcpy(entry + SUM, e->text, size);
    return mdb_put(txn, meta, &name, &value, 0) == 0;
}

/* @param from NULL: the entry is put anew */
static bool change(const char *path, const made_entry *e, const char *from) {
    MDB_env *env;
    MDB_txn *txn;
    bool done = false;
    if (mdb_env_create(&env)) return false;
    if (mdb_env_set_maxdbs(env, 8) == 0 &&
        mdb_env_open(env, path, MDB_NOSYNC | MDB_NOLOCK, 0666) == 0 &&
        mdb_txn_begin(env, NULL, 0, &txn) == 0) {
        done = from ? alter(txn, e, from) : put(txn, e);
        if (done)
            done = mdb_txn_commit(txn) == 0;
        else
            mdb_txn_abort(txn);
    }
    mdb_env_close(env);
    return done;
}

bool made_entry_alter(const char *path, const char *key, const char *from, const char *to) {
    return change(path, &(made_entry){key, to}, from);
}

bool made_entry_put(const char *path, const char *key, const char *text) {
    return change(path, &(made_entry){key, text}, NULL);
}
