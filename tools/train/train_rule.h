/** @file tools/train/train_rule.h
 * The update rule that options name.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TRAIN_RULE_H
#define BPT_TOOLS_TRAIN_RULE_H

#include "outer/update_rule.h"
#include "tools/train/train_options.h"

/** @param update AGWU, SGWU or ALLREDUCE
 * @return its rule; under agwu the one of --gamma */
const bpt_update_rule *bpt_train_rule(const bpt_train_options *o, bpt_update_choice update);

#endif
