/** @file outer/comm/clock_offset.h
 * How far the clocks of the ranks' hosts are apart.
 *
 * Rank 0 sends each of the others some messages, and takes the answer that was back soonest: the
 * other clock was read somewhere between, so half of that time is the error.
 *
 * Threads: one, as for the collective calls. */
#ifndef BPT_OUTER_CLOCK_OFFSET_H
#define BPT_OUTER_CLOCK_OFFSET_H

#include "outer/comm/comm.h"

typedef struct bpt_clock_offset {
    double ahead_s; /* time of day there minus that of rank 0 */
    double error_s; /* at most so much, either way */
} bpt_clock_offset;

/** Measures; collective.
 * @param[out] offsets shape [n_ranks]: of each rank, on rank 0; elsewhere, and of rank 0, zeros
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_comm_clock_offsets(bpt_comm *comm, bpt_clock_offset *offsets);

#endif
