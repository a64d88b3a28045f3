/* What the split under way will be, and how its values are laid out. */
#include "base/memory.h"
#include "storage/dataset/value.h"
#include "storage/writer/writer_private.h"

enum { CHUNK_BYTES = 16 * 1024 * 1024 }; /* of values to a transaction */

bpt__draft_company bpt__writer_company(const bpt_writer *w, bool with_open) {
    bpt__draft_company company = {.n = w->n_whole + with_open};
    for (size_t i = 0; i < w->n_whole; i++) company.drafts[i] = &w->whole[i].draft;
    if (with_open) company.drafts[w->n_whole] = &w->split.draft;
    return company;
}

static void free_buffer(bpt__chunk *c) {
    bpt_free(c->bytes);
    c->bytes = NULL;
    c->capacity = 0;
}

bpt_status bpt__writer_prepare_chunk(bpt_writer *w) {
    bpt__chunk *c = &w->filling;
    if (c->n == 0 && c->capacity > w->chunk_bytes) free_buffer(c); /* one value was as large */
    if (!c->ends) BPT_TRY(BPT_NEW("ends of values", w->chunk_values, &c->ends));
    if (c->bytes) return BPT_OK;
    BPT_TRY(BPT_NEW_UNSET("write buffer", w->chunk_bytes, &c->bytes));
    c->capacity = w->chunk_bytes;
    return BPT_OK;
}

static bpt_status plan_values(bpt_writer *w) {
    MDB_stat stat;
    mdb_env_stat(w->env, &stat);
    w->page_bytes = stat.ms_psize;
    w->chunk_bytes = CHUNK_BYTES;
    if (w->split.draft.info.encoded) {
        w->split.draft.location->pack = 1;
        w->chunk_values = CHUNK_BYTES / w->page_bytes; /* none has less than a page */
    } else {
        w->record_bytes =
            (size_t)w->split.draft.info.C * w->split.draft.info.H * w->split.draft.info.W;
        w->split.draft.location->pack = bpt__value_pack(w->record_bytes, w->page_bytes);
        const size_t value_bytes = bpt__value_padded(
            bpt__value_bytes(w->record_bytes, w->split.draft.location->pack), w->page_bytes);
        w->chunk_values = CHUNK_BYTES / value_bytes;
        if (w->chunk_values == 0) w->chunk_values = 1;
        BPT_TRY(bpt_size_multiply(w->chunk_values, value_bytes, &w->chunk_bytes));
    }
    return BPT_OK;
}

bpt_status bpt__writer_plan(bpt_writer *w, const bpt_writer_options *o) {
    const bpt__draft_company company = bpt__writer_company(w, false);
    BPT_TRY(bpt__draft_make(w->catalog, &company, o, &w->split.draft));
    const bpt_dataset_info *info = &w->split.draft.info;
    const bpt_split *before = o->append ? bpt__catalog_find(w->catalog, o->split) : NULL;
    w->database_id = bpt__database_id(w->split.draft.database);
    w->resumable = o->terms && o->origin;
    const size_t plane = info->encoded ? 0 : (size_t)o->H * o->W;
    BPT_TRY(bpt__statistics_init(&w->split.statistics, o->C, plane, info->n_classes));
    if (before)
        bpt__statistics_restore(&w->split.statistics, before->count,
                                info->encoded ? before->extent.pixels : before->count * plane,
                                before->per_class, before->mean, before->std);
    BPT_TRY(BPT_NEW("means", o->C, &w->split.mean));
    BPT_TRY(BPT_NEW("deviations", o->C, &w->split.std));
    return plan_values(w);
}

void bpt__new_split_free(bpt__new_split *split) {
    bpt__statistics_free(&split->statistics);
    bpt__draft_free(&split->draft);
    bpt_free(split->mean);
    bpt_free(split->std);
    *split = (bpt__new_split){0};
}

static void free_chunk(bpt__chunk *c) {
    free_buffer(c);
    bpt_free(c->ends);
    bpt__notes_free(&c->notes);
    *c = (bpt__chunk){0};
}

void bpt__writer_unplan(bpt_writer *w) {
    bpt__new_split_free(&w->split);
    free_chunk(&w->filling);
    free_chunk(&w->storing);
    w->n_open = w->n_stored = 0;
}
