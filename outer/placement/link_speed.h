/** @file outer/placement/link_speed.h
 * How fast values travel between a host and the others.
 *
 * Hosts send each other some values, both ways at once, pair by pair
 * (outer/placement/link_pairs.h). A pair is as fast as the slower of its two links, so what counts
 * for a host is its fastest pair. One rank of each host measures, and its link is shared by all of
 * them evenly.
 *
 * Threads: one, as for the collective calls. */
#ifndef BPT_OUTER_LINK_SPEED_H
#define BPT_OUTER_LINK_SPEED_H

#include "outer/comm/comm.h"

/** Measures; collective. Takes the time of some 2 MB a pair, of at most five pairs a host, and as
 * much memory.
 * @param[out] bytes_per_s each way, of each rank's part of its host's link, shape [n_ranks]; 0: not
 * known, for there is one host
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_comm_link_speeds(bpt_comm *comm, double *bytes_per_s);

#endif
