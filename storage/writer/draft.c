#include "storage/writer/draft.h"

#include "base/memory.h"
#include "base/text.h"
#include "storage/dataset/names.h"

#include <string.h>

/* ---- what is asked for ---- */

bpt_status bpt__draft_check(const bpt_writer_options *o) {
    BPT_TRY(bpt_split_name_check(o->split));
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
    return o->class_names
               ? bpt_class_names_check("classes", o->class_names, o->n_classes, BPT_EUSAGE)
               : BPT_OK;
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
        bpt_hint(
            "all images of a dataset have one shape: --resize %u %u brings these to it, or use "
            "another --out for them",
            old->H, old->W);
        return status;
    }
    bool same = o->class_names ? o->n_classes == old->n_classes : o->n_classes <= old->n_classes;
    for (uint32_t i = 0; o->class_names && same && i < o->n_classes; i++)
        same = strcmp(o->class_names[i], old->classes[i]) == 0;
    if (same) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EDATA, "dataset %s has %u classes (\"%s\" ...), the new images have %u%s", old->path,
        old->n_classes, old->classes[0], o->n_classes, o->class_names ? " or other ones" : "");
    bpt_hint(
        "all splits of a dataset share their classes: use another --out, or say all classes "
        "when the first split is ingested");
    return status;
}

/* Whether the same commit replaces a split. */
static bool is_replaced(const bpt__draft_company *company, const char *name) {
    for (size_t i = 0; i < company->n; i++)
        if (strcmp(company->drafts[i]->split.name, name) == 0) return true;
    return false;
}

/* What will be there beside the draft. */
typedef struct remainder {
    size_t n_splits, n_intakes;
    bool appended; /* one of these was appended to */
} remainder;

static remainder remainder_of(const bpt__catalog *catalog, const bpt__draft_company *company,
                              const bpt_split *there) {
    const bpt_dataset_info *old = bpt__catalog_info(catalog);
    remainder r = {.n_splits = company->n, .n_intakes = company->n};
    for (size_t s = 0; s < old->n_splits; s++) {
        const bpt_split *split = &old->splits[s];
        if (split == there || is_replaced(company, split->name)) continue;
        r.n_splits++;
        r.n_intakes += split->n_intakes;
        r.appended |= split->n_intakes > 1;
    }
    return r;
}

/* @param there the split of that name, NULL: there is none */
static bpt_status check_split(const bpt__catalog *catalog, const bpt__draft_company *company,
                              const bpt_writer_options *o, const bpt_split *there) {
    const bpt_dataset_info *old = bpt__catalog_info(catalog);
    if (o->append && !there) {
        const bpt_status status = bpt_fail(
            BPT_ENOENT, "dataset %s has no split \"%s\" to append to", old->path, o->split);
        bpt_hint("leave out --append to make it");
        return status;
    }
    if (there && !o->replace && !o->append) {
        const bpt_status status =
            bpt_fail(BPT_EEXIST, "dataset %s has a split \"%s\" already (%u images)", old->path,
                     o->split, there->count);
        bpt_hint(
            "--force replaces it, an import with --append adds to it; --%s NAME gives the new one "
            "another name",
            o->naming ? o->naming : "split");
        return status;
    }
    const remainder rest = remainder_of(catalog, company, there);
    if (rest.n_splits >= BPT__MAX_SPLITS)
        return bpt_fail(BPT_EUSAGE, "dataset %s would have more than %d splits, which is the limit",
                        old->path, BPT__MAX_SPLITS);
    if (rest.n_intakes + (o->append ? there->n_intakes : 0) < BPT__MAX_INTAKES) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "images were added to dataset %s %d times, which is the limit",
                 old->path, BPT__MAX_INTAKES);
    bpt_hint("merge it with another dataset into a new one, or ingest a split again, all at once");
    return status;
}

