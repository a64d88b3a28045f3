/** @file storage/dataset/dataset_private.h
 * The inside of an open dataset, for dataset.c, verify.c and scratch.c.
 *
 * Threads: as dataset.h. */
#ifndef BPT_STORAGE_DATASET_PRIVATE_H
#define BPT_STORAGE_DATASET_PRIVATE_H

#include "storage/dataset/catalog.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/part.h"
#include "storage/dataset/value.h"

#include <lmdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** A value inside the memory map. */
typedef struct bpt__stored_value {
    const uint8_t *data;
    size_t size;
} bpt__stored_value;

/** The records of one intake, and where they stand among those of the split. */
typedef struct bpt__stretch {
    MDB_dbi database;
    uint64_t database_id;
    uint32_t count, pack;
    uint32_t first_record, first_value;
} bpt__stretch;

/** The records of one split. */
typedef struct bpt__records {
    bpt__stretch *stretches; /* shape [n_stretches], at least one */
    size_t n_stretches;
    uint32_t n_values;
    bpt__stored_value *values; /* shape [n_values] */
    _Atomic uint8_t *checked;  /* shape [n_values]: 1 once a value was found intact. Relaxed: the
                                  file does not change, so checking twice does no harm */
} bpt__records;

struct bpt_dataset {
    MDB_env *env;
    MDB_txn *txn; /* pins the state that values point into */
    bpt__catalog *catalog;
    const bpt_dataset_info *info; /* of the catalog */
    char *description;            /* bpt_dataset_export(), shape [n_description]; NULL in scratch */
    size_t n_description;
    size_t record_bytes;   /* C*H*W; 0 where records are encoded */
    bpt__records *records; /* shape [info->n_splits]; NULL in scratch */
    bpt__part *parts;      /* of scratch (scratch.c), likewise; else NULL */
    bool outgrows_memory;  /* what was read may be gone when it is read again */
};

/** bpt_dataset_open().
 * @param deep check all pages of the file, also where there is no split */
bpt_status bpt__dataset_open(const char *path, bool deep, bpt_dataset **out);

/** @param[out] k which of its records
 * @return the value that holds record @p i of split @p split */
uint32_t bpt__dataset_value(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                            uint32_t *k);

/** @return where value @p v of split @p split belongs; of encoded ones record_bytes is 0 */
bpt__value_place bpt__dataset_place(const bpt_dataset *dataset, const bpt_split *split, uint32_t v);

/** Fails with BPT_ECORRUPT and names split and records of value @p v. */
bpt_status bpt__dataset_damaged(const bpt_dataset *dataset, const bpt_split *split, uint32_t v,
                                const char *what);

#endif
