/** @file tools/ingest/ingest_terms.h
 * What an ingestion is, in lines: by them bpt_writer_resume() knows it again.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_TERMS_H
#define BPT_TOOLS_INGEST_TERMS_H

#include "base/status.h"
#include "storage/importers/importer.h"
#include "tools/ingest/ingest_options.h"

/** Zero-initialise; release with bpt_ingest_terms_free(). */
typedef struct bpt_ingest_terms {
    char *wanted; /* the options that decide what is stored */
    char *origin; /* the source: its files with sizes and times, its images with names and labels */
} bpt_ingest_terms;

/** Writes them.
 * @param import, plan of an open import, classes settled; no item need have been taken
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_ingest_terms_make(const bpt_ingest_options *o, const bpt_importer *importer,
                                 const bpt_import_source *source, void *import,
                                 const bpt_import_plan *plan, bpt_ingest_terms *terms);
void bpt_ingest_terms_free(bpt_ingest_terms *terms);

#endif
