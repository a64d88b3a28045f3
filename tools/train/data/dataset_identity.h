/** @file tools/train/data/dataset_identity.h
 * What tells one dataset from another without reading its records: shape, classes, and of each
 * split count, counts per class, means and deviations, and what it was made of. Where it lies, and
 * how often splits were replaced, does not count.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_DATASET_IDENTITY_H
#define BPT_TOOLS_DATASET_IDENTITY_H

#include "storage/dataset/dataset.h"

#include <stdint.h>

/** @param[out] identity a checksum of all that, never 0
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_dataset_identify(const bpt_dataset_info *info, uint64_t *identity);

#endif
