/* How a split comes to be, in the order of the file: the lock, what must agree with the dataset
 * that is there, the staging database, records into values, values into chunks, the switch. */
#include "storage/writer.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/catalog.h"
#include "storage/environment.h"
#include "storage/statistics.h"
#include "storage/value.h"

#include <sys/file.h>
#include <sys/statvfs.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITER_LOCK "writer.lock"

enum {
    CHUNK_BYTES = 16 * 1024 * 1024, /* of values to a transaction */
    MAX_RECORD_BYTES = 1 << 28,
    MAX_CLASSES = 65536,
    MAX_SPLITS = 64,
    MAX_NAME = 64,
};

struct bpt_writer {
    char *path;
    int lock;     /* open file that holds the writer lock, -1 for none */
    bool created; /* the directory: remove it if nothing comes of it */
    bool committed;
    MDB_env *env;
    bpt__catalog *catalog; /* as it was before */
    MDB_dbi staging;
    bool staged; /* the staging database exists */

    bpt_dataset_info info; /* the schema to be */
    char **classes;        /* shape [info.n_classes] */
    bpt_split split;
    bpt__location location; /* owns its name */
    char *name;
    char *importer;
    char **sources; /* shape [split.n_sources] */
    bpt__statistics statistics;
    uint64_t database_id;

    size_t record_bytes;
    size_t value_bytes; /* of a full value, padded */
    size_t page_bytes;
    uint8_t *chunk; /* shape [chunk_values, value_bytes]; the value under way is the last */
    size_t chunk_values;
    size_t n_sealed;   /* whole values in the chunk */
    size_t tail_bytes; /* size of the last sealed value, which may be a shorter one */
    uint32_t n_open;   /* records in the value under way */
    uint32_t n_values; /* stored in earlier chunks */
};

/* ---- arguments ---- */

static bool is_utf8(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        const int n = *p < 0x80                 ? 0
                      : *p >= 0xC2 && *p < 0xE0 ? 1
                      : (*p & 0xF0) == 0xE0     ? 2
                      : *p >= 0xF0 && *p < 0xF5 ? 3
                                                : -1;
        if (n < 0) return false;
        const unsigned char lead = *p++, next = *p;
        if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
            (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F))
            return false;
        for (int i = 0; i < n; i++)
            if ((*p++ & 0xC0) != 0x80) return false;
    }
    return true;
}

static bpt_status check_name(const char *name) {
    const size_t length = strlen(name);
    bool good = length >= 1 && length <= MAX_NAME && isalnum((unsigned char)name[0]);
    for (size_t i = 0; i < length; i++)
        good &= isalnum((unsigned char)name[i]) || strchr("._-", name[i]) != NULL;
    if (good) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "\"%s\" is no name for a split", name);
    bpt_hint("use up to %d letters, digits, '.', '_' and '-', beginning with a letter or digit",
             MAX_NAME);
    return status;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bpt_status check_class_names(const char *const *names, uint32_t n) {
    const char **sorted;
    BPT_TRY(BPT_NEW("class names", n, &sorted));
    memcpy(sorted, names, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_texts);
    bpt_status status = BPT_OK;
    for (uint32_t i = 0; i < n && status == BPT_OK; i++)
        if (!sorted[i][0] || !is_utf8(sorted[i]))
            status = bpt_fail(BPT_EUSAGE, "\"%s\" is no class name: empty or not UTF-8", sorted[i]);
        else if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            status = bpt_fail(BPT_EUSAGE, "the class name \"%s\" is given twice", sorted[i]);
    bpt_free(sorted);
    return status;
}

static bpt_status check_options(const bpt_writer_options *o) {
    BPT_TRY(check_name(o->split));
    const uint64_t bytes = (uint64_t)o->C * o->H;
    if (bytes == 0 || o->W == 0 || bytes > MAX_RECORD_BYTES || bytes * o->W > MAX_RECORD_BYTES)
        return bpt_fail(BPT_EUSAGE, "images of %ux%ux%u cannot be stored (at most %d bytes)", o->C,
                        o->H, o->W, MAX_RECORD_BYTES);
    if (o->n_classes == 0 || o->n_classes > MAX_CLASSES)
        return bpt_fail(BPT_EUSAGE, "%u classes cannot be stored (1 to %d)", o->n_classes,
                        MAX_CLASSES);
    return o->class_names ? check_class_names(o->class_names, o->n_classes) : BPT_OK;
}

