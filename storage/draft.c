#include "storage/draft.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 64 };

/* ---- what is asked for ---- */

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

bpt_status bpt__draft_check(const bpt_writer_options *o) {
    BPT_TRY(check_name(o->split));
    const uint64_t bytes = (uint64_t)o->C * o->H;
    if (o->encoded && o->C != 1 && o->C != 3)
        return bpt_fail(BPT_EUSAGE, "encoded images have 1 or 3 channels, not %u", o->C);
    if (!o->encoded && (bytes == 0 || o->W == 0 || bytes > BPT__MAX_RECORD_BYTES ||
                        bytes * o->W > BPT__MAX_RECORD_BYTES))
        return bpt_fail(BPT_EUSAGE, "images of %ux%ux%u cannot be stored (at most %d bytes)", o->C,
                        o->H, o->W, BPT__MAX_RECORD_BYTES);
    if (o->n_classes == 0 || o->n_classes > BPT__MAX_CLASSES)
        return bpt_fail(BPT_EUSAGE, "%u classes cannot be stored (1 to %d)", o->n_classes,
                        BPT__MAX_CLASSES);
    return o->class_names ? check_class_names(o->class_names, o->n_classes) : BPT_OK;
}

/* ---- what is there ---- */

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

static bpt_status check_agreement(const bpt_dataset_info *old, const bpt_writer_options *o) {
    if (old->encoded != o->encoded) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "dataset %s holds %s images, the new ones are %s", old->path,
                     old->encoded ? "encoded" : "raw", o->encoded ? "encoded" : "raw");
        bpt_hint("%s --encoded, or use another --out for these", o->encoded ? "leave out" : "give");
        return status;
    }
    if (old->encoded && old->C != o->C)
        return bpt_fail(BPT_EDATA, "dataset %s holds images of %u channels, the new ones have %u",
                        old->path, old->C, o->C);
    if (!old->encoded && (old->C != o->C || old->H != o->H || old->W != o->W)) {
        const bpt_status status = bpt_fail(
            BPT_EDATA, "dataset %s holds images of %ux%ux%u (CxHxW), the new ones are %ux%ux%u",
            old->path, old->C, old->H, old->W, o->C, o->H, o->W);
        bpt_hint("all splits of a dataset have one shape: use another --out for these");
        return status;
    }
    bool same = o->class_names ? o->n_classes == old->n_classes : o->n_classes <= old->n_classes;
    for (uint32_t i = 0; o->class_names && same && i < o->n_classes; i++)
        same = strcmp(o->class_names[i], old->classes[i]) == 0;
    if (same) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EDATA, "dataset %s has %u classes (\"%s\" ...), the new split has %u%s", old->path,
        old->n_classes, old->classes[0], o->n_classes, o->class_names ? " or other ones" : "");
    bpt_hint(
        "all splits of a dataset share their classes: use another --out, or say all classes "
        "when the first split is ingested");
    return status;
}

/* Sets info, classes and location from what is there and what is wanted. */
static bpt_status merge_schema(const bpt__catalog *catalog, const bpt_writer_options *o,
                               bpt__draft *d) {
    const bpt_dataset_info *old = bpt__catalog_info(catalog);
    const bpt_split *replaced = bpt__catalog_find(catalog, o->split);
    if (replaced && !o->replace) {
        const bpt_status status =
            bpt_fail(BPT_EEXIST, "dataset %s has a split \"%s\" already (%u images)", old->path,
                     o->split, replaced->count);
        bpt_hint("--force replaces it; --split NAME gives the new one another name");
        return status;
    }
    if (!replaced && old->n_splits == BPT__MAX_SPLITS)
        return bpt_fail(BPT_EUSAGE, "dataset %s has %d splits, which is the limit", old->path,
                        BPT__MAX_SPLITS);
    const bool keep = old->n_splits > (replaced ? 1 : 0);
    if (keep) BPT_TRY(check_agreement(old, o));
    d->info = (bpt_dataset_info){.C = o->C, .H = o->H, .W = o->W, .encoded = o->encoded};
    d->info.n_classes = keep ? old->n_classes : o->n_classes;
    if (keep)
        BPT_TRY(copy_texts(old->classes, old->n_classes, &d->classes));
    else if (o->class_names)
        BPT_TRY(copy_texts(o->class_names, o->n_classes, &d->classes));
    else
        BPT_TRY(number_classes(o->n_classes, &d->classes));
    d->info.classes = (const char *const *)d->classes;
    d->location.generation =
        replaced ? bpt__catalog_location(catalog, replaced->number)->generation + 1 : 1;
    return bpt_strf(&d->location.database, "%s@%llu", o->split,
                    (unsigned long long)d->location.generation);
}

static bpt_status describe_split(const bpt_writer_options *o, bpt__draft *d) {
    BPT_TRY(bpt_strdup(o->split, &d->name));
    BPT_TRY(bpt_strdup(o->importer, &d->importer));
    d->split = (bpt_split){.name = d->name, .importer = d->importer, .seed = o->seed};
    d->split.n_sources = o->n_sources;
    BPT_TRY(copy_texts(o->sources, o->n_sources, &d->sources));
    /* JSON takes UTF-8 only, file names can be anything. */
    for (size_t i = 0; i < o->n_sources; i++)
        if (!is_utf8(d->sources[i]))
            for (char *p = d->sources[i]; *p; p++)
                if ((unsigned char)*p >= 0x80) *p = '?';
    d->split.sources = (const char *const *)d->sources;
    return BPT_OK;
}

bpt_status bpt__draft_make(const bpt__catalog *catalog, const bpt_writer_options *options,
                           bpt__draft *draft) {
    *draft = (bpt__draft){0};
    BPT_TRY(merge_schema(catalog, options, draft));
    return describe_split(options, draft);
}

void bpt__draft_free(bpt__draft *draft) {
    free_texts(draft->classes, draft->info.n_classes);
    free_texts(draft->sources, draft->split.n_sources);
    bpt_free(draft->location.database);
    bpt_free(draft->name);
    bpt_free(draft->importer);
    *draft = (bpt__draft){0};
}
