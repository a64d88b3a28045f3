/* How a split comes to be: records into values and values into chunks, begin and end. Chunks are
 * stored by writer_storing.c; what runs inside transactions is in writer_staging.c, the plan of a
 * split in writer_plan.c, going on for another writer in writer_resume.c. */
#include "storage/writer/writer.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/dataset/value.h"
#include "storage/environment/directory.h"
#include "storage/environment/environment.h"
#include "storage/writer/terms.h"
#include "storage/writer/writer_private.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

uint64_t bpt__writer_count(const bpt_writer *w) {
    return w->split.statistics.count - w->split.draft.split.count;
}

/* @return where the value under way begins in the chunk */
static size_t open_at(const bpt_writer *w) {
    return w->filling.n > 0 ? w->filling.ends[w->filling.n - 1] : 0;
}

/* @return the value under way */
static uint8_t *open_value(const bpt_writer *w) {
    return w->filling.bytes + open_at(w);
}

/* Ends a value whose labels and records are in place. */
static void seal(bpt_writer *w, uint32_t n, size_t record_bytes) {
    bpt__chunk *c = &w->filling;
    uint8_t *value = open_value(w);
    const size_t used = bpt__value_bytes(record_bytes, n);
    const size_t size = bpt__value_padded(used, w->page_bytes);
    const uint64_t v = (uint64_t)c->first + c->n;
    memset(value + used, 0, size - used);
    bpt__value_seal(value, size,
                    &(bpt__value_place){.database = w->database_id,
                                        .first = v * w->split.draft.location->pack,
                                        .n = n,
                                        .record_bytes = (uint32_t)record_bytes});
    c->ends[c->n] = open_at(w) + size;
    c->n++;
}

/* Ends the value under way. One that is not full is moved together and is the split's last. */
static bpt_status seal_value(bpt_writer *w) {
    const uint32_t n = w->n_open, pack = w->split.draft.location->pack;
    uint8_t *value = open_value(w);
    if (n < pack)
        memmove((void *)(uintptr_t)bpt__value_pixels(value, w->record_bytes, n, 0),
                bpt__value_pixels(value, w->record_bytes, pack, 0), n * w->record_bytes);
    seal(w, n, w->record_bytes);
    w->n_open = 0;
    return w->filling.n == w->chunk_values ? bpt__writer_hand_over(w) : BPT_OK;
}

static bpt_status check_label(const bpt_writer *w, uint32_t label) {
    if (label >= w->split.draft.info.n_classes)
        return bpt_fail(BPT_EDATA, "image %llu has label %u, but there are %u classes (0 to %u)",
                        (unsigned long long)bpt__writer_count(w), label,
                        w->split.draft.info.n_classes, w->split.draft.info.n_classes - 1);
    if (w->split.statistics.count == UINT32_MAX)
        return bpt_fail(BPT_EFULL, "a split holds at most %u images", UINT32_MAX);
    if (w->ended)
        return bpt_fail(BPT_EDATA, "split %s: the source has more images than when it was stopped",
                        w->split.draft.split.name);
    return BPT_OK;
}

static void put_label(uint8_t *value, size_t k, uint32_t label) {
    const uint16_t stored = htole16((uint16_t)label);
    memcpy(value + BPT__VALUE_HEADER + k * sizeof stored, &stored, sizeof stored);
}

bpt_status bpt_writer_append(bpt_writer *w, const uint8_t *pixels, uint32_t label) {
    assert(!w->split.draft.info.encoded);
    BPT_TRY(check_label(w, label));
    BPT_TRY(bpt__writer_prepare_chunk(w));
    uint8_t *value = open_value(w);
    put_label(value, w->n_open, label);
    memcpy((void *)(uintptr_t)bpt__value_pixels(value, w->record_bytes,
                                                w->split.draft.location->pack, w->n_open),
           pixels, w->record_bytes);
    bpt__statistics_add(&w->split.statistics, pixels, label);
    return ++w->n_open == w->split.draft.location->pack ? seal_value(w) : BPT_OK;
}

