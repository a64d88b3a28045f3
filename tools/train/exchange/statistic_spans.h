/** @file tools/train/exchange/statistic_spans.h
 * Which elements of what ranks exchange of a model, the part that learns, are running statistics.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_STATISTIC_SPANS_H
#define BPT_TOOLS_STATISTIC_SPANS_H

#include "inner/models/model.h"
#include "outer/rules/merge.h"

/** @param[out] spans neighbouring segments are one; caller owns, bpt_free(); shape [n], may be NULL
 * where there are none
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_statistic_spans(const bpt_model *model, bpt_span **spans, size_t *n);

#endif
