/** @file outer/link_speed.h
 * How fast values travel between a host and the others.
 *
 * Ranks of different hosts send each other some values, both ways at once, pair by pair: rank r and
 * r XOR 1, then r XOR 2, r XOR 4 and so on. A pair is as fast as the slower of its two links, so
 * what counts for a rank is its fastest pair. Ranks of one host share its link, and are measured
 * while they do.
 *
 * Threads: one, as for the collective calls. */
#ifndef BPT_OUTER_LINK_SPEED_H
#define BPT_OUTER_LINK_SPEED_H

#include "outer/comm.h"

/** Measures; collective. Takes the time of some 2 MB a pair, and as much memory.
 * @param[out] bytes_per_s each way, of each rank, shape [n_ranks]; 0: not known, for the rank was
 * in no pair of two hosts
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_comm_link_speeds(bpt_comm *comm, double *bytes_per_s);

#endif
