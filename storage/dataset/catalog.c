#include "storage/dataset/catalog.h"

#include "base/checksum.h"
#include "base/json.h"
#include "base/memory.h"
#include "storage/dataset/names.h"
#include "storage/environment/environment.h"
#include "storage/images/image.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

_Static_assert(BPT__MAX_INTAKES + 8 <= BPT__MAX_DATABASES, "intakes, and what a writer has beside");

/* What a bpt_split points to. */
typedef struct split_store {
    bpt_json_doc *doc; /* owns the texts */
    uint64_t *per_class;
    double *mean, *std;
    bpt_intake *intakes;      /* shape [n] */
    bpt__location *locations; /* likewise */
    size_t n;
} split_store;

struct bpt__catalog {
    bpt_dataset_info info;
    char *path;
    bpt_json_doc *doc; /* owns the texts of the schema */
    const char **classes;
    bpt_split *splits;   /* shape [info.n_splits] */
    split_store *stores; /* likewise */
    size_t splits_capacity, stores_capacity;
    size_t n_intakes; /* of all splits */
};

const bpt_dataset_info *bpt__catalog_info(const bpt__catalog *catalog) {
    return &catalog->info;
}

void bpt__catalog_set_size(bpt__catalog *catalog, uint32_t H, uint32_t W) {
    catalog->info.H = H;
    catalog->info.W = W;
}

const bpt__location *bpt__catalog_location(const bpt__catalog *catalog, size_t s, size_t p) {
    return &catalog->stores[s].locations[p];
}

const bpt_split *bpt__catalog_find(const bpt__catalog *catalog, const char *name) {
    for (size_t s = 0; s < catalog->info.n_splits; s++)
        if (strcmp(catalog->splits[s].name, name) == 0) return &catalog->splits[s];
    return NULL;
}

void bpt__catalog_free(bpt__catalog *c) {
    if (!c) return;
    for (size_t s = 0; s < c->info.n_splits; s++) {
        split_store *store = &c->stores[s];
        bpt_json_doc_free(store->doc);
        bpt_free(store->per_class);
        bpt_free(store->mean);
        bpt_free(store->std);
        for (size_t p = 0; p < store->n; p++) {
            bpt_free((void *)(uintptr_t)store->intakes[p].sources);
            bpt_free(store->locations[p].database);
        }
        bpt_free(store->intakes);
        bpt_free(store->locations);
    }
    bpt_free(c->splits);
    bpt_free(c->stores);
    bpt_json_doc_free(c->doc);
    bpt_free(c->classes);
    bpt_free(c->path);
    bpt_free(c);
}

/* ---- reading ---- */

/* An entry of meta is the checksum of a text, then the text. */
static bpt_status open_entry(const bpt__catalog *c, const MDB_val *key, const MDB_val *value,
                             bpt_json_doc **doc) {
    uint64_t checksum;
    const char *text = (const char *)value->mv_data + sizeof checksum;
    bool sound = value->mv_size > sizeof checksum;
    if (sound) {
        memcpy(&checksum, value->mv_data, sizeof checksum);
        sound = le64toh(checksum) == bpt_checksum(text, value->mv_size - sizeof checksum);
    }
    if (!sound)
        return bpt_fail(BPT_ECORRUPT, "dataset %s: checksum mismatch in its schema, entry %.*s",
                        c->path, (int)key->mv_size, (const char *)key->mv_data);
    return bpt_json_parse(c->path, text, value->mv_size - sizeof checksum, doc);
}

/* @param object that has the key */
static bpt_status get_u32(const bpt_json_doc *d, const bpt_json *object, const char *key,
                          uint64_t min, uint64_t max, uint32_t *out) {
    uint64_t value;
    BPT_TRY(bpt_json_get_u64(d, object, key, min, max, &value));
    *out = (uint32_t)value;
    return BPT_OK;
}

