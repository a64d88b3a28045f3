/* Parcels are numbered as they come and never change. A reader keeps the pages that it has seen in
 * the map while its transaction is open; the oldest transaction keeps all newer ones as well, since
 * LMDB reuses no page that was freed after it began. So one is open as long as the scratch is, and
 * what bpt__part_add() is given stays where it is. */
#include "storage/dataset/scratch.h"

#include "base/checksum.h"
#include "base/memory.h"
#include "storage/dataset/dataset_private.h"
#include "storage/dataset/description.h"
#include "storage/dataset/parcel.h"
#include "storage/environment/directory.h"
#include "storage/environment/environment.h"

#include <sys/stat.h>

#include <string.h>
#include <unistd.h>

struct bpt_scratch {
    bpt_dataset dataset; /* its .txn is the oldest */
    MDB_txn *finder;     /* looks up what was just written; reset but for that */
    char *path;
    int lock;           /* open file that holds the writer lock, -1 for none */
    MDB_dbi *databases; /* shape [n_splits] */
    size_t page_bytes;
};

size_t bpt_scratch_bytes(const bpt_dataset_info *info) {
    size_t bytes = 0;
    for (size_t i = 0; i < info->n_splits; i++) bytes += bpt__part_bytes(info->splits[i].count);
    return bytes;
}

const bpt_dataset *bpt_scratch_dataset(const bpt_scratch *s) {
    return &s->dataset;
}

bool bpt_scratch_has(const bpt_scratch *s, const bpt_split *split, uint32_t i) {
    uint32_t k;
    return bpt__part_find(&s->dataset.parts[split->number], i, &k) != NULL;
}

static bpt_status damaged(const bpt_scratch *s, const char *what) {
    const bpt_status status =
        bpt_fail(BPT_ECORRUPT, "scratch folder %s is damaged: %s", s->path, what);
    bpt_hint("remove it: what it held is sent again");
    return status;
}

/* ---- whose it is ---- */

static bpt_status refuse_other(const char *path) {
    const bpt_status status =
        bpt_fail(BPT_EDATA, "scratch folder %s holds images of another dataset", path);
    bpt_hint("name another folder for scratch, or remove this one if nobody needs it");
    return status;
}

/* @param[out] empty whether it belongs to no dataset yet */
static bpt_status compare(MDB_txn *txn, const char *path, const char *description, size_t size,
                          bool *empty) {
    char *mine;
    size_t n;
    BPT_TRY(bpt__description_read(txn, path, &mine, &n));
    *empty = n == 0;
    const bool same = n == size && memcmp(mine, description, n) == 0;
    bpt_free(mine);
    return *empty || same ? BPT_OK : refuse_other(path);
}

