/** @file tools/tune/search.h
 * The search for the fastest choices: one knob after the other, each value against the best so far,
 * in interleaved rounds; at last convolutions cut by costs, against tiles as usual.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_SEARCH_H
#define BPT_TOOLS_TUNE_SEARCH_H

#include "tools/spread.h"
#include "tools/tune/budget.h"
#include "tools/tune/contender.h"
#include "tools/tune/knobs.h"

enum { BPT_MAX_TRIALS = BPT_N_KNOBS * BPT_MAX_CANDIDATES + 1 };

/** One comparison. */
typedef struct bpt_trial {
    const char *option; /* "threads", or "cuts"; borrowed for ever */
    char value[32];     /* of the candidate */
    char against[32];   /* of the best so far */
    bool measured;      /* false: there was no time for it, or one of the next two */
    bool alike;         /* the same as the best so far: by the costs no cut gains enough */
    bool too_large;     /* there is no room for its parts (bpt_cut_costs_too_large()) */
    bpt_spread ratio;   /* of step times, candidate over best so far */
    bpt_verdict verdict;
} bpt_trial;

typedef struct bpt_search {
    const bpt_tune_subject *subject; /* borrowed */
    const char *prefix; /* what progress begins with, "node1: " where others tune too; borrowed */
    bpt_knob_limits limits;
    bpt_tune_budget budget;
    /* What came out. */
    bpt_trial trials[BPT_MAX_TRIALS];
    size_t n_trials;
    double noise;          /* relative: what two networks that are alike differ by */
    uint64_t n_rounds;     /* of all comparisons */
    bpt_spread standard_s; /* seconds of a step with the default, in the last comparison */
    bpt_spread best_s;     /* likewise with the best; where that is the default, the same */
    bpt_spread gain;       /* ratio best over default, in a comparison of its own; n is 0 where
                            * there was none */
    bpt_tuned_choices standard, best; /* best.cuts: NULL, or the table below */
    bpt_cost_table cuts; /* what parts of convolutions took, for the best number of threads; until
                          * the release */
    /* Its own. */
    bpt_contender *incumbent, *other; /* the best so far, and what it is compared with */
    uint64_t steps;                   /* of a side in a round */
    uint64_t shown_ns;                /* when progress was last shown */
    bool lacks_costs;                 /* the incumbent's are of choices that were dropped */
} bpt_search;

/** Searches within the budget; the search is to be released in any case. A result that a comparison
 * with the default in the end does not confirm is dropped.
 * @param search subject, prefix, limits and budget are set, the rest is zero
 * @return BPT_OK, BPT_ECANCELED (a signal), or an error of the parts */
bpt_status bpt_search_run(bpt_search *search);

/** @return what the tasks take with the best choices; valid until the search is released; NULL
 * where there was no time to measure the default again */
const bpt_task_costs *bpt_search_costs(const bpt_search *search);
void bpt_search_release(bpt_search *search);

#endif