/* Sets info and classes from what is there, or is shown with it, and what is wanted. */
static bpt_status merge_schema(const bpt__catalog *catalog, const bpt__draft_company *company,
                               const bpt_writer_options *o, const bpt_split *there, bpt__draft *d) {
    const remainder rest = remainder_of(catalog, company, there);
    const bool keep = o->append || rest.n_splits > 0;
    bpt_dataset_info old = company->n > 0 ? company->drafts[0]->info : *bpt__catalog_info(catalog);
    old.path = bpt__catalog_info(catalog)->path;
    if (keep) BPT_TRY(check_agreement(&old, o));
    d->info = (bpt_dataset_info){.format = o->append || rest.appended ? BPT_DATASET_FORMAT_APPENDED
                                           : o->encoded               ? BPT_DATASET_FORMAT_ENCODED
                                                                      : BPT_DATASET_FORMAT_RAW,
                                 .C = o->C,
                                 .H = o->H,
                                 .W = o->W,
                                 .encoded = o->encoded};
    d->info.n_classes = keep ? old.n_classes : o->n_classes;
    if (keep)
        BPT_TRY(copy_texts(old.classes, old.n_classes, &d->classes));
    else if (o->class_names)
        BPT_TRY(copy_texts(o->class_names, o->n_classes, &d->classes));
    else
        BPT_TRY(number_classes(o->n_classes, &d->classes));
    d->info.classes = (const char *const *)d->classes;
    return BPT_OK;
}

/* Lays the new intake behind those that stay. */
static bpt_status place_intake(const bpt__catalog *catalog, const bpt_writer_options *o,
                               const bpt_split *there, bpt__draft *d) {
    const size_t before = o->append ? there->n_intakes : 0;
    BPT_TRY(BPT_NEW("intakes", before + 1, &d->intakes));
    BPT_TRY(BPT_NEW("places of intakes", before + 1, &d->locations));
    for (size_t p = 0; p < before; p++) {
        d->intakes[p] = there->intakes[p];
        d->locations[p] = *bpt__catalog_location(catalog, there->number, p);
    }
    d->intake = &d->intakes[before];
    d->location = &d->locations[before];
    const bpt__location *last =
        there ? bpt__catalog_location(catalog, there->number, there->n_intakes - 1) : NULL;
    d->location->generation = last ? last->generation + 1 : 1;
    BPT_TRY(
        bpt_strf(&d->database, "%s@%llu", o->split, (unsigned long long)d->location->generation));
    d->location->database = d->database;
    return BPT_OK;
}

static bpt_status describe_split(const bpt_writer_options *o, const bpt_split *there,
                                 bpt__draft *d) {
    BPT_TRY(bpt_strdup(o->split, &d->name));
    BPT_TRY(bpt_strdup(o->importer, &d->importer));
    d->split = (bpt_split){.name = d->name, .intakes = d->intakes, .n_intakes = 1};
    if (o->append) {
        d->split.n_intakes += there->n_intakes;
        d->split.count = there->count;
        d->split.extent = there->extent;
    }
    d->n_sources = o->n_sources;
    BPT_TRY(copy_texts(o->sources, o->n_sources, &d->sources));
    /* JSON takes UTF-8 only, file names can be anything. */
    for (size_t i = 0; i < o->n_sources; i++)
        if (!bpt_text_is_utf8(d->sources[i]))
            for (char *p = d->sources[i]; *p; p++)
                if ((unsigned char)*p >= 0x80) *p = '?';
    *d->intake = (bpt_intake){.importer = d->importer,
                              .sources = (const char *const *)d->sources,
                              .n_sources = o->n_sources,
                              .seed = o->seed};
    return BPT_OK;
}

bpt_status bpt__draft_make(const bpt__catalog *catalog, const bpt__draft_company *company,
                           const bpt_writer_options *options, bpt__draft *draft) {
    const bpt_split *there = bpt__catalog_find(catalog, options->split);
    *draft = (bpt__draft){0};
    BPT_TRY(check_split(catalog, company, options, there));
    BPT_TRY(merge_schema(catalog, company, options, there, draft));
    BPT_TRY(place_intake(catalog, options, there, draft));
    return describe_split(options, there, draft);
}

void bpt__draft_free(bpt__draft *draft) {
    free_texts(draft->classes, draft->info.n_classes);
    free_texts(draft->sources, draft->n_sources);
    bpt_free(draft->intakes);
    bpt_free(draft->locations);
    bpt_free(draft->database);
    bpt_free(draft->name);
    bpt_free(draft->importer);
    *draft = (bpt__draft){0};
}