static bpt_status check_owner(bpt_scratch *s, const char *description, size_t size, bool *empty) {
    MDB_txn *txn;
    const int code = mdb_txn_begin(s->dataset.env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", s->path);
    const bpt_status status = compare(txn, s->path, description, size, empty);
    mdb_txn_abort(txn);
    return status;
}

typedef struct owner {
    const char *path, *description;
    size_t size;
} owner;

static bpt_status compare_owner(void *arg, MDB_env *env, MDB_txn *txn) {
    (void)env;
    const owner *o = arg;
    bool empty;
    return compare(txn, o->path, o->description, o->size, &empty);
}

bpt_status bpt_scratch_look(const char *path, const char *description, size_t size,
                            uint64_t *bytes) {
    owner o = {path, description, size};
    MDB_env *env;
    MDB_txn *txn;
    char *file;
    struct stat info = {0};
    *bytes = 0;
    const bpt_status opened =
        bpt__environment_read(&bpt__scratch_files, path, false, compare_owner, &o, &env, &txn);
    if (opened == BPT_ENOENT) return BPT_OK;
    BPT_TRY(opened);
    bpt__environment_close(env, txn);
    BPT_TRY(bpt_strf(&file, "%s/%s", path, bpt__scratch_files.data));
    if (stat(file, &info) == 0) *bytes = (uint64_t)info.st_size;
    bpt_free(file);
    return BPT_OK;
}

/* ---- writing ---- */

static bpt_status unwritten(const bpt_scratch *s, size_t bytes, int code) {
    BPT_TRY(bpt__environment_settle(s->dataset.env, BPT_OK));
    const bpt_status status =
        bpt__environment_unwritten(s->dataset.env, s->path, bytes + (1 << 20), code);
    if (status == BPT_ENOSPC)
        bpt_hint("make room on the file system of the scratch folder; what has come stays there");
    return status;
}

/* Ends a write transaction, well or not. */
static bpt_status end_write(const bpt_scratch *s, MDB_txn *txn, bpt_status status, int code,
                            size_t bytes) {
    if (code == 0) status = bpt__environment_settle(s->dataset.env, status);
    if (status == BPT_OK && code == 0)
        code = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    BPT_TRY(status);
    return code == 0 ? BPT_OK : unwritten(s, bytes, code);
}

/* Where a parcel of the newest state is. The transaction has its memory and its place among the
 * readers since the folder was opened: nothing can fail for want of them once a parcel is written.
 */
static bpt_status find_stored(const bpt_scratch *s, MDB_dbi database, MDB_val *key,
                              MDB_val *value) {
    int code = mdb_txn_renew(s->finder);
    if (code != 0) return bpt__lmdb_fail(code, "read", s->path);
    code = mdb_get(s->finder, database, key, value);
    mdb_txn_reset(s->finder);
    const bpt_status status = code == 0 ? BPT_OK : bpt__lmdb_fail(code, "read", s->path);
    return bpt__environment_settle(s->dataset.env, status);
}

static bpt_status open_finder(bpt_scratch *s) {
    const int code = mdb_txn_begin(s->dataset.env, NULL, MDB_RDONLY, &s->finder);
    if (code != 0) return bpt__lmdb_fail(code, "read", s->path);
    mdb_txn_reset(s->finder);
    return BPT_OK;
}

static bpt_status check_parcel(const bpt_scratch *s, const bpt_split *split,
                               const uint32_t *indices, uint32_t n, const uint8_t *parcel) {
    const bpt__part *part = &s->dataset.parts[split->number];
    const bpt__value_place place = bpt__parcel_place(part->home, part->record_bytes, n);
    const char *wrong = NULL;
    if (!bpt__value_intact(parcel, bpt_parcel_bytes(part->record_bytes, n), &place))
        wrong = "checksum mismatch";
    for (uint32_t k = 0; k < n && !wrong; k++) {
        if (bpt__parcel_index(parcel, part->record_bytes, n, k) != indices[k])
            wrong = "it holds others than were asked for";
        else if (bpt__value_label(parcel, k) >= s->dataset.info->n_classes)
            wrong = "a label is out of range";
    }
    if (!wrong) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_ECORRUPT, "%u images of split %s arrived damaged: %s", n, split->name, wrong);
    bpt_hint("memory or network are at fault; start the same again, what has come well is kept");
    return status;
}

bpt_status bpt_scratch_add(bpt_scratch *s, const bpt_split *split, const uint32_t *indices,
                           uint32_t n, const void *parcel) {
    bpt__part *part = &s->dataset.parts[split->number];
    const MDB_dbi database = s->databases[split->number];
    const size_t size = bpt_parcel_bytes(part->record_bytes, n);
    for (uint32_t k = 0; k < n; k++) {
        if (indices[k] >= part->count)
            return bpt_fail(BPT_EUSAGE, "split %s has %u records, and none of number %u",
                            split->name, part->count, indices[k]);
        if (bpt_scratch_has(s, split, indices[k]))
            return bpt_fail(BPT_EUSAGE, "record %u of split %s is in %s already", indices[k],
                            split->name, s->path);
    }
    uint8_t name[BPT__VALUE_KEY];
    MDB_val key = {sizeof name, name}, value = {size, (void *)(uintptr_t)parcel};
    MDB_txn *txn;
    BPT_TRY(check_parcel(s, split, indices, n, parcel));
    BPT_TRY(bpt__part_reserve(part));
    bpt__value_key(part->n_parcels, name);
    int code = mdb_txn_begin(s->dataset.env, NULL, 0, &txn);
    if (code != 0) return unwritten(s, size, code);
    const bpt_status status = bpt__environment_settle(s->dataset.env, BPT_OK);
    if (status == BPT_OK) code = mdb_put(txn, database, &key, &value, MDB_APPEND);
    BPT_TRY(end_write(s, txn, status, code, size));
    BPT_TRY(find_stored(s, database, &key, &value));
    return bpt__part_add(part, value.mv_data, value.mv_size, true);
}