bpt_status bpt_writer_note(bpt_writer *w, const char *line) {
    enum { MANY_BYTES = 1 << 20 };
    const uint64_t item = bpt_writer_position(w);
    w->n_notes++;
    if (!w->resumable) return BPT_OK;
    BPT_TRY(bpt__notes_add(&w->filling.notes, item, line));
    return w->filling.notes.n_text > MANY_BYTES && w->n_open == 0 ? bpt__writer_hand_over(w)
                                                                  : BPT_OK;
}

/* ---- encoded records: one to a value ---- */

static void widen_extent(bpt_extent *e, const bpt_record *r, bool first) {
    const uint64_t pixels = (uint64_t)r->H * r->W;
    if (first || r->H < e->least_H) e->least_H = r->H;
    if (first || r->W < e->least_W) e->least_W = r->W;
    if (r->H > e->most_H) e->most_H = r->H;
    if (r->W > e->most_W) e->most_W = r->W;
    if (pixels > e->most_pixels) e->most_pixels = pixels;
    e->pixels += pixels;
    e->bytes += r->size;
}

void bpt__writer_count_record(bpt_writer *w, const bpt_record *record, uint32_t label) {
    widen_extent(&w->split.draft.split.extent, record, w->split.statistics.count == 0);
    bpt__statistics_add_sums(&w->split.statistics, (uint64_t)record->H * record->W, record->sum,
                             record->square, label);
}

/* Makes room in the chunk for a value. */
static bpt_status make_room(bpt_writer *w, size_t size) {
    const size_t used = open_at(w);
    const bool full = used >= w->chunk_bytes || size > w->chunk_bytes - used;
    if (w->filling.n == w->chunk_values || (w->filling.n > 0 && full))
        BPT_TRY(bpt__writer_hand_over(w));
    BPT_TRY(bpt__writer_prepare_chunk(w));
    return BPT_GROW("write buffer", size, &w->filling.bytes, &w->filling.capacity);
}

bpt_status bpt_writer_append_record(bpt_writer *w, const bpt_record *record, uint32_t label) {
    assert(w->split.draft.info.encoded);
    const uint32_t C = w->split.draft.info.C;
    const size_t bytes = bpt__record_bytes(record, C);
    BPT_TRY(check_label(w, label));
    BPT_TRY(make_room(w, bpt__value_padded(bpt__value_bytes(bytes, 1), w->page_bytes)));
    uint8_t *value = open_value(w);
    put_label(value, 0, label);
    bpt__record_write(record, C, (uint8_t *)(uintptr_t)bpt__value_pixels(value, bytes, 1, 0));
    seal(w, 1, bytes);
    bpt__writer_count_record(w, record, label);
    return BPT_OK;
}

/* ---- begin ---- */

static bpt_status read_catalog(bpt_writer *w) {
    MDB_txn *txn;
    const int code = mdb_txn_begin(w->env, NULL, MDB_RDONLY, &txn);
    if (code != 0) return bpt__lmdb_fail(code, "read", w->path);
    bpt_status status = bpt__catalog_read(txn, w->path, &w->catalog);
    if (status == BPT_OK) status = bpt__catalog_expect_databases(w->catalog, txn);
    mdb_txn_abort(txn);
    return bpt__environment_settle(w->env, status);
}

bpt_status bpt_writer_check_place(const char *path) {
    return bpt__directory_check(&bpt__dataset_files, path);
}

bpt_status bpt__writer_open_dataset(bpt_writer *w, const char *path) {
    char *data;
    BPT_TRY(bpt_strdup(path, &w->path));
    BPT_TRY(bpt_strf(&data, "%s/%s", path, bpt__dataset_files.data));
    bool there;
    bpt_status status = bpt__directory_lock(&bpt__dataset_files, path, &w->lock, &w->n_made);
    if (status == BPT_OK) status = bpt_path_look(data, &there); /* known with the lock only */
    w->begun = status == BPT_OK && !there;
    bpt_free(data);
    BPT_TRY(status);
    BPT_TRY(bpt__environment_write(&bpt__dataset_files, path, &w->env));
    w->mapped = true;
    return read_catalog(w);
}

/* A chunk's head page may reach the disk late: losing the last chunk in a power cut loses nothing
 * that was promised. The switch is synchronous again. */
void bpt__writer_relax(bpt_writer *w) {
    mdb_env_set_flags(w->env, MDB_NOMETASYNC, 1);
}

