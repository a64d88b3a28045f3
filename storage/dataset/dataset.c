#include "storage/dataset/dataset.h"

#include "base/memory.h"
#include "base/text.h"
#include "storage/dataset/dataset_private.h"
#include "storage/dataset/description.h"
#include "storage/dataset/parcel.h"
#include "storage/environment/environment.h"
#include "storage/images/image.h"

#include <sys/stat.h>

#include <string.h>

const bpt_dataset_info *bpt_dataset_describe(const bpt_dataset *dataset) {
    return dataset->info;
}

/* @param by_record @p number is that of a record, else of a value */
static const bpt__stretch *find_stretch(const bpt__records *r, uint32_t number, bool by_record) {
    size_t low = 0, high = r->n_stretches;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        const bpt__stretch *s = &r->stretches[middle];
        if (number < (by_record ? s->first_record : s->first_value))
            high = middle;
        else
            low = middle;
    }
    return &r->stretches[low];
}

static bpt__value_place place_in(const bpt_dataset *dataset, const bpt__stretch *s, uint32_t v) {
    const uint64_t first = (uint64_t)(v - s->first_value) * s->pack;
    const uint64_t left = s->count - first;
    return (bpt__value_place){.database = s->database_id,
                              .first = first,
                              .n = left < s->pack ? (uint32_t)left : s->pack,
                              .record_bytes = (uint32_t)dataset->record_bytes};
}

bpt__value_place bpt__dataset_place(const bpt_dataset *dataset, const bpt_split *split,
                                    uint32_t v) {
    return place_in(dataset, find_stretch(&dataset->records[split->number], v, false), v);
}

uint32_t bpt__dataset_value(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                            uint32_t *k) {
    const bpt__stretch *s = find_stretch(&dataset->records[split->number], i, true);
    *k = (i - s->first_record) % s->pack;
    return s->first_value + (i - s->first_record) / s->pack;
}

bpt_status bpt__dataset_damaged(const bpt_dataset *dataset, const bpt_split *split, uint32_t v,
                                const char *what) {
    const bpt__stretch *s = find_stretch(&dataset->records[split->number], v, false);
    const bpt__value_place place = place_in(dataset, s, v);
    const unsigned long long first = s->first_record + place.first, last = first + place.n - 1;
    const bpt_status status =
        place.n == 1
            ? bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: split %s, record %llu: %s",
                       dataset->info->path, split->name, first, what)
            : bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: split %s, records %llu to %llu: %s",
                       dataset->info->path, split->name, first, last, what);
    bpt_hint("ingest split %s again with --force, or restore the dataset from a copy", split->name);
    return status;
}

static bpt_status overtaken(const bpt_dataset *d, const bpt_split *split) {
    const bpt_status status = bpt_fail(BPT_EIO,
                                       "dataset %s was written to while split %s was read, which "
                                       "writers could not see: it is not there any more as it was",
                                       d->info->path, split->name);
    bpt_hint("run this again, and replace no split while it is read");
    return status;
}

/* A value is checked once. Where no writer sees this reader, and one has been at work, each time.
 */
static bpt_status check_value(const bpt_dataset *d, const bpt_split *split, uint32_t v) {
    const bpt__records *r = &d->records[split->number];
    const bpt__stored_value value = r->values[v];
    const bool in_danger = bpt__environment_overtaken(d->env);
    if (!in_danger && atomic_load_explicit(&r->checked[v], memory_order_relaxed)) return BPT_OK;
    bpt__value_place place = bpt__dataset_place(d, split, v);
    if (d->info->encoded) place.record_bytes = bpt__value_record_bytes(value.data);
    if (!bpt__value_intact(value.data, value.size, &place))
        return in_danger ? overtaken(d, split)
                         : bpt__dataset_damaged(d, split, v, "checksum mismatch");
    atomic_store_explicit(&r->checked[v], 1, memory_order_relaxed);
    return BPT_OK;
}

/* Takes apart a value of an encoded split that is intact. */
static bpt_status take_apart(const bpt_dataset *d, const bpt_split *split, uint32_t v,
                             bpt_record *record, uint32_t *label) {
    const bpt__stored_value value = d->records[split->number].values[v];
    const size_t size = bpt__value_record_bytes(value.data);
    if (!bpt__record_read(bpt__value_pixels(value.data, size, 1, 0), size, d->info->C, record))
        return bpt__dataset_damaged(d, split, v, "it is no encoded image");
    *label = bpt__value_label(value.data, 0);
    return *label < d->info->n_classes
               ? BPT_OK
               : bpt__dataset_damaged(d, split, v, "a label is out of range");
}

