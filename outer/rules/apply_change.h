/** @file outer/rules/apply_change.h
 * Inside of outer/rules/: the last step of a merge of deltas.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_RULES_APPLY_CHANGE_H
#define BPT_OUTER_RULES_APPLY_CHANGE_H

#include "outer/rules/update_rule.h"

/** Changes elements [begin, begin + n) of the global values, with the server's momentum if there is
 * one: see bpt_update_terms.
 * @param change shape [n] */
void bpt__apply_change(const bpt_merge *m, size_t begin, const float *change, size_t n);

#endif
