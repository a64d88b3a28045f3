/** @file tools/train/exchange/pace.h
 * How many steps a rank trains between two exchanges of weights: what --sync-every says, or, with
 * auto, what exchanges cost here.
 *
 * An exchange takes processor time from training: the copies of the thread that trains, and the MPI
 * thread, which also serves the shard of this rank. With auto a rank exchanges no oftener than
 * keeps that to one part in 50 of its steps' time, within bounds that keep ranks from drifting
 * apart and short runs from ending late. So a slow host, which serves more pushes of others between
 * two of its own than a fast one, exchanges more rarely. How far ranks drift apart goes by the
 * learning rate: on up to four ranks the bound grows as that falls (in Gu et al. 2024, "A quadratic
 * synchronization rule", by the square of it). The end of the run is noticed at an exchange, so an
 * interval does not go beyond where it is expected, and the last ones are of single steps.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_PACE_H
#define BPT_TOOLS_PACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_pace {
    uint64_t least, most; /* steps, 1 <= least <= most; most: at the highest rate */
    uint64_t limit;       /* steps, >= most: of most where the rate has fallen */
    uint64_t every;       /* steps between exchanges now, 1 to limit: below least near the end */
    bool follows;         /* what is noted; else every stays */
    double exchange_s; /* processor seconds of one, a mean over the latest; 0: none was measured */
    double step_s;     /* of a step, likewise */
    double step_all;   /* samples of all ranks in the time of a step, likewise */
    double highest;    /* learning rate so far; 0: none yet */
} bpt_pace;

/** What was between two exchanges. */
typedef struct bpt_pace_span {
    uint64_t steps;    /* of this rank; the cost counts where it is not 0 */
    double steps_s;    /* processor seconds that these took */
    double exchange_s; /* processor seconds of the exchange on this rank, as worker and as host; 0:
                        * not known, and the cost stays what it was */
    double rate;       /* the learning rate at its end, >= 0 */
    uint64_t progress; /* samples of all ranks; 0: not known */
    uint64_t left;     /* samples of all ranks to the end of the run */
} bpt_pace_span;

/** What bounds are taken from. */
typedef struct bpt_pace_run {
    uint64_t epoch_samples, total_samples; /* of all ranks, in an epoch and in the run */
    uint64_t batch_all;                    /* samples that one step of each rank comes to, > 0 */
    uint32_t n_workers;                    /* ranks that train */
    bool shared_momentum; /* whether they go on with the momentum of all: few do so for longer */
} bpt_pace_run;

/** Checks a value of --sync-every: "8" (steps), "0.05ep" (epochs), "auto".
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_pace_check(const char *text);

/** No interval is longer than the run: its end is noticed at an exchange.
 * @param text a value that bpt_pace_check() has found right
 * @return the pace at the start; it follows where the text is "auto" */
bpt_pace bpt_pace_begin(const char *text, bpt_pace_run run);

/** Takes in what an exchange cost, and the steps before it.
 * @return whether every has changed */
bool bpt_pace_note(bpt_pace *pace, const bpt_pace_span *span);

#endif
