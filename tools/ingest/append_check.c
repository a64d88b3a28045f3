#include "tools/ingest/append_check.h"

#include "base/log.h"

#include <string.h>

static bool is_same(const bpt_intake *a, const bpt_intake *b) {
    bool same =
        strcmp(a->importer, b->importer) == 0 && a->seed == b->seed && a->n_sources == b->n_sources;
    for (size_t i = 0; same && i < a->n_sources; i++)
        same = strcmp(a->sources[i], b->sources[i]) == 0;
    return same;
}

static bpt_status look(const bpt_dataset *dataset, const char *name, const bpt_intake *intake) {
    const bpt_split *split;
    const bpt_status status = bpt_dataset_find(dataset, name, &split);
    if (status == BPT_ENOENT)
        bpt_hint("%s; leave out --append to make one of this name", bpt_error_last()->hint);
    BPT_TRY(status);
    for (size_t p = 0; p < split->n_intakes; p++) {
        if (!is_same(&split->intakes[p], intake)) continue;
        bpt_warn("%s: images of such a source were added before; bpt-ingest info lists all", name);
        break;
    }
    return BPT_OK;
}

bpt_status bpt_append_check(const char *path, const char *split, const bpt_intake *intake) {
    bpt_dataset *dataset;
    const bpt_status opened = bpt_dataset_open(path, &dataset);
    if (opened == BPT_ENOENT) bpt_hint("leave out --append to make it");
    BPT_TRY(opened);
    const bpt_status status = look(dataset, split, intake);
    bpt_dataset_close(dataset);
    return status;
}
