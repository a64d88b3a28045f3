/** @file storage/importer.h
 * What turns foreign images into records: one interface, one file per importer.
 *
 * An importer is a table of functions; adding one means a file in storage/importers/ and a line in
 * importer.c. It is pulled: opened on its sources, asked for records until there are no more.
 *
 * Threads: an open import belongs to one thread. */
#ifndef BPT_STORAGE_IMPORTER_H
#define BPT_STORAGE_IMPORTER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What the user names. All borrowed while the import is open. */
typedef struct bpt_import_source {
    char *const *files; /* shape [n_files] */
    size_t n_files;
    uint64_t count;    /* images to make, for importers that draw them */
    uint64_t seed;     /* likewise */
    const char *split; /* likewise: two splits of one seed differ */
} bpt_import_source;

/** What will come. All borrowed from the open import. */
typedef struct bpt_import_plan {
    uint32_t C, H, W;
    uint64_t count;                 /* records */
    uint32_t n_classes;             /* every label is below */
    const char *const *class_names; /* shape [n_classes]; NULL where the source names none */
} bpt_import_plan;

typedef struct bpt_importer {
    const char *name;
    bool draws; /* makes its images from a seed instead of reading files */

    /** Opens the sources and checks what can be checked before the first record.
     * @param[out] import caller owns, close(); set on success only
     * @return BPT_OK, BPT_ENOENT, BPT_EDATA (file, what is wrong, hint), BPT_EUSAGE, BPT_EIO,
     *         BPT_ENOMEM */
    bpt_status (*open)(const bpt_import_source *source, bpt_import_plan *plan, void **import);

    /** Gives the next record; called exactly plan.count times.
     * @param[out] pixels shape [C,H,W]
     * @return BPT_OK, BPT_EDATA, BPT_EIO */
    bpt_status (*next)(void *import, uint8_t *pixels, uint32_t *label);

    void (*close)(void *import);
} bpt_importer;

/** @return the importer of that name, NULL if there is none */
const bpt_importer *bpt_importer_find(const char *name);

/** @return importer number @p i in the order of the registry, NULL past the end */
const bpt_importer *bpt_importer_at(size_t i);

#endif
