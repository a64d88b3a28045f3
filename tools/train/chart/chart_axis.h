/** @file tools/train/chart/chart_axis.h
 * Axes of a chart: where values lie on them, and the numbers at them that a person would choose:
 * 1, 2 and 5 times a power of ten.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_TOOLS_CHART_AXIS_H
#define BPT_TOOLS_CHART_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum { BPT_CHART_TICKS = 32, BPT_CHART_NUMBER_SIZE = 24 };

typedef struct bpt_chart_axis {
    double lo, hi; /* at its ends; lo < hi */
    bool log;      /* equal factors are equally far apart; 0 < lo */
    double step;   /* between ticks, where it is not log */
    double ticks[BPT_CHART_TICKS];
    size_t n_ticks;
} bpt_chart_axis;

/** What an axis shows. */
typedef struct bpt_chart_range {
    double lo, hi;      /* lo <= hi, both finite; equal or nearly so: it is widened */
    double least, most; /* how far it may be widened */
    bool to_ticks;      /* its ends are where ticks are */
    unsigned n_most;    /* ticks, or one or two more, at least 2 */
} bpt_chart_range;

bpt_chart_axis bpt_chart_axis_linear(const bpt_chart_range *range);

/** Likewise, by factors: whole decades have ticks at 1, 2 and 5 where they are few, else at 1, or
 * at some of those. @param range 0 < lo; least and most are not asked */
bpt_chart_axis bpt_chart_axis_log(const bpt_chart_range *range);

/** @return where a value is, 0 at lo and 1 at hi; on an axis of factors what is not above 0 is as
 * far below as can be drawn */
double bpt_chart_axis_place(const bpt_chart_axis *axis, double value);

/** Writes the number of a tick, with as many digits as all of the axis need.
 * @param[out] text shape [BPT_CHART_NUMBER_SIZE] */
void bpt_chart_axis_label(const bpt_chart_axis *axis, double tick, char *text);

/** Writes a value that stands alone: four digits of it.
 * @param[out] text shape [BPT_CHART_NUMBER_SIZE] */
void bpt_chart_number(double value, char *text);

#endif
