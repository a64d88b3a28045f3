/** @file outer/comm/alike.h
 * Inside of outer/: what all ranks must have in common before they work together.
 *
 * Threads: the one that makes collective calls. */
#ifndef BPT_OUTER_ALIKE_H
#define BPT_OUTER_ALIKE_H

#include "outer/comm/comm.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt__common {
    const char *unlike; /* said of a rank that has another: "has another staleness bound" */
    uint64_t value;     /* or a checksum of it */
    bool unknown;       /* to this rank: then it is compared among the others */
} bpt__common;

/** Collective. Compares what the ranks have; all see the same table, and come to the same verdict.
 * @param mine shape [n], in the same order on all ranks
 * @return BPT_OK, BPT_ENOMEM, BPT_ECOMM, BPT_EUSAGE: names the first rank that differs, what in,
 *         and from whom; BPT_EPEER where another rank has no memory */
bpt_status bpt__alike(bpt_comm *comm, const bpt__common *mine, uint32_t n);

#endif
