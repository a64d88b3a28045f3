/** @file tools/train/job/batch_cut.h
 * How a batch of all ranks is cut by their speed, so that none waits for another: a pure rule.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_BATCH_CUT_H
#define BPT_TOOLS_BATCH_CUT_H

#include <stdint.h>

/** @param speed of each rank, in any unit, shape [n_ranks], > 0
 * @param batch samples, at least n_ranks
 * @param[out] cut shape [n_ranks + 1]: rank r has the samples from cut[r] to before cut[r + 1], at
 *             least one, and as near to its part as whole samples allow */
void bpt_batch_cut(const double *speed, uint32_t n_ranks, uint64_t batch, uint64_t *cut);

#endif
