/** @file tools/ingest/append_check.h
 * Looks before long work whether there is what images shall be appended to.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_APPEND_CHECK_H
#define BPT_TOOLS_APPEND_CHECK_H

#include "storage/dataset/dataset.h"

/** Warns where the split has the same images already, by what it says of its intakes.
 * @param path, split of the dataset that is there
 * @param intake what shall be added; .count is not looked at
 * @return BPT_OK, BPT_ENOENT (no such dataset, or no such split in it), or what bpt_dataset_open()
 *         returns */
bpt_status bpt_append_check(const char *path, const char *split, const bpt_intake *intake);

#endif
