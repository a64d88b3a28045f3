/** @file storage/writer/draft.h
 * A split before it is written, or extended: is what is asked for allowed, does it agree with the
 * dataset that is there, and how will it be described. For this folder only.
 *
 * Threads: a draft belongs to one thread. */
#ifndef BPT_STORAGE_DRAFT_H
#define BPT_STORAGE_DRAFT_H

#include "base/status.h"
#include "storage/dataset/catalog.h"
#include "storage/writer/writer.h"

typedef struct bpt__draft {
    bpt_dataset_info info;    /* the schema to be; no splits */
    bpt_split split;          /* count and extent are those of what it is added to; per_class, mean
                                 and std are still to come */
    bpt_intake *intakes;      /* of the split; those that are there are the catalog's */
    bpt__location *locations; /* likewise */
    bpt_intake *intake;       /* the last, to be written; count is still to come */
    bpt__location *location;  /* of it; pack is still to come */
    char *name, *importer;    /* what the structs above point to */
    char *database;
    char **classes; /* shape [info.n_classes] */
    char **sources; /* shape [n_sources] */
    size_t n_sources;
} bpt__draft;

/** Checks options by themselves. @return BPT_OK, BPT_EUSAGE, BPT_ENOMEM */
bpt_status bpt__draft_check(const bpt_writer_options *options);

/** The drafts that one commit shows beside another one, which follows the first of them. */
typedef struct bpt__draft_company {
    const bpt__draft *drafts[BPT__MAX_SPLITS];
    size_t n;
} bpt__draft_company;

/** Drafts a split for a dataset.
 * @param catalog what is there; borrowed while the draft lives
 * @param[out] draft bpt__draft_free() is due, on error too
 * @return BPT_OK, BPT_EEXIST, BPT_ENOENT (nothing to append to), BPT_EUSAGE (too many splits),
 *         BPT_EDATA (differs), BPT_ENOMEM */
bpt_status bpt__draft_make(const bpt__catalog *catalog, const bpt__draft_company *company,
                           const bpt_writer_options *options, bpt__draft *draft);
void bpt__draft_free(bpt__draft *draft);

#endif
