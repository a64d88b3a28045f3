#include "tests/storage/made_entry.h"

#include "base/checksum.h"
#include "tests/storage/made_database.h"

#include <endian.h>
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

static bool alter(const made_database *meta, const made_entry *e, const char *from) {
    static char entry[SUM + 2 * MAX_TEXT];
    MDB_val name = {strlen(e->key), (void *)(uintptr_t)e->key}, value;
    if (mdb_get(meta->txn, meta->dbi, &name, &value)) return false;
    value = (MDB_val){altered(&value, from, e->text, entry), entry};
    return value.mv_size && mdb_put(meta->txn, meta->dbi, &name, &value, 0) == 0;
}

static bool put(const made_database *meta, const made_entry *e) {
    static char entry[SUM + MAX_TEXT];
    const size_t size = strlen(e->text);
    MDB_val name = {strlen(e->key), (void *)(uintptr_t)e->key}, value = {SUM + size, entry};
    if (size > MAX_TEXT) return false;
    const uint64_t checksum = htole64(bpt_checksum(e->text, size));
    memcpy(entry, &checksum, SUM);
    memcpy(entry + SUM, e->text, size);
    return mdb_put(meta->txn, meta->dbi, &name, &value, 0) == 0;
}

/* @param from NULL: the entry is put anew */
static bool change(const char *path, const made_entry *e, const char *from) {
    made_database meta;
    if (!made_database_open(path, "meta", 0, &meta)) return false;
    const bool done = from ? alter(&meta, e, from) : put(&meta, e);
    return made_database_close(&meta, done) && done;
}

bool made_entry_alter(const char *path, const char *key, const char *from, const char *to) {
    return change(path, &(made_entry){key, to}, from);
}

bool made_entry_put(const char *path, const char *key, const char *text) {
    return change(path, &(made_entry){key, text}, NULL);
}