/* ---- the directory and its lock ---- */

static bpt_status lock_directory(bpt_writer *w) {
    char *file;
    BPT_TRY(bpt_strf(&file, "%s/" WRITER_LOCK, w->path));
    bpt_status status = BPT_OK;
    w->lock = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (w->lock < 0) {
        status = bpt_fail_errno(errno, "open", file);
    } else if (flock(w->lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            status = bpt_fail_errno(errno, "lock", file);
        } else {
            status = bpt_fail(BPT_EIO, "dataset %s is being written by another process", w->path);
            bpt_hint("wait until it has ended, then run this again");
        }
    }
    bpt_free(file);
    return status;
}

/* A folder that somebody keeps other things in is no place for a new dataset. */
static bpt_status refuse_other_folder(const char *path) {
    DIR *dir = opendir(path);
    if (!dir) return bpt_fail_errno(errno, "read", path);
    bool ours = false;
    char other[256] = "";
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (strcmp(e->d_name, "data.mdb") == 0)
            ours = true;
        else if (e->d_name[0] != '.' && strcmp(e->d_name, "lock.mdb") != 0 &&
                 strcmp(e->d_name, WRITER_LOCK) != 0)
            snprintf(other, sizeof other, "%s", e->d_name);
    closedir(dir);
    if (ours || !other[0]) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EEXIST, "%s is no dataset, and not empty: it holds %s", path, other);
    bpt_hint("name a dataset, an empty directory or one that does not exist yet");
    return status;
}

static bpt_status prepare_directory(bpt_writer *w) {
    w->created = !bpt_path_exists(w->path);
    BPT_TRY(bpt_dir_create(w->path, false));
    if (!w->created) BPT_TRY(refuse_other_folder(w->path));
    const bpt_status status = lock_directory(w);
    /* What somebody else is filling is not ours to remove. */
    if (status != BPT_OK) w->created = false;
    return status;
}

/* ---- what the dataset is and will be ---- */

static bpt_status copy_texts(const char *const *texts, size_t n, char ***out) {
    BPT_TRY(BPT_NEW("names", n, out));
    for (size_t i = 0; i < n; i++) BPT_TRY(bpt_strdup(texts[i], &(*out)[i]));
    return BPT_OK;
}

static void free_texts(char **texts, size_t n) {
    for (size_t i = 0; texts && i < n; i++) bpt_free(texts[i]);
    bpt_free(texts);
}

static bpt_status number_classes(uint32_t n, char ***out) {
    BPT_TRY(BPT_NEW("names", n, out));
    for (uint32_t i = 0; i < n; i++) BPT_TRY(bpt_strf(&(*out)[i], "%u", i));
    return BPT_OK;
}

static bpt_status differs(const bpt_writer *w, const bpt_writer_options *o) {
    const bpt_dataset_info *old = bpt__catalog_info(w->catalog);
    if (old->C != o->C || old->H != o->H || old->W != o->W) {
        const bpt_status status = bpt_fail(
            BPT_EDATA, "dataset %s holds images of %ux%ux%u (CxHxW), the new ones are %ux%ux%u",
            w->path, old->C, old->H, old->W, o->C, o->H, o->W);
        bpt_hint("all splits of a dataset have one shape: use another --out for these");
        return status;
    }
    bool same = o->class_names ? o->n_classes == old->n_classes : o->n_classes <= old->n_classes;
    for (uint32_t i = 0; o->class_names && same && i < o->n_classes; i++)
        same = strcmp(o->class_names[i], old->classes[i]) == 0;
    if (same) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EDATA, "dataset %s has %u classes (\"%s\" ...), the new split has %u%s", w->path,
        old->n_classes, old->classes[0], o->n_classes, o->class_names ? " or other ones" : "");
    bpt_hint(
        "all splits of a dataset share their classes: use another --out, or say all classes "
        "when the first split is ingested");
    return status;
}

