/** @file outer/rules/staleness.h
 * The staleness bound of SSP (Ho et al. 2013; ALGORITHMS section 6).
 *
 * A worker's clock is the number of its submissions that arrived. A submission may be applied while
 * its worker is at most s clocks ahead of the slowest active worker: s = 0 is bulk synchronous,
 * without a bound nobody ever waits. A worker that waits at a meeting, as all do at the end, is not
 * active and holds nobody up. The slowest active worker is always admitted, so there is no
 * deadlock.
 *
 * Threads: one thread at a time. */
#ifndef BPT_OUTER_STALENESS_H
#define BPT_OUTER_STALENESS_H

#include <stdbool.h>
#include <stdint.h>

#define BPT_STALENESS_NONE UINT32_MAX /* no bound */

/** Clocks of all workers; the arrays belong to the caller. */
typedef struct bpt_clocks {
    uint32_t n_workers;
    uint32_t bound;  /* s, or BPT_STALENESS_NONE */
    uint64_t *clock; /* submissions that arrived, shape [n_workers] */
    bool *active;    /* shape [n_workers] */
} bpt_clocks;

/** @return by how many clocks @p worker is ahead of the slowest active worker; 0 if none is
 * active */
uint64_t bpt_clocks_lead(const bpt_clocks *clocks, uint32_t worker);

/** @return whether the latest submission of @p worker may be applied now */
bool bpt_clocks_admit(const bpt_clocks *clocks, uint32_t worker);

/** All workers are at the same weights again: every clock restarts at 0, every worker is active. */
void bpt_clocks_level(bpt_clocks *clocks);

#endif
