/** @file tools/ingest/record_copy.h
 * From a split of one dataset into a writer of another: what merge and split have in common.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_RECORD_COPY_H
#define BPT_TOOLS_INGEST_RECORD_COPY_H

#include "base/status.h"
#include "storage/dataset/dataset.h"
#include "storage/writer/writer.h"
#include "tools/ingest/ingest_progress.h"

#include <stdbool.h>
#include <stdint.h>

/** Which records, and under which labels. */
typedef struct bpt_record_choice {
    const bpt_dataset *dataset;
    const bpt_split *split;
    const uint8_t *held_out; /* not 0 for those that are held out, shape [split->count]; NULL: all
                                are taken */
    bool take_held_out;      /* those, or the others */
    const uint32_t *labels;  /* new label of each old one; NULL: as they are */
} bpt_record_choice;

/** @param[out] label of record @p i, raw or encoded @return what bpt_dataset_get() returns */
bpt_status bpt_record_label(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                            uint32_t *label);

/** Appends the records in their order; files stay as they are.
 * @param[in,out] done records so far, for progress
 * @param total        of the work
 * @return BPT_OK, BPT_ECANCELED (a signal), what bpt_dataset_get() and bpt_writer_append() return
 */
bpt_status bpt_record_copy(const bpt_record_choice *choice, bpt_writer *writer,
                           bpt_ingest_progress *progress, uint64_t *done, uint64_t total);

/** Makes sure that what is written is no dataset that is read at the same time.
 * @return BPT_OK, BPT_EUSAGE */
bpt_status bpt_record_check_apart(const char *from, const char *to);

/** @return the last part of a path: borrowed from it; of "a/b/" it is "b/" */
const char *bpt_record_base_name(const char *path);

#endif
