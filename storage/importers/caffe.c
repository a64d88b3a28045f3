/* Caffe's LMDB: one database without a name, a Datum to a value, in the order of the keys. Data are
 * planes as OpenCV has them (blue, green, red; the importer turns them round) or, where `encoded`
 * is set, an image file, whose colours need no turning.
 *
 * The file is walked before LMDB follows it, as a dataset's is, and nothing is written beside it,
 * no lock file either: nobody may change it meanwhile. A first pass reads all labels, so that the
 * number of classes is known before the work begins. */
#include "base/memory.h"
#include "base/text.h"
#include "storage/environment/environment.h"
#include "storage/importers/datum.h"
#include "storage/importers/importer.h"

#include <stdio.h>
#include <string.h>

static const bpt__environment_kind caffe_files = {
    .what = "LMDB",
    .missing_hint = "name the folder that holds data.mdb",
    .damaged_hint =
        "copy it again from where it was made; datasets of bpt's own are copied by "
        "bpt-ingest merge",
    .lost_hint = "copy it again; nobody may write over it while it is read",
    .data = "data.mdb",
    .foreign = true,
    .rules = {.spare_bytes = (uint64_t)1 << 45, .records_in_root = true, .any_map = true},
};

typedef struct caffe {
    const char *path; /* borrowed */
    bool rgb;
    MDB_env *env;
    MDB_txn *txn;
    MDB_cursor *cursor; /* at the item named last */
    uint64_t next;
    bpt_import_plan plan;
} caffe;

static void caffe_close(void *import) {
    caffe *x = import;
    if (!x) return;
    if (x->cursor) mdb_cursor_close(x->cursor);
    bpt__environment_close(x->env, x->txn);
    bpt_free(x);
}

/* ---- items ---- */

/* The key stands before its value in the item's own memory, as a text. */
static void caffe_describe(void *import, const bpt_import_item *item, char *name, size_t size) {
    const caffe *x = import;
    char key[128];
    bpt_text_escape((const char *)item->owned.bytes, key, sizeof key);
    snprintf(name, size, "%s: key %s", x->path, key);
}

static bpt_status remember_key(const MDB_val *key, bpt_import_item *item) {
    BPT_TRY(BPT_GROW("key", key->mv_size + 1, &item->owned.bytes, &item->owned.capacity));
    memcpy(item->owned.bytes, key->mv_data, key->mv_size);
    item->owned.bytes[key->mv_size] = 0;
    return BPT_OK;
}

static bpt_status caffe_next(void *import, bpt_import_item *item) {
    caffe *x = import;
    MDB_val key, value;
    const int code = mdb_cursor_get(x->cursor, &key, &value, x->next ? MDB_NEXT : MDB_FIRST);
    if (code != 0) return bpt__lmdb_fail(code, "read", x->path);
    BPT_TRY(remember_key(&key, item));
    item->bytes = value.mv_data;
    item->size = value.mv_size;
    item->number = x->next++;
    return BPT_OK;
}

static bpt_status bad_datum(caffe *x, const bpt_import_item *item, const char *what) {
    char name[BPT_IMPORT_NAME_SIZE];
    caffe_describe(x, item, name, sizeof name);
    return bpt_fail(BPT_EDATA, "%s: %s", name, what);
}

static bpt_status check_planes(caffe *x, const bpt_import_item *item, const bpt__datum *d) {
    if (d->channels < 1 || d->height < 1 || d->width < 1)
        return bad_datum(x, item, "a Datum without channels, height and width");
    size_t size;
    if (bpt_size_multiply((size_t)d->channels * (size_t)d->height, (size_t)d->width, &size) ==
            BPT_OK &&
        size == d->n_data)
        return BPT_OK;
    char text[128];
    snprintf(text, sizeof text, "a Datum of %dx%dx%d with %zu bytes of data", d->channels,
             d->height, d->width, d->n_data);
    return bad_datum(x, item, text);
}

static bpt_status read_datum(caffe *x, const bpt_import_item *item, bpt__datum *d) {
    const char *wrong = bpt__datum_read(item->bytes, item->size, d);
    if (wrong) {
        const bpt_status status = bad_datum(x, item, wrong);
        bpt_hint("is it a database of Caffe's, with a Datum to a value?");
        return status;
    }
    if (d->has_floats) {
        const bpt_status status = bad_datum(x, item, "its float_data cannot be stored as pixels");
        bpt_hint("make the database of images (convert_imageset), not of features");
        return status;
    }
    if (d->label < 0 || d->label >= BPT_IMPORT_MAX_CLASSES) {
        char text[64];
        snprintf(text, sizeof text, "label %d is outside of 0 to %d", d->label,
                 BPT_IMPORT_MAX_CLASSES - 1);
        return bad_datum(x, item, text);
    }
    if (d->n_data == 0) return bad_datum(x, item, "a Datum without data");
    if (d->encoded && d->n_data > BPT_IMPORT_MAX_ENCODED)
        return bad_datum(x, item, "an image file too large to be one");
    return d->encoded ? BPT_OK : check_planes(x, item, d);
}