/* Sets info, classes and location from what is there and what is wanted. */
static bpt_status merge_schema(bpt_writer *w, const bpt_writer_options *o) {
    const bpt_dataset_info *old = bpt__catalog_info(w->catalog);
    const bpt_split *replaced = bpt__catalog_find(w->catalog, o->split);
    if (replaced && !o->replace) {
        const bpt_status status =
            bpt_fail(BPT_EEXIST, "dataset %s has a split \"%s\" already (%u images)", w->path,
                     o->split, replaced->count);
        bpt_hint("--force replaces it; --split NAME gives the new one another name");
        return status;
    }
    if (!replaced && old->n_splits == MAX_SPLITS)
        return bpt_fail(BPT_EUSAGE, "dataset %s has %d splits, which is the limit", w->path,
                        MAX_SPLITS);
    const bool keep = old->n_splits > (replaced ? 1 : 0);
    if (keep) BPT_TRY(differs(w, o));
    w->info = (bpt_dataset_info){.C = o->C, .H = o->H, .W = o->W};
    w->info.n_classes = keep ? old->n_classes : o->n_classes;
    if (keep)
        BPT_TRY(copy_texts(old->classes, old->n_classes, &w->classes));
    else if (o->class_names)
        BPT_TRY(copy_texts(o->class_names, o->n_classes, &w->classes));
    else
        BPT_TRY(number_classes(o->n_classes, &w->classes));
    w->info.classes = (const char *const *)w->classes;
    w->location.generation =
        replaced ? bpt__catalog_location(w->catalog, replaced->number)->generation + 1 : 1;
    return bpt_strf(&w->location.database, "%s@%llu", o->split,
                    (unsigned long long)w->location.generation);
}

static bpt_status describe_split(bpt_writer *w, const bpt_writer_options *o) {
    BPT_TRY(bpt_strdup(o->split, &w->name));
    BPT_TRY(bpt_strdup(o->importer, &w->importer));
    w->split = (bpt_split){.name = w->name, .importer = w->importer, .seed = o->seed};
    w->split.n_sources = o->n_sources;
    BPT_TRY(copy_texts(o->sources, o->n_sources, &w->sources));
    /* JSON takes UTF-8 only, file names can be anything. */
    for (size_t i = 0; i < o->n_sources; i++)
        if (!is_utf8(w->sources[i]))
            for (char *p = w->sources[i]; *p; p++)
                if ((unsigned char)*p >= 0x80) *p = '?';
    w->split.sources = (const char *const *)w->sources;
    w->database_id = bpt__database_id(w->location.database);
    return bpt__statistics_init(&w->statistics, w->info.C, (size_t)w->info.H * w->info.W,
                                w->info.n_classes);
}