static bpt_status open_steps(bpt_writer *w, const char *path, const bpt_writer_options *o) {
    const bpt__terms terms = {o->terms, o->origin};
    const uint64_t reading_ns = o->reading_ns ? o->reading_ns : bpt_clock_ns();
    BPT_TRY(bpt__writer_open_dataset(w, path));
    BPT_TRY(bpt__writer_plan(w, o));
    bpt__writer_relax(w);
    bpt__terms_clear(w->lock); /* before what they belong to */
    BPT_TRY(bpt__writer_transact(w, bpt__writer_drop_leftovers));
    w->begun = true;
    BPT_TRY(bpt__writer_transact(w, bpt__writer_begin_staging));
    w->staged = true;
    return w->resumable ? bpt__terms_write(w->lock, path, &terms, reading_ns) : BPT_OK;
}

bpt_status bpt_writer_open(const char *path, const bpt_writer_options *options, bpt_writer **out) {
    BPT_TRY(bpt__draft_check(options));
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

/* ---- end ---- */

static bpt_status sync_directories(const bpt_writer *w) {
    char *parent;
    BPT_TRY(bpt_dir_sync(w->path));
    BPT_TRY(bpt_strf(&parent, "%s/..", w->path));
    const bpt_status status = bpt_dir_sync(parent);
    bpt_free(parent);
    return status;
}

bpt_status bpt__writer_complete(bpt_writer *w) {
    bpt__new_split *s = &w->split;
    if (bpt__writer_count(w) == 0)
        return bpt_fail(BPT_EDATA, "split %s would %s no images", s->draft.split.name,
                        s->draft.split.count ? "get" : "have");
    if (w->n_open > 0) BPT_TRY(seal_value(w));
    BPT_TRY(bpt__writer_hand_over(w));
    BPT_TRY(bpt__writer_wait(w));
    bpt__statistics_finish(&s->statistics, s->mean, s->std);
    s->draft.intake->count = (uint32_t)bpt__writer_count(w);
    s->draft.split.per_class = s->statistics.per_class;
    s->draft.split.mean = s->mean;
    s->draft.split.std = s->std;
    return BPT_OK;
}

bpt_status bpt_writer_commit(bpt_writer *w) {
    BPT_TRY(bpt__writer_complete(w));
    if (bpt__catalog_info(w->catalog)->format == 0) BPT_TRY(sync_directories(w));
    mdb_env_set_flags(w->env, MDB_NOMETASYNC, 0);
    BPT_TRY(bpt__writer_transact(w, bpt__writer_switch_over));
    w->committed = true;
    if (w->resumable) bpt__terms_clear(w->lock);
    return BPT_OK;
}

void bpt_writer_close(bpt_writer *w) {
    if (!w) return;
    bpt_error error; /* what led here, not what happens on the way out */
    bpt_error_get(&error);
    bpt__writer_rest(w);
    if (w->stored.status != BPT_OK && strcmp(w->stored.text, error.text) != 0)
        bpt_warn("%s", w->stored.text); /* it came too late to be returned */
    const bool was_empty = w->catalog && bpt__catalog_info(w->catalog)->format == 0;
    const bool lost = !w->mapped || bpt__environment_lost(w->env);
    const bool damaged = w->env && bpt__environment_damaged(w->env);
    const bool undo = !w->committed && !w->found && (damaged || bpt_writer_kept(w) == 0);
    /* Where even this fails (a full disk), the next writer drops the staging database. */
    if (w->staged && undo && !was_empty && !lost) bpt__writer_transact(w, bpt__writer_drop_staging);
    bpt__environment_close(w->env, NULL);
    /* What was there when we had the lock is not ours, whoever made the folder. */
    if (undo && w->begun && (was_empty || !w->catalog))
        bpt__directory_clear(&bpt__dataset_files, w->path, w->n_made);
    if (undo && w->staged) bpt__terms_clear(w->lock);
    bpt_error_put(&error);
    if (w->lock >= 0) close(w->lock);
    bpt__writer_unplan(w);
    for (size_t i = 0; i < w->n_whole; i++) bpt__new_split_free(&w->whole[i]);
    bpt_free(w->whole);
    bpt__catalog_free(w->catalog);
    bpt_free(w->path);
    bpt_free(w);
}