static bpt_status get_texts(const bpt_json_doc *d, const bpt_json *object, const char *key,
                            const char ***out, size_t *n) {
    const bpt_json *array;
    const char **texts = NULL;
    BPT_TRY(bpt_json_get_array(d, object, key, &array));
    const size_t size = bpt_json_size(array);
    BPT_TRY(BPT_NEW(key, size, &texts));
    for (size_t i = 0; i < size; i++) {
        const bpt_status status = bpt_json_get_text(d, bpt_json_at(array, i), NULL, &texts[i]);
        if (status != BPT_OK) {
            bpt_free(texts);
            return status;
        }
    }
    *out = texts;
    *n = size;
    return BPT_OK;
}

static bpt_status find_array(const bpt__catalog *c, const bpt_json_doc *d, const char *key,
                             size_t size, const bpt_json **array) {
    BPT_TRY(bpt_json_get_array(d, bpt_json_root(d), key, array));
    if (bpt_json_size(*array) == size) return BPT_OK;
    return bpt_fail(BPT_EDATA, "dataset %s: %s has %zu entries, not %zu", c->path, key,
                    bpt_json_size(*array), size);
}

/* Moments of pixels in [0,1]: none is larger than 1, and none is smaller than that of one pixel
 * that differs among all that a dataset may hold, but 0. */
static bpt_status get_moments(const bpt__catalog *c, const bpt_json_doc *d, const char *key,
                              double **out) {
    const double least = 1e-22;
    const bpt_json *array;
    BPT_TRY(find_array(c, d, key, c->info.C, &array));
    BPT_TRY(BPT_NEW(key, c->info.C, out));
    for (size_t i = 0; i < c->info.C; i++) {
        double *x = &(*out)[i];
        BPT_TRY(bpt_json_get_real(d, bpt_json_at(array, i), NULL, x));
        if (*x != 0 && !(*x >= least && *x <= 1))
            return bpt_fail(BPT_EDATA, "dataset %s: %g is no %s of pixels", c->path, *x, key);
    }
    return BPT_OK;
}

static bpt_status get_counts(const bpt__catalog *c, const bpt_json_doc *d, const char *key,
                             size_t size, uint64_t **out) {
    const bpt_json *array;
    BPT_TRY(find_array(c, d, key, size, &array));
    BPT_TRY(BPT_NEW(key, size, out));
    for (size_t i = 0; i < size; i++)
        BPT_TRY(bpt_json_get_u64(d, bpt_json_at(array, i), NULL, 0, UINT32_MAX, &(*out)[i]));
    return BPT_OK;
}

static bpt_status read_shape(bpt__catalog *c) {
    const bpt_json *shape;
    BPT_TRY(find_array(c, c->doc, "shape", 3, &shape));
    uint32_t *const sides[] = {&c->info.C, &c->info.H, &c->info.W};
    uint64_t bytes = 1;
    for (size_t i = 0; i < 3; i++) {
        uint64_t side;
        BPT_TRY(
            bpt_json_get_u64(c->doc, bpt_json_at(shape, i), NULL, 1, BPT__MAX_RECORD_BYTES, &side));
        *sides[i] = (uint32_t)side;
        bytes *= side; /* three sides of at most 2^28, checked after each: no overflow */
        if (bytes > BPT__MAX_RECORD_BYTES)
            return bpt_fail(BPT_EDATA, "dataset %s: images of more than %d bytes", c->path,
                            BPT__MAX_RECORD_BYTES);
    }
    return BPT_OK;
}

static bpt_status read_channels(bpt__catalog *c) {
    const bpt_json *root = bpt_json_root(c->doc);
    BPT_TRY(get_u32(c->doc, root, "channels", 1, BPT_RECORD_MAX_C, &c->info.C));
    if (c->info.C != 2) return BPT_OK;
    return bpt_fail(BPT_EDATA, "dataset %s: encoded images of 2 channels", c->path);
}

const char *bpt__encoding_name(bool encoded) {
    return encoded ? "jpeg" : "raw";
}

