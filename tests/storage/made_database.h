/** @file tests/storage/made_database.h
 * A look into the environment of a dataset, past what reads and writes datasets, or a change there.
 *
 * Threads: any. */
#ifndef BPT_TESTS_STORAGE_MADE_DATABASE_H
#define BPT_TESTS_STORAGE_MADE_DATABASE_H

#include <lmdb.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct made_database {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
} made_database;

/** Opens one of a dataset's databases, without locks.
 * @param path of the dataset; @param name NULL: the one that names the others
 * @param flags MDB_RDONLY, or 0 to change something
 * @return whether it is open; else there is nothing to close */
bool made_database_open(const char *path, const char *name, unsigned flags, made_database *d);

/** @param keep whether what was changed is kept. @return false where it is not, though asked for */
bool made_database_close(made_database *d, bool keep);

/** @return how many named databases the dataset at @p path has; ends the test program if it cannot
 * tell */
size_t made_databases(const char *path);

#endif
