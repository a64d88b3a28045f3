/* Several splits that appear at once. */
#include "base/memory.h"
#include "storage/writer/writer_private.h"

#include <assert.h>
#include <string.h>

static bpt_status check_names(const bpt_writer *w, const char *name) {
    bool same = strcmp(w->split.draft.split.name, name) == 0;
    for (size_t i = 0; i < w->n_whole; i++) same |= strcmp(w->whole[i].draft.split.name, name) == 0;
    return same ? bpt_fail(BPT_EUSAGE, "split %s would be written twice", name) : BPT_OK;
}

bpt_status bpt_writer_check_next(const bpt_writer *w, const bpt_writer_options *o) {
    bpt__draft draft;
    assert(!w->resumable && !o->terms);
    BPT_TRY(bpt__draft_check(o));
    BPT_TRY(check_names(w, o->split));
    if (w->n_whole + 2 > BPT__MAX_SPLITS)
        return bpt_fail(BPT_EUSAGE, "more than %d splits at once", BPT__MAX_SPLITS);
    const bpt__draft_company company = bpt__writer_company(w, true);
    const bpt_status status = bpt__draft_make(w->catalog, &company, o, &draft);
    bpt__draft_free(&draft);
    return status;
}

bpt_status bpt_writer_next(bpt_writer *w, const bpt_writer_options *o) {
    BPT_TRY(bpt_writer_check_next(w, o));
    BPT_TRY(bpt__writer_complete(w));
    BPT_TRY(BPT_GROW("splits", w->n_whole + 1, &w->whole, &w->room_whole));
    w->whole[w->n_whole++] = w->split;
    w->split = (bpt__new_split){0};
    bpt__writer_unplan(w);
    BPT_TRY(bpt__writer_plan(w, o));
    return bpt__writer_transact(w, bpt__writer_begin_staging);
}