static bpt_status read_schema(bpt__catalog *c, const MDB_val *key, const MDB_val *value) {
    BPT_TRY(open_entry(c, key, value, &c->doc));
    const bpt_json_doc *d = c->doc;
    const bpt_json *root = bpt_json_root(d);
    bpt_dataset_info *info = &c->info;
    BPT_TRY(get_u32(d, root, "format", 1, UINT32_MAX, &info->format));
    if (info->format > BPT_DATASET_FORMAT) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "dataset %s has format %u; this program reads formats up to %d",
                     c->path, info->format, BPT_DATASET_FORMAT);
        bpt_hint("use the bpt that wrote it or a newer one, or ingest the images again");
        return status;
    }
    BPT_TRY(bpt_json_get_text(d, root, "encoding", &info->encoding));
    info->encoded = info->format == BPT_DATASET_FORMAT_APPENDED
                        ? strcmp(info->encoding, bpt__encoding_name(true)) == 0
                        : info->format == BPT_DATASET_FORMAT_ENCODED;
    BPT_TRY(info->encoded ? read_channels(c) : read_shape(c));
    if (strcmp(info->encoding, bpt__encoding_name(info->encoded)) != 0)
        return bpt_fail(BPT_EDATA, "dataset %s: unknown encoding \"%s\"", c->path, info->encoding);
    const char *checksum;
    BPT_TRY(bpt_json_get_text(d, root, "checksum", &checksum));
    if (strcmp(checksum, BPT_CHECKSUM_NAME) != 0)
        return bpt_fail(BPT_EDATA, "dataset %s: unknown checksum \"%s\"", c->path, checksum);
    size_t n;
    BPT_TRY(get_texts(d, root, "classes", &c->classes, &n));
    if (n == 0 || n > BPT__MAX_CLASSES)
        return bpt_fail(BPT_EDATA, "dataset %s has %zu classes", c->path, n);
    BPT_TRY(bpt_class_names_check(c->path, c->classes, n, BPT_EDATA));
    info->classes = c->classes;
    info->n_classes = (uint32_t)n;
    return BPT_OK;
}

static bpt_status get_range(const bpt__catalog *c, const bpt_json_doc *d, const char *key,
                            uint32_t *least, uint32_t *most) {
    const bpt_json *array;
    uint64_t from, to;
    BPT_TRY(find_array(c, d, key, 2, &array));
    BPT_TRY(bpt_json_get_u64(d, bpt_json_at(array, 0), NULL, 1, BPT_IMAGE_MAX_SIDE, &from));
    BPT_TRY(bpt_json_get_u64(d, bpt_json_at(array, 1), NULL, from, BPT_IMAGE_MAX_SIDE, &to));
    *least = (uint32_t)from;
    *most = (uint32_t)to;
    return BPT_OK;
}

static bpt_status read_extent(const bpt__catalog *c, const bpt_json_doc *d, bpt_extent *e) {
    const bpt_json *root = bpt_json_root(d);
    BPT_TRY(get_range(c, d, "heights", &e->least_H, &e->most_H));
    BPT_TRY(get_range(c, d, "widths", &e->least_W, &e->most_W));
    BPT_TRY(bpt_json_get_u64(d, root, "pixels", 1, INT64_MAX, &e->pixels));
    BPT_TRY(bpt_json_get_u64(d, root, "most_pixels", 1, INT64_MAX, &e->most_pixels));
    return bpt_json_get_u64(d, root, "bytes", 1, INT64_MAX, &e->bytes);
}

/* @param p     number of the intake
 * @param object that describes it */
static bpt_status read_intake(bpt__catalog *c, bpt_split *split, split_store *store, size_t p,
                              const bpt_json *object) {
    const bpt_json_doc *d = store->doc;
    bpt_intake *intake = &store->intakes[p];
    bpt__location *location = &store->locations[p];
    const char **sources;
    BPT_TRY(get_u32(d, object, "count", 1, UINT32_MAX, &intake->count));
    BPT_TRY(get_u32(d, object, "pack", 1, c->info.encoded ? 1 : UINT32_MAX, &location->pack));
    BPT_TRY(bpt_json_get_u64(d, object, "generation", 1, UINT32_MAX, &location->generation));
    BPT_TRY(bpt_json_get_text(d, object, "importer", &intake->importer));
    BPT_TRY(bpt_json_get_u64(d, object, "seed", 0, INT64_MAX, &intake->seed));
    BPT_TRY(get_texts(d, object, "sources", &sources, &intake->n_sources));
    intake->sources = sources;
    return bpt_strf(&location->database, "%s@%" PRIu64, split->name, location->generation);
}

