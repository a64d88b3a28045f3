/** @file tools/tune/knobs.h
 * What can be turned: options of bpt-train that change speed and nothing else, and the values that
 * are worth a try.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TUNE_KNOBS_H
#define BPT_TOOLS_TUNE_KNOBS_H

#include "tools/tuned_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** In the order in which they are tried: what promises most comes first. */
typedef enum bpt_knob {
    BPT_KNOB_THREADS,
    BPT_KNOB_LOADER_THREADS,
    BPT_KNOB_POLICY,
    BPT_KNOB_PREFETCH,
    BPT_N_KNOBS,
} bpt_knob;

enum { BPT_MAX_CANDIDATES = 8 };
enum { BPT_MOST_LOADER_THREADS = 4, BPT_MOST_PREFETCH = 16 }; /* that are tried */

/** What the values depend on. */
typedef struct bpt_knob_limits {
    unsigned cores;      /* that this process may use */
    unsigned processors; /* of the operating system, at least as many; at most BPT_MAX_WORKERS */
    bool loads;          /* images come from a dataset */
} bpt_knob_limits;

/** @param cores      in [1, BPT_MAX_WORKERS]
 * @param processors any number; 0: it is not known
 * @return limits with so many processors as a pool can use: no more threads are tried */
bpt_knob_limits bpt_knob_limits_make(unsigned cores, unsigned processors, bool loads);

/** @return the option's name: "threads" */
const char *bpt_knob_name(bpt_knob knob);

/** @return what bpt-train does without options, on such a machine */
bpt_tuned_choices bpt_knob_defaults(const bpt_knob_limits *limits);

/** Lists the values that are worth a try beside the default, the likeliest first.
 * @param[out] values for bpt_knob_set(), shape [BPT_MAX_CANDIDATES]
 * @return their number; 0: nothing to turn here */
size_t bpt_knob_candidates(bpt_knob knob, const bpt_knob_limits *limits, int64_t *values);

/** @param value a count, or the number of a policy for bpt_policy_at() */
void bpt_knob_set(bpt_knob knob, int64_t value, bpt_tuned_choices *choices);

/** Writes the knob's value as the option takes it: "2", "fifo". */
void bpt_knob_text(bpt_knob knob, const bpt_tuned_choices *choices, char *text, size_t size);

/** @return whether two differ in a knob */
bool bpt_knob_differs(bpt_knob knob, const bpt_tuned_choices *a, const bpt_tuned_choices *b);

#endif
