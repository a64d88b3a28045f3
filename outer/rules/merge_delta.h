/** @file outer/rules/merge_delta.h
 * Inside of outer/rules/: how all asynchronous rules of deltas merge one.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_RULES_MERGE_DELTA_H
#define BPT_OUTER_RULES_MERGE_DELTA_H

#include <stddef.h>
#include <stdint.h>

/** global += factors[0] * parts[0]; as bpt_update_rule.merge with one part. */
void bpt__merge_delta(float *global, const float *const *parts, const float *factors,
                      uint32_t n_parts, size_t n);

#endif
