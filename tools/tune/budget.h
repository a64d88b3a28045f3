/** @file tools/tune/budget.h
 * How much time is left, and what it suffices for.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_BUDGET_H
#define BPT_TOOLS_TUNE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/** All times in seconds. */
typedef struct bpt_tune_budget {
    uint64_t start_ns; /* of the program: bpt_clock_ns() */
    double total;
    double build, round; /* what the next side of a comparison and the next round should take */
} bpt_tune_budget;

/** @return what is left, 0 or less where it is used up */
double bpt_budget_left(const bpt_tune_budget *b);

/** Notes what a build or a round has taken: the expectation follows the measurements, half of it
 * the last one. One that somebody else's load has made long is forgotten again.
 * @param expected .build or .round; 0 before the first */
void bpt_budget_note(double *expected, double seconds);

/** @return whether a round would end in time even if it took half as long again as is expected */
bool bpt_budget_has_round(const bpt_tune_budget *b);

/** @return seconds of the shortest comparison that says something, its build included */
double bpt_budget_fewest(const bpt_tune_budget *b);

/** The time for the next comparison.
 * @param left      seconds
 * @param n_pending comparisons that are to come, the next one included, at least 1
 * @param confirms  comparisons whose time is kept for the last one, which confirms the result
 * @return an even share of what is left, at least what the fewest rounds that say something take;
 *         0 where these would use up the time of the last one */
double bpt_budget_share(const bpt_tune_budget *b, double left, unsigned n_pending,
                        unsigned confirms);

#endif
