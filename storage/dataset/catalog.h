/** @file storage/dataset/catalog.h
 * The `meta` database of a dataset: its schema and its splits, as JSON with a checksum.
 * For storage/ only.
 *
 * Threads: a catalog belongs to one thread while it is read; then any thread may look at it. */
#ifndef BPT_STORAGE_CATALOG_H
#define BPT_STORAGE_CATALOG_H

#include "base/status.h"
#include "storage/dataset/dataset.h"

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#define BPT__META "meta"

/** Limits of the format (docs/formats.md). */
enum {
    BPT__MAX_SPLITS = 64,
    BPT__MAX_INTAKES = 1024, /* of all splits */
    BPT__MAX_CLASSES = 65536,
    BPT__MAX_RECORD_BYTES = 1 << 28,
};

/* Keys of entries in `meta`; an entry is the checksum of a text, then the text. */
#define BPT__SCHEMA_KEY   "dataset"
#define BPT__SPLIT_PREFIX "split/"

/** @return what a schema calls it: static */
const char *bpt__encoding_name(bool encoded);

/** Where the records of an intake are. */
typedef struct bpt__location {
    uint64_t generation; /* counts how often the split was replaced or extended */
    char *database;      /* "train@1" */
    uint32_t pack;       /* records to a value; the last one may hold fewer */
} bpt__location;

typedef struct bpt__catalog bpt__catalog;

/** Reads the catalog.
 * @param path of the dataset, for messages; copied
 * @param[out] out caller owns, bpt__catalog_free(). One of an environment that holds no schema yet
 *             has format 0 and no splits
 * @return BPT_OK, BPT_EDATA (newer format), BPT_ECORRUPT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt__catalog_read(MDB_txn *txn, const char *path, bpt__catalog **out);
void bpt__catalog_free(bpt__catalog *catalog);

/** @return what readers see of it: borrowed */
const bpt_dataset_info *bpt__catalog_info(const bpt__catalog *catalog);

/** Sets the size that the images of an encoded dataset are brought to. */
void bpt__catalog_set_size(bpt__catalog *catalog, uint32_t H, uint32_t W);

/** @return where intake number @p p of split number @p s is: borrowed */
const bpt__location *bpt__catalog_location(const bpt__catalog *catalog, size_t s, size_t p);

/** @return the split of that name, NULL if there is none: borrowed */
const bpt_split *bpt__catalog_find(const bpt__catalog *catalog, const char *name);

/** Makes sure that every database that it names is there: where one is not, its records may be
 * there under a damaged name.
 * @return BPT_OK, BPT_ECORRUPT, BPT_EIO */
bpt_status bpt__catalog_expect_databases(const bpt__catalog *catalog, MDB_txn *txn);

/** Writes schema and one split into `meta`, which exists.
 * @param info  the new schema; its splits are not looked at
 * @param split the new or changed split
 * @param locations of its intakes, shape [split->n_intakes]
 * @return BPT_OK, or an LMDB code in @p code (its status is the caller's to make), BPT_ENOMEM */
bpt_status bpt__catalog_write(MDB_txn *txn, const bpt_dataset_info *info, const bpt_split *split,
                              const bpt__location *locations, int *code);

#endif