/* Blue, green, red become red, green, blue. */
static bpt_status turn_round(const bpt__datum *d, bpt_import_buffer *buffer) {
    const size_t plane = (size_t)d->height * (size_t)d->width;
    BPT_TRY(BPT_GROW("image", 3 * plane, &buffer->bytes, &buffer->capacity));
    for (size_t c = 0; c < 3; c++)
        memcpy(buffer->bytes + c * plane, d->data + (2 - c) * plane, plane);
    return BPT_OK;
}

static bpt_status caffe_load(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                             bpt_import_image *image) {
    caffe *x = import;
    bpt__datum d;
    BPT_TRY(read_datum(x, item, &d));
    *image = (bpt_import_image){
        .label = (uint32_t)d.label, .encoded = d.encoded, .bytes = d.data, .size = d.n_data};
    if (d.encoded) return BPT_OK;
    image->C = (uint32_t)d.channels;
    image->H = (uint32_t)d.height;
    image->W = (uint32_t)d.width;
    if (d.channels == 3 && !x->rgb) {
        BPT_TRY(turn_round(&d, buffer));
        image->bytes = buffer->bytes;
    }
    return BPT_OK;
}

/* Values are used where LMDB's map has them. */
static bpt_status caffe_check(void *import) {
    const caffe *x = import;
    return bpt__environment_lost(x->env) ? bpt__environment_settle(x->env, BPT_OK) : BPT_OK;
}

/* ---- begin ---- */

/* Labels of bad items do not count: whoever loads them learns what is wrong. */
static bpt_status read_labels(caffe *x) {
    MDB_val key, value;
    bpt_import_plan *plan = &x->plan;
    int code = mdb_cursor_get(x->cursor, &key, &value, MDB_FIRST);
    for (; code == 0; code = mdb_cursor_get(x->cursor, &key, &value, MDB_NEXT)) {
        bpt__datum d;
        const bool sound = !bpt__datum_read(value.mv_data, value.mv_size, &d) && d.label >= 0 &&
                           d.label < BPT_IMPORT_MAX_CLASSES;
        if (sound && (uint32_t)d.label >= plan->n_classes) plan->n_classes = (uint32_t)d.label + 1;
        plan->count++;
    }
    BPT_TRY(bpt__environment_settle(x->env, BPT_OK));
    if (code != MDB_NOTFOUND) return bpt__lmdb_fail(code, "read", x->path);
    if (plan->count == 0) return bpt_fail(BPT_EDATA, "%s holds no images", x->path);
    if (plan->n_classes == 0) plan->n_classes = 1; /* all are bad */
    return BPT_OK;
}

static bpt_status open_environment(caffe *x) {
    const bpt_status status =
        bpt__environment_read(&caffe_files, x->path, false, NULL, NULL, &x->env, &x->txn);
    if (status == BPT_ECORRUPT)
        bpt_hint("is it one of Caffe's? if so, copy it again; nobody may write it meanwhile");
    BPT_TRY(status);
    MDB_dbi root;
    int code = mdb_dbi_open(x->txn, NULL, 0, &root);
    if (code == 0) code = mdb_cursor_open(x->txn, root, &x->cursor);
    return code == 0 ? BPT_OK : bpt__lmdb_fail(code, "read", x->path);
}

static bpt_status caffe_open(const bpt_import_source *source, bpt_import_plan *plan,
                             void **import) {
    if (source->n_files != 1)
        return bpt_fail(BPT_EUSAGE, "caffe takes one LMDB, not %zu", source->n_files);
    caffe *x;
    BPT_TRY(BPT_NEW("caffe import", 1, &x));
    x->path = source->files[0];
    x->rgb = source->rgb;
    bpt_status status = open_environment(x);
    if (status == BPT_OK) status = read_labels(x);
    if (status != BPT_OK) {
        caffe_close(x);
        return status;
    }
    *plan = x->plan;
    *import = x;
    return BPT_OK;
}

const bpt_importer bpt__import_caffe = {.name = "caffe",
                                        .open = caffe_open,
                                        .next = caffe_next,
                                        .load = caffe_load,
                                        .check = caffe_check,
                                        .describe = caffe_describe,
                                        .close = caffe_close};
