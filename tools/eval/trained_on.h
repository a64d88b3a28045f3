/** @file tools/eval/trained_on.h
 * The dataset that weights were trained on, where images of another one are evaluated.
 *
 * Threads: the one that opened both datasets. */
#ifndef BPT_TOOLS_TRAINED_ON_H
#define BPT_TOOLS_TRAINED_ON_H

#include "storage/dataset/dataset.h"

#include <stdbool.h>

/** Gets images to the shape of those that were trained on, whose height and width are settled.
 * @return BPT_OK, BPT_EUSAGE (raw images of another size, or channels differ) */
bpt_status bpt_trained_on_fit(const bpt_dataset *trained, bpt_dataset *dataset);

/** @return whether labels of the one are those of the other: the same classes in the same order */
bool bpt_trained_on_same_classes(const bpt_dataset *trained, const bpt_dataset *dataset);

#endif
