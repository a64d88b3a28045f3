/** @file outer/rules/merge.h
 * A merge of a part of the vector, where not all elements are merged alike: running statistics of
 * batch norms are averages, not trained, and no term is for them.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_MERGE_H
#define BPT_OUTER_MERGE_H

#include "outer/rules/update_rule.h"

/** Elements [begin, end) of the vector. */
typedef struct bpt_span {
    size_t begin, end;
} bpt_span;

/** Elements of the vector that are statistics. */
typedef struct bpt_statistics {
    const bpt_span *spans; /* ascending, apart; shape [n] */
    size_t n;
} bpt_statistics;

/** Merges as the rule says, statistics without momentum and compensation.
 * @param first element of the vector that is number 0 of the arrays of @p m */
void bpt_merge_part(const bpt_update_rule *rule, const bpt_merge *m, size_t first,
                    bpt_statistics statistics);

#endif
