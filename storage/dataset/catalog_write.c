/* The description of a dataset as its writers put it. */
#include "base/checksum.h"
#include "base/json.h"
#include "base/memory.h"
#include "storage/dataset/catalog.h"

#include <endian.h>
#include <string.h>

static void put_texts(bpt_json_writer *w, const char *key, const char *const *texts, size_t n) {
    bpt_json_open_array(w, key);
    for (size_t i = 0; i < n; i++) bpt_json_put_text(w, NULL, texts[i]);
    bpt_json_close_array(w);
}

static void put_reals(bpt_json_writer *w, const char *key, const double *values, size_t n) {
    bpt_json_open_array(w, key);
    for (size_t i = 0; i < n; i++) bpt_json_put_real(w, NULL, values[i]);
    bpt_json_close_array(w);
}

static void put_schema(bpt_json_writer *w, const bpt_dataset_info *info) {
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "format", info->format);
    if (info->encoded) {
        bpt_json_put_u64(w, "channels", info->C);
    } else {
        bpt_json_open_array(w, "shape");
        bpt_json_put_u64(w, NULL, info->C);
        bpt_json_put_u64(w, NULL, info->H);
        bpt_json_put_u64(w, NULL, info->W);
        bpt_json_close_array(w);
    }
    bpt_json_put_text(w, "encoding", bpt__encoding_name(info->encoded));
    bpt_json_put_text(w, "checksum", BPT_CHECKSUM_NAME);
    put_texts(w, "classes", info->classes, info->n_classes);
    bpt_json_close_object(w);
}

static void put_range(bpt_json_writer *w, const char *key, uint32_t least, uint32_t most) {
    bpt_json_open_array(w, key);
    bpt_json_put_u64(w, NULL, least);
    bpt_json_put_u64(w, NULL, most);
    bpt_json_close_array(w);
}

static void put_extent(bpt_json_writer *w, const bpt_extent *e) {
    put_range(w, "heights", e->least_H, e->most_H);
    put_range(w, "widths", e->least_W, e->most_W);
    bpt_json_put_u64(w, "pixels", e->pixels);
    bpt_json_put_u64(w, "most_pixels", e->most_pixels);
    bpt_json_put_u64(w, "bytes", e->bytes);
}

static void put_origin(bpt_json_writer *w, const bpt_intake *intake) {
    bpt_json_put_text(w, "importer", intake->importer);
    put_texts(w, "sources", intake->sources, intake->n_sources);
    bpt_json_put_u64(w, "seed", intake->seed);
}

/* Where more than one were added. */
static void put_intakes(bpt_json_writer *w, const bpt_split *split,
                        const bpt__location *locations) {
    bpt_json_open_array(w, "intakes");
    for (size_t p = 0; p < split->n_intakes; p++) {
        bpt_json_open_object(w, NULL);
        bpt_json_put_u64(w, "generation", locations[p].generation);
        bpt_json_put_u64(w, "count", split->intakes[p].count);
        bpt_json_put_u64(w, "pack", locations[p].pack);
        put_origin(w, &split->intakes[p]);
        bpt_json_close_object(w);
    }
    bpt_json_close_array(w);
}

static void put_split(bpt_json_writer *w, const bpt_dataset_info *info, const bpt_split *split,
                      const bpt__location *locations) {
    const bool single = split->n_intakes == 1;
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "name", split->name);
    if (single) bpt_json_put_u64(w, "generation", locations->generation);
    bpt_json_put_u64(w, "count", split->count);
    if (single) bpt_json_put_u64(w, "pack", locations->pack);
    if (info->encoded) put_extent(w, &split->extent);
    bpt_json_open_array(w, "per_class");
    for (size_t i = 0; i < info->n_classes; i++) bpt_json_put_u64(w, NULL, split->per_class[i]);
    bpt_json_close_array(w);
    put_reals(w, "mean", split->mean, info->C);
    put_reals(w, "std", split->std, info->C);
    if (single)
        put_origin(w, split->intakes);
    else
        put_intakes(w, split, locations);
    bpt_json_close_object(w);
}

static bpt_status write_entry(MDB_txn *txn, MDB_dbi meta, const char *key_text, bpt_json_writer *w,
                              int *code) {
    const char *text;
    size_t length;
    char *entry;
    BPT_TRY(bpt_json_end_text(w, &text, &length));
    const uint64_t checksum = htole64(bpt_checksum(text, length));
    BPT_TRY(bpt_alloc("schema entry", sizeof checksum + length, 1, (void **)&entry));
    memcpy(entry, &checksum, sizeof checksum);
    memcpy(entry + sizeof checksum, text, length);
    MDB_val key = {strlen(key_text), (void *)(uintptr_t)key_text};
    MDB_val value = {sizeof checksum + length, entry};
    *code = mdb_put(txn, meta, &key, &value, 0);
    bpt_free(entry);
    bpt_json_reset(w);
    return BPT_OK;
}

bpt_status bpt__catalog_write(MDB_txn *txn, const bpt_dataset_info *info, const bpt_split *split,
                              const bpt__location *locations, int *code) {
    MDB_dbi meta;
    *code = mdb_dbi_open(txn, BPT__META, 0, &meta);
    if (*code != 0) return BPT_OK;
    bpt_json_writer w = {0};
    char *key = NULL;
    bpt_status status;
    put_schema(&w, info);
    BPT_TRY_GOTO(status, write_entry(txn, meta, BPT__SCHEMA_KEY, &w, code), done);
    if (*code != 0) goto done;
    BPT_TRY_GOTO(status, bpt_strf(&key, BPT__SPLIT_PREFIX "%s", split->name), done);
    put_split(&w, info, split, locations);
    status = write_entry(txn, meta, key, &w, code);
done:
    bpt_free(key);
    bpt_json_free(&w);
    return status;
}
