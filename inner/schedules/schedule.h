/** @file inner/schedules/schedule.h
 * The learning rate as a function of progress. One kind of schedule is one file of
 * inner/schedules/, a row of a table. Pure.
 *
 * Threads: any. */
#ifndef BPT_INNER_SCHEDULE_H
#define BPT_INNER_SCHEDULE_H

#include <stddef.h>

enum { BPT_SCHEDULE_MAX_MILESTONES = 16 };

typedef struct bpt_schedule_kind bpt_schedule_kind;

/** Progress is measured in epochs: samples trained so far over samples of the split. A kind reads
 * the fields that are named after it and no others. */
typedef struct bpt_schedule {
    const bpt_schedule_kind *kind;
    double base;          /* the learning rate, > 0; that of the top for onecycle */
    double total_epochs;  /* > 0 */
    double warmup_epochs; /* 0: none; the rate grows linearly to base, and multiplies the rest */
    double warmup_start;  /* part of base that it grows from, in [0, 1] */
    double factor;        /* step, multistep: of each step, in (0, 1] */
    double every_epochs;  /* step: > 0 */
    double milestones[BPT_SCHEDULE_MAX_MILESTONES]; /* multistep: growing; shape [n_milestones] */
    size_t n_milestones;
    double power;            /* polynomial: >= 0 */
    double pct_start;        /* onecycle: part of the run in which the rate rises, in [0, 1) */
    double div_factor;       /* onecycle: base over the first rate, >= 1 */
    double final_div_factor; /* onecycle: the first rate over the last, >= 1 */
} bpt_schedule;

/** One kind. */
struct bpt_schedule_kind {
    const char *name; /* "cosine" */

    /** @param epoch       where the step begins, in [0, total_epochs]
     * @param step_epochs length of the step, >= 0
     * @return what base is multiplied by */
    double (*factor)(const bpt_schedule *s, double epoch, double step_epochs);
};

/** The rate of one step. A schedule is read where the step begins, as is usual: step t of T under a
 * cosine has base * (1 + cos(pi t / T)) / 2, t = 0 .. T-1, so the first has the whole rate and the
 * last one still more than 0. Warm-up is read where the step ends, with p = min(1, end / warmup)
 * base * (start + (1 - start) p): no step of it has rate 0 either.
 * @param epoch       progress where the step begins, >= 0; beyond the end it counts as the end
 * @param step_epochs length of the step, samples over samples of the split
 * @return the learning rate */
double bpt_schedule_rate(const bpt_schedule *s, double epoch, double step_epochs);

/** @param epoch as above
 * @return the highest rate of a thousand points on the way there, as of steps that take no time; 0
 * at its begin */
double bpt_schedule_highest(const bpt_schedule *s, double epoch);

/** Always 1. */
extern const bpt_schedule_kind bpt_schedule_constant;

/** factor^floor(epoch / every_epochs). PyTorch: StepLR. */
extern const bpt_schedule_kind bpt_schedule_step;

/** factor^k from milestone number k on. PyTorch: MultiStepLR. */
extern const bpt_schedule_kind bpt_schedule_multistep;

/** Half a cosine from 1 down to 0 (SGDR, Loshchilov, Hutter 2017, eq. 5, one cycle), from the start
 * of the run, warm-up included. PyTorch: CosineAnnealingLR. */
extern const bpt_schedule_kind bpt_schedule_cosine;

/** Half a cosine up from 1 / div_factor to 1, then one down to 1 / (div_factor *
 * final_div_factor), which the last step has (Smith 2018, as PyTorch's OneCycleLR): of steps
 * t = 0 .. T-1 the top is t = pct_start * T - 1. */
extern const bpt_schedule_kind bpt_schedule_onecycle;

/** (1 - epoch / total)^power. PyTorch: PolynomialLR. */
extern const bpt_schedule_kind bpt_schedule_polynomial;

/** @return kind number @p i, NULL past the last */
const bpt_schedule_kind *bpt_schedule_kind_at(size_t i);

#endif
