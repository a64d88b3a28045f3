/** @file tools/ingest/class_names.h
 * The classes that a split is to have, as far as they are known before its images are.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_CLASS_NAMES_H
#define BPT_TOOLS_INGEST_CLASS_NAMES_H

#include "base/status.h"
#include "storage/importers/importer.h"
#include "tools/ingest/ingest_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Zero-initialise; release with bpt_class_names_free(). */
typedef struct bpt_class_names {
    char *text;         /* names, each ended by 0 */
    const char **names; /* shape [n]; n is 0 where none are known */
    size_t n, capacity;
    bool of_dataset; /* they are those of the dataset that is there */
    uint32_t C;      /* channels of that dataset, else 0 */
} bpt_class_names;

/** Finds the names: those of --class-names, else those of the dataset that is there and stays.
 * @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_EDATA (no text, or no names), BPT_ENOMEM */
bpt_status bpt_class_names_find(const bpt_ingest_options *o, bpt_class_names *names);
void bpt_class_names_free(bpt_class_names *names);

/** Settles number and names of the classes between options and source.
 * @param[in,out] plan as the importer gives it
 * @return BPT_OK, BPT_EUSAGE (the options contradict each other), BPT_EDATA (labels without a
 *         class) */
bpt_status bpt_class_names_settle(const bpt_class_names *names, const bpt_ingest_options *o,
                                  bpt_import_plan *plan);

#endif