/* @return how many values a stretch has */
static uint32_t count_values(const bpt__stretch *s) {
    return (uint32_t)(((uint64_t)s->count + s->pack - 1) / s->pack);
}

/* Remembers where in the map each value of a stretch is. */
static bpt_status index_values(bpt_dataset *d, const bpt_split *split, const bpt__stretch *s,
                               MDB_cursor *cursor) {
    bpt__records *r = &d->records[split->number];
    MDB_val key, value;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (uint32_t i = 0, n = count_values(s); i < n; i++) {
        const uint32_t v = s->first_value + i;
        if (code == MDB_NOTFOUND) return bpt__dataset_damaged(d, split, v, "missing");
        if (code != 0) return bpt__lmdb_fail(code, "read", d->info->path);
        uint8_t expected[BPT__VALUE_KEY];
        bpt__value_key(i, expected);
        if (key.mv_size != sizeof expected || memcmp(key.mv_data, expected, sizeof expected) != 0)
            return bpt__dataset_damaged(d, split, v, "missing");
        if (value.mv_size < bpt__value_bytes(d->record_bytes, place_in(d, s, v).n))
            return bpt__dataset_damaged(d, split, v, "too short");
        r->values[v] = (bpt__stored_value){value.mv_data, value.mv_size};
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    if (code == MDB_NOTFOUND) return BPT_OK;
    if (code != 0) return bpt__lmdb_fail(code, "read", d->info->path);
    return bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: split %s has more records than its %u",
                    d->info->path, split->name, split->count);
}

static bpt_status read_stretch(bpt_dataset *d, const bpt_split *split, const bpt__stretch *s) {
    MDB_cursor *cursor;
    const int code = mdb_cursor_open(d->txn, s->database, &cursor);
    if (code != 0) return bpt__lmdb_fail(code, "read", d->info->path);
    const bpt_status status = index_values(d, split, s, cursor);
    mdb_cursor_close(cursor);
    return status;
}

/* Says where the records of an intake are, behind those of the ones before. */
static bpt_status open_stretch(bpt_dataset *d, const bpt_split *split, size_t p,
                               uint32_t first_record) {
    bpt__records *r = &d->records[split->number];
    bpt__stretch *s = &r->stretches[p];
    const bpt__location *location = bpt__catalog_location(d->catalog, split->number, p);
    *s = (bpt__stretch){.database_id = bpt__database_id(location->database),
                        .count = split->intakes[p].count,
                        .pack = location->pack,
                        .first_record = first_record,
                        .first_value = r->n_values};
    MDB_stat stat;
    int code = mdb_dbi_open(d->txn, location->database, 0, &s->database);
    if (code == MDB_NOTFOUND)
        return bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: the records of split %s are missing",
                        d->info->path, split->name);
    if (code == 0) code = mdb_stat(d->txn, s->database, &stat);
    if (code != 0) return bpt__lmdb_fail(code, "read", d->info->path);
    r->n_values += count_values(s);
    if (stat.ms_entries == count_values(s)) return BPT_OK;
    return bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: split %s has %zu values, not %u",
                    d->info->path, split->name, stat.ms_entries, count_values(s));
}

static bpt_status open_split(bpt_dataset *d, const bpt_split *split) {
    bpt__records *r = &d->records[split->number];
    BPT_TRY(BPT_NEW("intakes", split->n_intakes, &r->stretches));
    r->n_stretches = split->n_intakes;
    uint32_t first = 0;
    for (size_t p = 0; p < r->n_stretches; first += split->intakes[p++].count)
        BPT_TRY(open_stretch(d, split, p, first));
    BPT_TRY(BPT_NEW("value table", r->n_values, &r->values));
    BPT_TRY(bpt_alloc("value marks", r->n_values, 1, (void **)&r->checked));
    for (size_t p = 0; p < r->n_stretches; p++) BPT_TRY(read_stretch(d, split, &r->stretches[p]));
    return BPT_OK;
}

static void forget(bpt_dataset *d) {
    for (size_t s = 0; d->records && s < d->info->n_splits; s++) {
        bpt_free(d->records[s].stretches);
        bpt_free(d->records[s].values);
        bpt_free((void *)d->records[s].checked);
    }
    bpt_free(d->records);
    bpt_free(d->description);
    bpt__catalog_free(d->catalog);
    *d = (bpt_dataset){0};
}

