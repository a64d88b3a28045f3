/** @file tools/train/chart/chart_series.h
 * A quantity over a run, thinned as it comes: as many points as a picture can show, however long
 * the run.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHART_SERIES_H
#define BPT_TOOLS_CHART_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_CHART_POINTS = 1000 }; /* even: points are joined in pairs */

/** What some neighbouring values have in common. */
typedef struct bpt_chart_point {
    double epoch, seconds, value; /* means */
    double last_epoch;            /* of the last of them, see bpt_chart_place */
    double top, top_epoch;        /* the largest of them, the first such, and where it is */
    uint64_t n;                   /* of how many, at least 1 */
} bpt_chart_point;

/** Zero-initialise. */
typedef struct bpt_chart_series {
    bpt_chart_point points[BPT_CHART_POINTS];
    size_t n;
    uint64_t joined; /* values that a whole point is of; 0 is 1 */
} bpt_chart_series;

/** Where a value of a series is. */
typedef struct bpt_chart_place {
    double epoch, seconds; /* of a mean over an interval: its middle */
    double last_epoch;     /* of what it is of: the end of that interval; at least epoch */
} bpt_chart_place;

/** Adds a value behind the others. Where there is no more room each point is joined with its
 * neighbour, and those to come are of twice as many values.
 * @param place not before the one before; all numbers are finite */
void bpt_chart_series_add(bpt_chart_series *s, const bpt_chart_place *place, double value);

/** Drops the points that hold a value from behind @p epoch: of thinned points perhaps one value
 * too many, never one too few. */
void bpt_chart_series_cut(bpt_chart_series *s, double epoch);

/** @return the point with the largest value, the first such; NULL: there is none */
const bpt_chart_point *bpt_chart_series_top(const bpt_chart_series *s);

/** A series as it is drawn. */
typedef struct bpt_chart_curve {
    double x[BPT_CHART_POINTS], y[BPT_CHART_POINTS];
    size_t n;
} bpt_chart_curve;

/** @param unit_s seconds that one of the unit of x has; 0: x is epochs */
void bpt_chart_curve_of(const bpt_chart_series *s, double unit_s, bpt_chart_curve *curve);

/** Draws a smooth curve through a noisy one: at each x the line that fits the neighbours best,
 * weighted by the bell curve of a width that is a hundredth of the whole, or the way of two points
 * (a local linear regression, which unlike a moving mean leaves a straight slope as it is, at the
 * ends too).
 * @return whether that shows something: there are points enough, and they scatter by more than a
 *         fiftieth of the range of the smooth curve, and not by rounding alone; else @p smooth is
 * not to be used */
bool bpt_chart_curve_smooth(const bpt_chart_curve *curve, bpt_chart_curve *smooth);

/** Widens a range to hold all y of a curve. */
void bpt_chart_curve_range(const bpt_chart_curve *curve, double *lo, double *hi);

#endif