/* A split that nothing was appended to describes its one intake by itself. */
static bpt_status read_intakes(bpt__catalog *c, bpt_split *split, split_store *store) {
    const bpt_json *root = bpt_json_root(store->doc), *array = NULL;
    size_t n = 1;
    if (c->info.format == BPT_DATASET_FORMAT_APPENDED && bpt_json_find(root, "intakes")) {
        BPT_TRY(bpt_json_get_array(store->doc, root, "intakes", &array));
        n = bpt_json_size(array);
    }
    if (n == 0 || n > BPT__MAX_INTAKES - c->n_intakes)
        return bpt_fail(BPT_EDATA, "dataset %s: split %s has %zu intakes", c->path, split->name, n);
    BPT_TRY(BPT_NEW("intakes", n, &store->intakes));
    BPT_TRY(BPT_NEW("places of intakes", n, &store->locations));
    c->n_intakes += n;
    store->n = split->n_intakes = n;
    split->intakes = store->intakes;
    uint64_t count = 0;
    for (size_t p = 0; p < n; p++) {
        BPT_TRY(read_intake(c, split, store, p, array ? bpt_json_at(array, p) : root));
        count += store->intakes[p].count;
    }
    if (count == split->count) return BPT_OK;
    return bpt_fail(BPT_EDATA, "dataset %s: split %s has %u records, and its intakes %" PRIu64,
                    c->path, split->name, split->count, count);
}

static bpt_status read_split(bpt__catalog *c, const MDB_val *key, const MDB_val *value) {
    BPT_TRY(BPT_GROW("splits", c->info.n_splits + 1, &c->splits, &c->splits_capacity));
    BPT_TRY(BPT_GROW("splits", c->info.n_splits + 1, &c->stores, &c->stores_capacity));
    bpt_split *split = &c->splits[c->info.n_splits];
    split_store *store = &c->stores[c->info.n_splits];
    split->number = c->info.n_splits++; /* from here on bpt__catalog_free() cleans up */
    c->info.splits = c->splits;
    BPT_TRY(open_entry(c, key, value, &store->doc));
    const bpt_json_doc *d = store->doc;
    const bpt_json *root = bpt_json_root(d);
    BPT_TRY(bpt_json_get_text(d, root, "name", &split->name));
    const size_t prefix = strlen(BPT__SPLIT_PREFIX);
    if (key->mv_size != prefix + strlen(split->name) ||
        memcmp((const char *)key->mv_data + prefix, split->name, key->mv_size - prefix) != 0)
        return bpt_fail(BPT_ECORRUPT, "dataset %s: entry %.*s describes split %s", c->path,
                        (int)key->mv_size, (const char *)key->mv_data, split->name);
    if (!bpt__is_split_name(split->name))
        return bpt_fail(BPT_EDATA, "dataset %s: \"%s\" is no name for a split", c->path,
                        split->name);
    BPT_TRY(get_u32(d, root, "count", 1, UINT32_MAX, &split->count));
    if (c->info.encoded) BPT_TRY(read_extent(c, d, &split->extent));
    BPT_TRY(get_counts(c, d, "per_class", c->info.n_classes, &store->per_class));
    BPT_TRY(get_moments(c, d, "mean", &store->mean));
    BPT_TRY(get_moments(c, d, "std", &store->std));
    uint64_t in_classes = 0;
    for (uint32_t i = 0; i < c->info.n_classes; i++) in_classes += store->per_class[i];
    if (in_classes != split->count)
        return bpt_fail(BPT_EDATA, "dataset %s: split %s has %u records, and its classes %" PRIu64,
                        c->path, split->name, split->count, in_classes);
    split->per_class = store->per_class;
    split->mean = store->mean;
    split->std = store->std;
    return read_intakes(c, split, store);
}