static bpt_status read_all(bpt_dataset *d, const char *path) {
    BPT_TRY(bpt__description_read(d->txn, path, &d->description, &d->n_description));
    BPT_TRY(bpt__catalog_read(d->txn, path, &d->catalog));
    if (bpt__environment_gone(d->env)) /* its entries have no checksums that tell whose they are */
        return bpt_fail(BPT_ECANCELED, "%s was written to while it was read", path);
    d->info = bpt__catalog_info(d->catalog);
    d->record_bytes = d->info->encoded ? 0 : (size_t)d->info->C * d->info->H * d->info->W;
    BPT_TRY(BPT_NEW("splits", d->info->n_splits, &d->records));
    for (size_t s = 0; s < d->info->n_splits; s++) BPT_TRY(open_split(d, &d->info->splits[s]));
    return bpt_dataset_check(d);
}

typedef struct opening {
    const char *path;
    bpt_dataset *dataset;
} opening;

/* All that LMDB is asked for. What is read later are values, each with its checksum. */
static bpt_status read_contents(void *arg, MDB_env *env, MDB_txn *txn) {
    const opening *o = arg;
    bpt_dataset *d = o->dataset;
    d->env = env;
    d->txn = txn;
    const bpt_status status = read_all(d, o->path);
    if (status != BPT_OK) forget(d);
    return status;
}

static bpt_status check_not_empty(const bpt_dataset *d) {
    if (d->info->n_splits > 0) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_ENOENT, "dataset %s has no split yet", d->info->path);
    bpt_hint(
        "its first ingestion was stopped before its end: run the same bpt-ingest again, with "
        "--resume to go on where it was stopped");
    return status;
}

bpt_status bpt__dataset_open(const char *path, bool deep, bpt_dataset **out) {
    bpt_dataset *d;
    BPT_TRY(BPT_NEW("dataset", 1, &d));
    opening o = {.path = path, .dataset = d};
    bpt_status status =
        bpt__environment_read(&bpt__dataset_files, path, deep, read_contents, &o, &d->env, &d->txn);
    if (status == BPT_OK) status = check_not_empty(d);
    if (status == BPT_OK)
        *out = d;
    else
        bpt_dataset_close(d);
    return status;
}

bpt_status bpt_dataset_open(const char *path, bpt_dataset **out) {
    return bpt__dataset_open(path, false, out);
}

void bpt_dataset_close(bpt_dataset *d) {
    if (!d) return;
    MDB_env *env = d->env;
    MDB_txn *txn = d->txn;
    forget(d);
    bpt__environment_close(env, txn);
    bpt_free(d);
}

static bool look_at_data(const char *path, struct stat *info) {
    char *file;
    if (bpt_strf(&file, "%s/data.mdb", path) != BPT_OK) return false;
    const bool there = stat(file, info) == 0;
    bpt_free(file);
    return there;
}

