/** @file tools/spread.h
 * The median of measurements, how sure it is, and what may be concluded from it.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_SPREAD_H
#define BPT_TOOLS_SPREAD_H

#include <stddef.h>

/** With fewer values nothing is known about their median: 2 * 0.5^n has to be below 0.05. */
enum { BPT_SPREAD_MIN = 6 };

typedef struct bpt_spread {
    size_t n;
    double median, quartile_1, quartile_3;
    double low, high; /* the median of all such measurements lies between them with a probability of
                       * at least 0.95, whatever their distribution; 0 and infinity below
                       * BPT_SPREAD_MIN */
} bpt_spread;

/** @param values shape [n], n at least 1; sorted by this
 * @return their spread; the interval is that of the sign test (order statistics) */
bpt_spread bpt_spread_of(double *values, size_t n);

typedef enum bpt_verdict {
    BPT_WITHIN_NOISE,
    BPT_FASTER,
    BPT_SLOWER,
} bpt_verdict;

/** @param ratio time of a candidate over that of what it is compared with, in pairs
 * @param noise what two that are alike may differ by: 0.01 for 1 %
 * @return faster or slower where the whole interval is beyond the noise */
bpt_verdict bpt_spread_judge(const bpt_spread *ratio, double noise);

#endif
