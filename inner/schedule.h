/** @file inner/schedule.h
 * The learning rate as a function of progress. Pure.
 *
 * Threads: any. */
#ifndef BPT_INNER_SCHEDULE_H
#define BPT_INNER_SCHEDULE_H

#include "base/status.h"

#include <stddef.h>

typedef enum bpt_schedule_kind {
    BPT_SCHEDULE_CONSTANT,
    BPT_SCHEDULE_STEP,   /* times factor from each given epoch on */
    BPT_SCHEDULE_COSINE, /* half a cosine from the base rate down to 0 (SGDR, Loshchilov, Hutter
                            2017, eq. 5, one cycle), from the start of the run, warm-up included */
} bpt_schedule_kind;

enum { BPT_SCHEDULE_MAX_STEPS = 16 };

/** Progress is measured in epochs: samples trained so far over samples of the split. */
typedef struct bpt_schedule {
    bpt_schedule_kind kind;
    double base;          /* the learning rate, > 0 */
    double total_epochs;  /* > 0 */
    double warmup_epochs; /* 0: none; the rate grows linearly to base, and multiplies the rest */
    double factor;        /* of a step, in (0, 1] */
    double at_epochs[BPT_SCHEDULE_MAX_STEPS]; /* of the steps, growing, shape [n_steps] */
    size_t n_steps;
} bpt_schedule;

/** The rate of one step. A schedule is read where the step begins, as is usual: step t of T under a
 * cosine has base * (1 + cos(pi t / T)) / 2, t = 0 .. T-1, so the first has the whole rate and the
 * last one still more than 0. Warm-up is read where the step ends, base * min(1, end / warmup): no
 * step of it has rate 0 either.
 * @param epoch       progress where the step begins, >= 0; beyond the end it counts as the end
 * @param step_epochs length of the step, samples over samples of the split
 * @return the learning rate */
double bpt_schedule_rate(const bpt_schedule *s, double epoch, double step_epochs);

#endif