bool bpt_dataset_is_same(const char *a, const char *b) {
    struct stat x, y;
    return look_at_data(a, &x) && look_at_data(b, &y) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static void hint_splits(const bpt_dataset_info *info) {
    char names[256] = "";
    for (size_t s = 0; s < info->n_splits; s++)
        bpt_list_add(names, sizeof names, info->splits[s].name);
    bpt_hint("its splits are: %s", names);
}

bpt_status bpt_dataset_find(const bpt_dataset *dataset, const char *name, const bpt_split **split) {
    const bpt_split *found = bpt__catalog_find(dataset->catalog, name);
    if (!found) {
        const bpt_status status =
            bpt_fail(BPT_ENOENT, "dataset %s has no split \"%s\"", dataset->info->path, name);
        hint_splits(dataset->info);
        return status;
    }
    *split = found;
    return BPT_OK;
}

bpt_status bpt_dataset_bring_to(bpt_dataset *d, uint32_t H, uint32_t W) {
    if (d->info->encoded && H >= 1 && W >= 1 && H <= BPT_IMAGE_MAX_SIDE &&
        W <= BPT_IMAGE_MAX_SIDE) {
        bpt__catalog_set_size(d->catalog, H, W);
        return BPT_OK;
    }
    if (!d->info->encoded && H == d->info->H && W == d->info->W) return BPT_OK;
    if (d->info->encoded)
        return bpt_fail(BPT_EUSAGE, "images of %ux%u pixels: each side must be 1 to %d", H, W,
                        BPT_IMAGE_MAX_SIDE);
    return bpt_fail(BPT_EUSAGE, "dataset %s holds raw images of %ux%u pixels (HxW), not %ux%u",
                    d->info->path, d->info->H, d->info->W, H, W);
}

bpt_status bpt_dataset_export(const bpt_dataset *dataset, char **description, size_t *size) {
    char *copy;
    BPT_TRY(bpt_alloc("description", dataset->n_description, 1, (void **)&copy));
    memcpy(copy, dataset->description, dataset->n_description);
    *description = copy;
    *size = dataset->n_description;
    return BPT_OK;
}

/* ---- records ---- */

bpt_status bpt_dataset_check(const bpt_dataset *dataset) {
    return bpt__environment_settle(dataset->env, BPT_OK);
}

static bpt_status scratch_damaged(const bpt_dataset *d, const bpt_split *split, const char *what) {
    const bpt_status status = bpt_fail(BPT_ECORRUPT, "scratch folder %s is damaged: split %s: %s",
                                       d->info->path, split->name, what);
    bpt_hint("remove it: what it held is sent again");
    return status;
}

/* Of scratch, which holds some of the records. */
static bpt_status get_kept(const bpt_dataset *d, const bpt_split *split, uint32_t i,
                           const uint8_t **pixels, uint32_t *label) {
    const bpt__part *part = &d->parts[split->number];
    uint32_t k;
    bpt__kept_parcel *parcel = bpt__part_find(part, i, &k);
    if (!parcel)
        return bpt_fail(BPT_EUSAGE, "record %u of split %s is not in %s", i, split->name,
                        d->info->path);
    if (!atomic_load_explicit(&parcel->checked, memory_order_relaxed)) {
        const bpt__value_place place = bpt__parcel_place(part->home, part->record_bytes, parcel->n);
        const size_t size = bpt_parcel_bytes(part->record_bytes, parcel->n);
        if (!bpt__value_intact(parcel->data, size, &place))
            return scratch_damaged(d, split, "checksum mismatch");
        atomic_store_explicit(&parcel->checked, true, memory_order_relaxed);
    }
    *label = bpt__value_label(parcel->data, k);
    if (*label >= d->info->n_classes) return scratch_damaged(d, split, "a label is out of range");
    *pixels = bpt__value_pixels(parcel->data, part->record_bytes, parcel->n, k);
    return BPT_OK;
}

static bpt_status check_request(const bpt_dataset *d, const bpt_split *split, uint32_t i,
                                bool encoded) {
    if (i >= split->count)
        return bpt_fail(BPT_EUSAGE, "dataset %s: split %s has %u records, there is no record %u",
                        d->info->path, split->name, split->count, i);
    if (d->info->encoded == encoded) return BPT_OK;
    return bpt_fail(BPT_EUSAGE, "dataset %s: its images are %s", d->info->path,
                    encoded ? "raw, not encoded" : "encoded, not raw");
}

/* What was wrong with a record may be that its pages are gone. */
static bpt_status blame_pages(const bpt_dataset *d, bpt_status status) {
    return bpt__environment_lost(d->env) ? bpt__environment_settle(d->env, status) : status;
}

static bpt_status get_record(const bpt_dataset *d, const bpt_split *split, uint32_t i,
                             bpt_record *record, uint32_t *label) {
    BPT_TRY(check_value(d, split, i));
    return take_apart(d, split, i, record, label);
}

bpt_status bpt_dataset_get_record(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                                  bpt_record *record, uint32_t *label) {
    BPT_TRY(check_request(dataset, split, i, true));
    return blame_pages(dataset, get_record(dataset, split, i, record, label));
}

/* Of a dataset that is all here. */
static bpt_status get_stored(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                             const uint8_t **pixels, uint32_t *label) {
    const bpt__records *r = &dataset->records[split->number];
    uint32_t k;
    const uint32_t v = bpt__dataset_value(dataset, split, i, &k);
    const bpt__stored_value value = r->values[v];
    const bpt__value_place place = bpt__dataset_place(dataset, split, v);
    BPT_TRY(check_value(dataset, split, v));
    const uint32_t found = bpt__value_label(value.data, k);
    if (found >= dataset->info->n_classes)
        return bpt__dataset_damaged(dataset, split, v, "a label is out of range");
    *label = found;
    *pixels = bpt__value_pixels(value.data, dataset->record_bytes, place.n, k);
    return BPT_OK;
}

bpt_status bpt_dataset_get(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                           const uint8_t **pixels, uint32_t *label) {
    BPT_TRY(check_request(dataset, split, i, false));
    return blame_pages(dataset, dataset->parts ? get_kept(dataset, split, i, pixels, label)
                                               : get_stored(dataset, split, i, pixels, label));
}
