/** @file outer/data/idpa.h
 * Shares of data in whole samples: even, by prior speed, and by measured time (IDPA).
 *
 * IDPA gives the data out in A batches: the first by a guess of each rank's speed, every later one
 * so that what a rank holds in all comes to the same time per pass everywhere. These rounds
 * move nothing (ALGORITHMS 1.2, after BPT-CNN); later ones may (outer/exchange/coordinator.h).
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_IDPA_H
#define BPT_OUTER_IDPA_H

#include "base/status.h"

#include <stdint.h>

/** Rounds shares of @p total to whole numbers by largest remainder; among equal remainders the
 * lower rank gains.
 * @param weight shape [m], finite and >= 0, not all 0; only their ratios matter
 * @param[out] count shape [m], sums to @p total
 * @return BPT_OK, BPT_EUSAGE (no valid weight), BPT_ENOMEM */
bpt_status bpt_share_proportional(uint64_t total, const double *weight, uint32_t m,
                                  uint64_t *count);

/** First batch: in proportion to the speed that each rank is believed to have. Where the batch has
 * a sample for every rank, none is left without (it could never be measured).
 * @param speed shape [m], > 0, any unit
 * @param[out] count shape [m], sums to @p batch
 * @return BPT_OK, BPT_EUSAGE (a speed is not positive), BPT_ENOMEM */
bpt_status bpt_idpa_first(uint64_t batch, const double *speed, uint32_t m, uint64_t *count);

/** A later batch: tops every rank up to T/tbar_j, T = (held + batch) / SUM_j 1/tbar_j. A rank that
 * holds more than that gets nothing, and the target of the others is lowered in proportion
 * 1/tbar_j until none is above it.
 * @param batch samples to give out
 * @param held  what each rank holds already, shape [m]
 * @param tbar  measured time per sample, shape [m], > 0, any unit
 * @param[out] count shape [m], sums to @p batch
 * @return BPT_OK, BPT_EUSAGE (a time is not positive), BPT_ENOMEM */
bpt_status bpt_idpa_next(uint64_t batch, const uint64_t *held, const double *tbar, uint32_t m,
                         uint64_t *count);

#endif
