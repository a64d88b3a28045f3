/** @file tools/split_option.h
 * A split that an option names.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_SPLIT_OPTION_H
#define BPT_TOOLS_SPLIT_OPTION_H

#include "storage/dataset/dataset.h"

/** As bpt_dataset_find(); where there is none of that name, the hint also says by which option
 * another one is named, and what makes one. @param option without its dashes */
bpt_status bpt_split_option_find(const bpt_dataset *dataset, const char *option, const char *name,
                                 const bpt_split **split);

#endif