/* ---- opening ---- */

static bpt_status set_map(const bpt_scratch *s, uint64_t bytes) {
    const uint64_t pages = (bytes + s->page_bytes - 1) / s->page_bytes;
    return bpt__environment_map(s->dataset.env, s->path, (size_t)(pages * s->page_bytes));
}

/* For all records, should each come in a parcel of its own, and twice that for what LMDB adds: it
 * is addresses alone. The map cannot grow while somebody reads from it. Each transaction leaves
 * some pages that cannot be had again while the scratch is open, so that a large split in parcels
 * of one small record each would fill the map all the same (BPT_EFULL). */
static uint64_t map_bytes(const bpt_scratch *s) {
    const bpt_dataset_info *info = s->dataset.info;
    const uint64_t one =
        bpt__value_padded(bpt_parcel_bytes(s->dataset.record_bytes, 1), s->page_bytes) +
        BPT__PAGE_HEADER;
    uint64_t bytes = (uint64_t)1 << 29;
    for (size_t i = 0; i < info->n_splits; i++) bytes += one * info->splits[i].count;
    const uint64_t most =
        bpt__scratch_files.rules.spare_bytes; /* else it would be taken for damage */
    return bytes < most / 2 ? 2 * bytes : most;
}

/* One transaction: what belongs to a dataset belongs to it whole. */
static bpt_status claim(bpt_scratch *s, const char *description, size_t size) {
    MDB_txn *txn;
    int code = mdb_txn_begin(s->dataset.env, NULL, 0, &txn);
    if (code != 0) return unwritten(s, size, code);
    const bpt_status status = bpt__description_write(txn, description, size, &code);
    return end_write(s, txn, status, code, size);
}