static bpt_status read_catalog(bpt_writer *w) {
    MDB_txn *txn;
    const int code = mdb_txn_begin(w->env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", w->path);
    const bpt_status status = bpt__catalog_read(txn, w->path, &w->catalog);
    mdb_txn_abort(txn);
    return status;
}

/* ---- transactions ---- */

/* The body of a write transaction. Sets *code to LMDB's where LMDB is what failed. */
typedef bpt_status (*txn_body)(bpt_writer *w, MDB_txn *txn, int *code);

static bpt_status grow_map(bpt_writer *w) {
    MDB_envinfo info;
    mdb_env_info(w->env, &info);
    const size_t need = 2 * w->chunk_values * w->value_bytes + (1 << 20);
    const size_t limit = (size_t)64 << 30; /* double up to this, then add it */
    const size_t step = info.me_mapsize < limit ? info.me_mapsize : limit;
    size_t size = info.me_mapsize + (step > need ? step : need);
    size = (size + w->page_bytes - 1) / w->page_bytes * w->page_bytes;
    const int code = mdb_env_set_mapsize(w->env, size);
    if (code != 0) return bpt__lmdb_fail(code, "enlarge the map of", w->path);
    bpt_debug("map of %s grown to %zu bytes", w->path, size);
    return BPT_OK;
}

/* A write that the device cuts short reaches LMDB's callers as EIO: look at the room left. */
static bpt_status write_failure(const bpt_writer *w, int code) {
    struct statvfs info;
    const size_t need = w->chunk_values * w->value_bytes + (1 << 20);
    if (code == EIO && statvfs(w->path, &info) == 0 &&
        (uint64_t)info.f_bavail * info.f_frsize < need)
        code = ENOSPC;
    const bpt_status status = bpt__lmdb_fail(code, "write", w->path);
    if (status == BPT_ENOSPC)
        bpt_hint("make room and run this again; the splits that were there are unharmed");
    return status;
}

/* Runs a body in a transaction, again with a larger map where the map is too small. */
static bpt_status in_transaction(bpt_writer *w, txn_body body) {
    for (;;) {
        MDB_txn *txn;
        int code = mdb_txn_begin(w->env, NULL, 0, &txn);
        if (code != 0) return write_failure(w, code);
        const bpt_status status = body(w, txn, &code);
        if (status == BPT_OK && code == 0)
            code = mdb_txn_commit(txn);
        else
            mdb_txn_abort(txn);
        BPT_TRY(status);
        if (code == 0) return BPT_OK;
        if (code != MDB_MAP_FULL) return write_failure(w, code);
        BPT_TRY(grow_map(w));
    }
}

static int drop_database(MDB_txn *txn, const char *name) {
    MDB_dbi dbi;
    const int code = mdb_dbi_open(txn, name, 0, &dbi);
    if (code == MDB_NOTFOUND) return 0;
    return code == 0 ? mdb_drop(txn, dbi, 1) : code;
}

static bool is_in_use(const bpt_writer *w, const char *name, size_t length) {
    if (length == strlen(BPT__META) && memcmp(name, BPT__META, length) == 0) return true;
    for (size_t s = 0; s < bpt__catalog_info(w->catalog)->n_splits; s++) {
        const char *database = bpt__catalog_location(w->catalog, s)->database;
        if (length == strlen(database) && memcmp(name, database, length) == 0) return true;
    }
    return false;
}

/* Drops one database that belongs to no split: what a killed writer left. *found: there was one. */
static bpt_status drop_leftover(bpt_writer *w, MDB_txn *txn, bool *found, int *code) {
    MDB_dbi root;
    MDB_cursor *cursor;
    MDB_val key, value;
    *found = false;
    *code = mdb_dbi_open(txn, NULL, 0, &root);
    if (*code == 0) *code = mdb_cursor_open(txn, root, &cursor);
    if (*code != 0) return BPT_OK;
    char *name = NULL;
    bpt_status status = BPT_OK;
    for (MDB_cursor_op op = MDB_FIRST; !name; op = MDB_NEXT) {
        *code = mdb_cursor_get(cursor, &key, &value, op);
        if (*code != 0) break;
        if (is_in_use(w, key.mv_data, key.mv_size)) continue;
        BPT_TRY_GOTO(status, bpt_strf(&name, "%.*s", (int)key.mv_size, (char *)key.mv_data), done);
    }
    if (*code == MDB_NOTFOUND) *code = 0;
done:
    mdb_cursor_close(cursor);
    if (name) {
        bpt_info("dropping %s, which an interrupted ingestion left in %s", name, w->path);
        *found = true;
        *code = drop_database(txn, name);
    }
    bpt_free(name);
    return status;
}

static bpt_status begin_staging(bpt_writer *w, MDB_txn *txn, int *code) {
    for (bool found = true; found && *code == 0;) BPT_TRY(drop_leftover(w, txn, &found, code));
    if (*code == 0) *code = mdb_dbi_open(txn, w->location.database, MDB_CREATE, &w->staging);
    return BPT_OK;
}

static bpt_status drop_staging(bpt_writer *w, MDB_txn *txn, int *code) {
    *code = mdb_drop(txn, w->staging, 1);
    return BPT_OK;
}

static bpt_status store_chunk(bpt_writer *w, MDB_txn *txn, int *code) {
    for (size_t i = 0; i < w->n_sealed && *code == 0; i++) {
        uint8_t name[BPT__VALUE_KEY];
        bpt__value_key(w->n_values + (uint32_t)i, name);
        const size_t size = i + 1 < w->n_sealed ? w->value_bytes : w->tail_bytes;
        MDB_val key = {sizeof name, name}, value = {size, w->chunk + i * w->value_bytes};
        *code = mdb_put(txn, w->staging, &key, &value, MDB_APPEND);
    }
    return BPT_OK;
}

static bpt_status switch_over(bpt_writer *w, MDB_txn *txn, int *code) {
    const bpt_split *replaced = bpt__catalog_find(w->catalog, w->split.name);
    if (replaced)
        *code = drop_database(txn, bpt__catalog_location(w->catalog, replaced->number)->database);
    if (*code != 0) return BPT_OK;
    return bpt__catalog_write(txn, &w->info, &w->split, &w->location, code);
}

/* ---- records ---- */

static bpt_status flush_chunk(bpt_writer *w) {
    if (w->n_sealed == 0) return BPT_OK;
    BPT_TRY(in_transaction(w, store_chunk));
    w->n_values += (uint32_t)w->n_sealed;
    w->n_sealed = 0;
    return BPT_OK;
}

/* Ends the value under way. One that is not full is moved together and is the split's last. */
static bpt_status seal_value(bpt_writer *w) {
    const uint32_t n = w->n_open, pack = w->location.pack;
    uint8_t *value = w->chunk + w->n_sealed * w->value_bytes;
    if (n < pack)
        memmove((void *)(uintptr_t)bpt__value_pixels(value, w->record_bytes, n, 0),
                bpt__value_pixels(value, w->record_bytes, pack, 0), n * w->record_bytes);
    const size_t used = bpt__value_bytes(w->record_bytes, n);
    w->tail_bytes = bpt__value_padded(used, w->page_bytes);
    memset(value + used, 0, w->tail_bytes - used);
    const uint64_t v = (uint64_t)w->n_values + w->n_sealed;
    bpt__value_seal(value, w->tail_bytes,
                    &(bpt__value_place){.database = w->database_id, .first = v * pack, .n = n});
    w->n_open = 0;
    if (++w->n_sealed == w->chunk_values) BPT_TRY(flush_chunk(w));
    return BPT_OK;
}

bpt_status bpt_writer_append(bpt_writer *w, const uint8_t *pixels, uint32_t label) {
    if (label >= w->info.n_classes)
        return bpt_fail(BPT_EDATA, "image %llu has label %u, but there are %u classes (0 to %u)",
                        (unsigned long long)w->statistics.count, label, w->info.n_classes,
                        w->info.n_classes - 1);
    if (w->statistics.count == UINT32_MAX)
        return bpt_fail(BPT_EFULL, "a split holds at most %u images", UINT32_MAX);
    uint8_t *value = w->chunk + w->n_sealed * w->value_bytes;
    const uint16_t stored = htole16((uint16_t)label);
    memcpy(value + BPT__VALUE_HEADER + w->n_open * sizeof stored, &stored, sizeof stored);
    memcpy(
        (void *)(uintptr_t)bpt__value_pixels(value, w->record_bytes, w->location.pack, w->n_open),
        pixels, w->record_bytes);
    bpt__statistics_add(&w->statistics, pixels, label);
    return ++w->n_open == w->location.pack ? seal_value(w) : BPT_OK;
}

/* ---- begin and end ---- */

static bpt_status plan_values(bpt_writer *w) {
    MDB_stat stat;
    mdb_env_stat(w->env, &stat);
    w->page_bytes = stat.ms_psize;
    w->record_bytes = (size_t)w->info.C * w->info.H * w->info.W;
    w->location.pack = bpt__value_pack(w->record_bytes, w->page_bytes);
    w->value_bytes =
        bpt__value_padded(bpt__value_bytes(w->record_bytes, w->location.pack), w->page_bytes);
    w->chunk_values = CHUNK_BYTES / w->value_bytes;
    if (w->chunk_values == 0) w->chunk_values = 1;
    return bpt_alloc("write buffer", w->chunk_values, w->value_bytes, (void **)&w->chunk);
}

static bpt_status open_steps(bpt_writer *w, const char *path, const bpt_writer_options *o) {
    BPT_TRY(bpt_strdup(path, &w->path));
    BPT_TRY(prepare_directory(w));
    BPT_TRY(bpt__environment_write(path, &w->env));
    BPT_TRY(read_catalog(w));
    BPT_TRY(merge_schema(w, o));
    BPT_TRY(describe_split(w, o));
    BPT_TRY(plan_values(w));
    /* A chunk's head page may reach the disk late: losing the last chunk in a power cut loses
     * nothing that was promised. The switch is synchronous again. */
    mdb_env_set_flags(w->env, MDB_NOMETASYNC, 1);
    BPT_TRY(in_transaction(w, begin_staging));
    w->staged = true;
    return BPT_OK;
}

bpt_status bpt_writer_open(const char *path, const bpt_writer_options *options, bpt_writer **out) {
    BPT_TRY(check_options(options));
    bpt_writer *w;
    BPT_TRY(BPT_NEW("writer", 1, &w));
    w->lock = -1;
    const bpt_status status = open_steps(w, path, options);
    if (status == BPT_OK) {
        *out = w;
        return BPT_OK;
    }
    bpt_writer_close(w);
    return status;
}

static bpt_status sync_directories(const bpt_writer *w) {
    char *parent;
    BPT_TRY(bpt_dir_sync(w->path));
    BPT_TRY(bpt_strf(&parent, "%s/..", w->path));
    const bpt_status status = bpt_dir_sync(parent);
    bpt_free(parent);
    return status;
}

bpt_status bpt_writer_commit(bpt_writer *w) {
    if (w->statistics.count == 0)
        return bpt_fail(BPT_EDATA, "split %s would have no images", w->split.name);
    if (w->n_open > 0) BPT_TRY(seal_value(w));
    BPT_TRY(flush_chunk(w));
    double *mean = NULL, *std = NULL;
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("means", w->info.C, &mean), done);
    BPT_TRY_GOTO(status, BPT_NEW("deviations", w->info.C, &std), done);
    bpt__statistics_finish(&w->statistics, mean, std);
    w->split.count = (uint32_t)w->statistics.count;
    w->split.per_class = w->statistics.per_class;
    w->split.mean = mean;
    w->split.std = std;
    if (w->created) BPT_TRY_GOTO(status, sync_directories(w), done);
    mdb_env_set_flags(w->env, MDB_NOMETASYNC, 0);
    BPT_TRY_GOTO(status, in_transaction(w, switch_over), done);
    w->committed = true;
done:
    bpt_free(mean);
    bpt_free(std);
    return status;
}

/* Takes back what an unfinished writer has put into the dataset. Where that fails too (a full
 * disk), the next writer does it. Keeps the error that led here. */
static void undo(bpt_writer *w) {
    bpt_error error;
    bpt_error_get(&error);
    if (w->staged && !w->created) in_transaction(w, drop_staging);
    bpt_error_put(&error);
}

void bpt_writer_close(bpt_writer *w) {
    if (!w) return;
    if (!w->committed) undo(w);
    bpt__environment_close(w->env, NULL);
    if (w->created && !w->committed) {
        bpt_error error;
        bpt_error_get(&error);
        bpt_dir_remove(w->path);
        bpt_error_put(&error);
    }
    if (w->lock >= 0) close(w->lock);
    bpt__statistics_free(&w->statistics);
    free_texts(w->classes, w->info.n_classes);
    free_texts(w->sources, w->split.n_sources);
    bpt__catalog_free(w->catalog);
    bpt_free(w->location.database);
    bpt_free(w->name);
    bpt_free(w->importer);
    bpt_free(w->chunk);
    bpt_free(w->path);
    bpt_free(w);
}
