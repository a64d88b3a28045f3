#include "tests/storage/made_lmdb.h"

#include <sys/stat.h>

#include <lmdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void made_lmdb(const char *folder, uint8_t n) {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi root;
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, folder, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &root), 0);
    for (uint8_t i = 0; i < n; i++) {
        uint8_t datum[] = {8, 1, 16, 2, 24, 2, 34, 4, i, i, i, i, 40, i % 3};
        MDB_val key = {1, &i}, value = {sizeof datum, datum};
        assert_int_equal(mdb_put(txn, root, &key, &value, 0), 0);
    }
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}
