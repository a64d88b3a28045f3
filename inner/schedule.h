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
    BPT_SCHEDULE_STEP,   /* times factor after each given epoch */
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

/** @param epoch progress, >= 0; beyond the end it counts as the end. During warm-up the rate is
 *              base * min(1, epoch / warmup), with @p epoch that of the END of the step it is used
 *              in, so that no step of the warm-up has rate 0. Under a cosine the last step of a run
 *              has rate 0 and leaves the weights as they are
 * @return the learning rate */
double bpt_schedule_rate(const bpt_schedule *s, double epoch);

#endif
