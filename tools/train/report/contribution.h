/** @file tools/train/report/contribution.h
 * Whether a rank brings the job more than it costs.
 *
 * Where nobody waits, a rank costs what the others spend on its pushes. Where all wait, it costs
 * the time by which it is later than the others would be with its samples on top of theirs.
 *
 * Threads: pure functions. */
#ifndef BPT_TOOLS_CONTRIBUTION_H
#define BPT_TOOLS_CONTRIBUTION_H

#include <stdint.h>

/** What one rank did in a job. */
typedef struct bpt_effort {
    uint64_t samples;     /* trained on */
    uint64_t submissions; /* pushes */
    double compute_s;     /* in training steps */
    double comm_s;        /* processor time spent on messages and on merging, all threads as one */
    uint32_t threads;     /* at least 1 */
} bpt_effort;

/** @param seconds that the job took, > 0
 * @return images a second that the job would win (> 0) or lose (< 0) without @p rank where nobody
 *         waits: what the others could do instead of serving it, less its own */
double bpt_gain_without_async(const bpt_effort *ranks, uint32_t n, uint32_t rank, double seconds);

/** @return part of the job's time that would be saved (> 0) or added (< 0) without @p rank where
 *         all wait for each other, its samples shared among the others in proportion to theirs; at
 *         least 2 ranks */
double bpt_gain_without_sync(const bpt_effort *ranks, uint32_t n, uint32_t rank);

#endif
