#include "tests/storage/made_database.h"

#include <stdlib.h>

bool made_database_open(const char *path, const char *name, unsigned flags, made_database *d) {
    *d = (made_database){0};
    if (mdb_env_create(&d->env) != 0) return false;
    if (mdb_env_set_maxdbs(d->env, 8) == 0 &&
        mdb_env_open(d->env, path, flags | MDB_NOSYNC | MDB_NOLOCK, 0666) == 0 &&
        mdb_txn_begin(d->env, NULL, flags, &d->txn) == 0) {
        if (mdb_dbi_open(d->txn, name, 0, &d->dbi) == 0) return true;
        mdb_txn_abort(d->txn);
    }
    mdb_env_close(d->env);
    return false;
}

bool made_database_close(made_database *d, bool keep) {
    const bool kept = keep && mdb_txn_commit(d->txn) == 0;
    if (!keep) mdb_txn_abort(d->txn);
    mdb_env_close(d->env);
    return kept == keep;
}

size_t made_databases(const char *path) {
    made_database root;
    MDB_stat info;
    if (!made_database_open(path, NULL, MDB_RDONLY, &root) ||
        mdb_stat(root.txn, root.dbi, &info) != 0)
        abort();
    made_database_close(&root, false);
    return info.ms_entries;
}
