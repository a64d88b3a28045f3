/** @file outer/rules/merge_delta.h
 * Inside of outer/rules/: how all asynchronous rules of deltas merge one.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_RULES_MERGE_DELTA_H
#define BPT_OUTER_RULES_MERGE_DELTA_H

#include "outer/rules/update_rule.h"

/** global += factors[0] * parts[0], of which the part is compensated first if the merge has a base
 * (outer/rules/compensate.h), and with a velocity the sum goes through that
 * (outer/rules/apply_change.h); a bpt_update_rule.merge. */
void bpt__merge_delta(const bpt_merge *m);

#endif
