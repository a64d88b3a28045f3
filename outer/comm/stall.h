/** @file outer/comm/stall.h
 * Inside of outer/: whose turn it is to speak of a stall, and who is named: rules without MPI.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_OUTER_STALL_H
#define BPT_OUTER_STALL_H

#include "outer/comm/doing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT__WHAT_SIZE = 48 };

/** What a rank is at, as it is told to others. */
typedef struct bpt__activity {
    uint32_t kind; /* enum bpt__doing */
    uint32_t unused;
    double held_s;             /* for so long without any change */
    char what[BPT__WHAT_SIZE]; /* "an exchange of weights" */
} bpt__activity;

/** What one rank knows of another. */
typedef struct bpt__rank_view {
    bool answered; /* when it was asked */
    bpt__activity at;
} bpt__rank_view;

/** Tells whether rank @p me shall speak: of those that wait for others the lowest does, and
 * where nobody waits for others the lowest that is held up by itself, by a disk that all share for
 * instance. Waits that are short against the limit do not count.
 * @param views shape [n]; its own is answered */
bool bpt__stall_is_mine(const bpt__rank_view *views, uint32_t n, uint32_t me, double limit_s);

/** Says for how long rank @p me has waited, where, and for whom: ranks that do not answer and those
 * that have been busy for long; where there are none, all that are busy. Never one that idles.
 * @param hosts shape [n]
 * @param[out] text shape [size]
 * @return a hint that fits, for ever */
const char *bpt__stall_describe(const bpt__rank_view *views, uint32_t n, uint32_t me,
                                double limit_s, char (*hosts)[BPT__HOST_SIZE], char *text,
                                size_t size);

#endif
