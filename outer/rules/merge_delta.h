/** @file outer/rules/merge_delta.h
 * Inside of outer/rules/: how all asynchronous rules of deltas merge one.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_RULES_MERGE_DELTA_H
#define BPT_OUTER_RULES_MERGE_DELTA_H

#include "outer/update_rule.h"

/** global += factors[0] * parts[0]; a bpt_update_rule.merge. */
void bpt__merge_delta(const bpt_merge *m);

#endif