static bpt_status read_entries(bpt__catalog *c, MDB_cursor *cursor) {
    MDB_val key, value;
    int code;
    for (code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); code == 0;
         code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        const size_t prefix = strlen(BPT__SPLIT_PREFIX);
        if (key.mv_size == strlen(BPT__SCHEMA_KEY) &&
            memcmp(key.mv_data, BPT__SCHEMA_KEY, key.mv_size) == 0)
            BPT_TRY(read_schema(c, &key, &value));
        else if (c->info.format != 0 && key.mv_size > prefix &&
                 c->info.n_splits < BPT__MAX_SPLITS &&
                 memcmp(key.mv_data, BPT__SPLIT_PREFIX, prefix) == 0)
            BPT_TRY(read_split(c, &key, &value));
        else
            return bpt_fail(BPT_ECORRUPT, "dataset %s: unknown entry %.*s in its schema", c->path,
                            (int)key.mv_size, (const char *)key.mv_data);
    }
    return code == MDB_NOTFOUND ? BPT_OK : bpt__lmdb_fail(code, "read", c->path);
}

/* `meta` is the first database that a writer makes: without it there may be none. */
static bpt_status expect_nothing(MDB_txn *txn, const char *path) {
    MDB_dbi root;
    MDB_stat stat;
    int code = mdb_dbi_open(txn, NULL, 0, &root);
    if (code == 0) code = mdb_stat(txn, root, &stat);
    if (code != 0) return bpt__lmdb_fail(code, "read", path);
    if (stat.ms_entries == 0) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_ECORRUPT, "%s has no database `meta`", path);
    bpt_hint("either it is damaged, or an LMDB file that bpt did not make");
    return status;
}

bpt_status bpt__catalog_read(MDB_txn *txn, const char *path, bpt__catalog **out) {
    bpt__catalog *c;
    BPT_TRY(BPT_NEW("catalog", 1, &c));
    MDB_dbi meta;
    MDB_cursor *cursor = NULL;
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_strdup(path, &c->path), done);
    c->info.path = c->path;
    int code = mdb_dbi_open(txn, BPT__META, 0, &meta);
    if (code == MDB_NOTFOUND) {
        status = expect_nothing(txn, path);
        goto done;
    }
    if (code == 0) code = mdb_cursor_open(txn, meta, &cursor);
    if (code != 0) {
        status = bpt__lmdb_fail(code, "read", path);
        goto done;
    }
    status = read_entries(c, cursor);
    mdb_cursor_close(cursor);
done:
    if (status == BPT_OK)
        *out = c;
    else
        bpt__catalog_free(c);
    return status;
}

static bpt_status expect_database(const bpt__catalog *c, MDB_txn *txn, MDB_dbi root,
                                  const char *name) {
    MDB_val key = {strlen(name), (void *)(uintptr_t)name}, value;
    const int code = mdb_get(txn, root, &key, &value);
    if (code == 0) return BPT_OK;
    if (code != MDB_NOTFOUND) return bpt__lmdb_fail(code, "read", c->path);
    const bpt_status status =
        bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: its database %s is missing", c->path, name);
    bpt_hint("%s", bpt__dataset_files.damaged_hint);
    return status;
}

bpt_status bpt__catalog_expect_databases(const bpt__catalog *c, MDB_txn *txn) {
    MDB_dbi root;
    const int code = mdb_dbi_open(txn, NULL, 0, &root);
    if (code != 0) return bpt__lmdb_fail(code, "read", c->path);
    for (size_t s = 0; s < c->info.n_splits; s++)
        for (size_t p = 0; p < c->stores[s].n; p++)
            BPT_TRY(expect_database(c, txn, root, c->stores[s].locations[p].database));
    return BPT_OK;
}