static bpt_status read_catalog(bpt_scratch *s) {
    bpt_dataset *d = &s->dataset;
    MDB_txn *txn;
    const int code = mdb_txn_begin(d->env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", s->path);
    const bpt_status status = bpt__catalog_read(txn, s->path, &d->catalog);
    mdb_txn_abort(txn);
    BPT_TRY(status);
    d->info = bpt__catalog_info(d->catalog);
    if (d->info->encoded)
        return bpt_fail(BPT_EDATA, "the dataset that %s is for holds encoded images", s->path);
    d->record_bytes = (size_t)d->info->C * d->info->H * d->info->W;
    return d->info->n_splits > 0
               ? BPT_OK
               : bpt_fail(BPT_EDATA, "the dataset that %s is for has no splits", s->path);
}

static bpt_status open_databases(bpt_scratch *s) {
    const size_t n = s->dataset.info->n_splits;
    MDB_txn *txn;
    BPT_TRY(BPT_NEW("databases", n, &s->databases));
    int code = mdb_txn_begin(s->dataset.env, NULL, 0, &txn);
    if (code != 0) return unwritten(s, 0, code);
    for (size_t i = 0; i < n && code == 0; i++)
        code = mdb_dbi_open(txn, bpt__catalog_location(s->dataset.catalog, i, 0)->database,
                            MDB_CREATE, &s->databases[i]);
    return end_write(s, txn, BPT_OK, code, 0);
}

/* Finds what is here already. */
static bpt_status index_split(bpt_scratch *s, MDB_dbi database, bpt__part *part) {
    MDB_cursor *cursor;
    MDB_val key, value;
    bpt_status status = BPT_OK;
    int code = mdb_cursor_open(s->dataset.txn, database, &cursor);
    if (code != 0) return bpt__lmdb_fail(code, "read", s->path);
    code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    while (code == 0 && status == BPT_OK) {
        uint8_t expected[BPT__VALUE_KEY];
        bpt__value_key(part->n_parcels, expected);
        const bool next =
            key.mv_size == sizeof expected && memcmp(key.mv_data, expected, sizeof expected) == 0;
        status = next ? bpt__part_add(part, value.mv_data, value.mv_size, false)
                      : bpt_fail(BPT_ECORRUPT, "a parcel is missing");
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    if (status == BPT_ECORRUPT) return damaged(s, bpt_error_last()->text);
    BPT_TRY(status);
    return code == MDB_NOTFOUND ? BPT_OK : bpt__lmdb_fail(code, "read", s->path);
}

static bpt_status index_all(bpt_scratch *s, uint64_t identity) {
    bpt_dataset *d = &s->dataset;
    const int code = mdb_txn_begin(d->env, NULL, MDB_RDONLY, &d->txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", s->path);
    BPT_TRY(BPT_NEW("parts of splits", d->info->n_splits, &d->parts));
    for (size_t i = 0; i < d->info->n_splits; i++) {
        const bpt_split *split = &d->info->splits[i];
        BPT_TRY(bpt__part_create(bpt__parcel_home(identity, split->name), d->record_bytes,
                                 split->count, &d->parts[i]));
        BPT_TRY(index_split(s, s->databases[i], &d->parts[i]));
    }
    return BPT_OK;
}

static bpt_status open_steps(bpt_scratch *s, const char *path, const char *description,
                             size_t size) {
    MDB_stat stat;
    size_t n_made;
    bool empty = false;
    BPT_TRY(bpt_strdup(path, &s->path));
    BPT_TRY(bpt__directory_lock(&bpt__scratch_files, path, &s->lock, &n_made));
    BPT_TRY(bpt__environment_write(&bpt__scratch_files, path, &s->dataset.env));
    mdb_env_stat(s->dataset.env, &stat);
    s->page_bytes = stat.ms_psize;
    BPT_TRY(check_owner(s, description, size, &empty));
    BPT_TRY(set_map(s, 4 * (uint64_t)size + (1 << 24)));
    if (empty) BPT_TRY(claim(s, description, size));
    BPT_TRY(read_catalog(s));
    BPT_TRY(set_map(s, map_bytes(s)));
    /* The head page may reach the disk late: what a power cut takes away is sent again. */
    mdb_env_set_flags(s->dataset.env, MDB_NOMETASYNC, 1);
    BPT_TRY(open_databases(s));
    BPT_TRY(index_all(s, bpt_checksum(description, size)));
    return open_finder(s);
}

bpt_status bpt_scratch_open(const char *path, const char *description, size_t size,
                            bpt_scratch **out) {
    bpt_scratch *s;
    BPT_TRY(BPT_NEW("scratch", 1, &s));
    s->lock = -1;
    bpt_status status = open_steps(s, path, description, size);
    if (s->dataset.env) status = bpt__environment_settle(s->dataset.env, status);
    if (status == BPT_OK)
        *out = s;
    else
        bpt_scratch_close(s);
    return status;
}

void bpt_scratch_close(bpt_scratch *s) {
    if (!s) return;
    bpt_dataset *d = &s->dataset;
    for (size_t i = 0; d->parts && i < d->info->n_splits; i++) bpt__part_free(&d->parts[i]);
    bpt_free(d->parts);
    bpt_free(s->databases);
    bpt__catalog_free(d->catalog);
    if (s->finder) mdb_txn_abort(s->finder);
    bpt__environment_close(d->env, d->txn);
    if (s->lock >= 0) close(s->lock);
    bpt_free(s->path);
    bpt_free(s);
}
