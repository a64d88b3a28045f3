/** @file tools/train/options/train_rule.h
 * The update rule that options name, and what is laid over it.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TRAIN_RULE_H
#define BPT_TOOLS_TRAIN_RULE_H

#include "outer/rules/update_rule.h"
#include "tools/train/options/train_options.h"

/** @return whether ranks exchange weights or deltas of them: AGWU, SGWU, EASGD */
bool bpt_update_merges(bpt_update_choice update);

/** @return whether an update needs one rank alone, and is logged for a replay: AGWU, EASGD */
bool bpt_update_is_async(bpt_update_choice update);

/** @param update AGWU, SGWU, EASGD or ALLREDUCE
 * @return its rule; under agwu the one of --gamma */
const bpt_update_rule *bpt_train_rule(const bpt_train_options *o, bpt_update_choice update);

/** @param update as above, or LOCAL
 * @return the terms of the options; zeros of what the update has not */
bpt_update_terms bpt_train_terms(const bpt_train_options *o, bpt_update_choice update,
                                 uint32_t n_workers);

/** @param rates sum of the learning rates of some steps
 * @return S, as bpt_compensation() takes it: over 1 - momentum */
double bpt_train_rates(const bpt_train_options *o, double rates);

#endif
