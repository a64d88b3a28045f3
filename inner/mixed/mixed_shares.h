/** @file inner/mixed/mixed_shares.h
 * How many samples the cores were found to be best given, by network. Measured anew another number
 * may win, and sums would have another order; kept, a process computes as the one before it.
 *
 * Threads: one at a time. */
#ifndef BPT_INNER_MIXED_MIXED_SHARES_H
#define BPT_INNER_MIXED_MIXED_SHARES_H

#include "base/status.h"
#include "base/yaml.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What the number depends on. */
typedef struct bpt__mixed_problem {
    int64_t forward_only, batch, type, layers, elements, input; /* values of a sample */
    int64_t workers;
    int64_t frozen; /* layers that do not learn; 0 of what only evaluates, to which it is all one */
} bpt__mixed_problem;

typedef struct bpt__mixed_share {
    bpt__mixed_problem problem;
    int64_t n_cores;
    bool used; /* in this process: others are not written again */
} bpt__mixed_share;

/** All zero: empty. */
typedef struct bpt__mixed_shares {
    bpt__mixed_share *items; /* shape [n] */
    size_t n, capacity;
} bpt__mixed_shares;

void bpt__mixed_shares_clear(bpt__mixed_shares *shares);

/** @return that of a problem, which counts as used from then on; NULL if there is none. Valid until
 * the next one is noted */
const bpt__mixed_share *bpt__mixed_shares_find(bpt__mixed_shares *shares,
                                               bpt__mixed_problem problem);

/** Adds one as used, or puts it in the place of another one of its problem. @return BPT_OK,
 * BPT_ENOMEM */
bpt_status bpt__mixed_shares_note(bpt__mixed_shares *shares, bpt__mixed_problem problem,
                                  int64_t n_cores);

/** @param[out] text a list in YAML, without what it is called: "\n  - [...]\n" or " []\n"; caller
 * owns, bpt_free() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__mixed_shares_write(const bpt__mixed_shares *shares, char **text);

/** Adds those of such a list. @return BPT_OK, BPT_EUSAGE (names file and line), BPT_ENOMEM */
bpt_status bpt__mixed_shares_read(bpt__mixed_shares *shares, const bpt_yaml *doc,
                                  const bpt_yaml_node *list);

#endif
