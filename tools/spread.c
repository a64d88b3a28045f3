#include "tools/spread.h"

#include <math.h>
#include <stdlib.h>

static int compare_reals(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* @return how many of n values may be left out at each end: the median lies outside of what
 * remains with a probability of at most 0.05; n below 2^10 */
static size_t ranks_outside(size_t n) {
    double at_most = 0.0, exactly = pow(0.5, (double)n); /* that k of n lie below the median */
    for (size_t k = 0; k < n; k++) {
        at_most += exactly;
        if (2.0 * at_most > 0.05) return k;
        exactly *= (double)(n - k) / (double)(k + 1);
    }
    return 0;
}

/* Between neighbours by distance. @param q 0.25 for the first quartile */
static double quantile(const double *sorted, size_t n, double q) {
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    if (i + 1 >= n) return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

bpt_spread bpt_spread_of(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare_reals);
    bpt_spread s = {
        .n = n,
        .median = quantile(values, n, 0.5),
        .quartile_1 = quantile(values, n, 0.25),
        .quartile_3 = quantile(values, n, 0.75),
        .low = 0.0,
        .high = INFINITY,
    };
    const size_t outside = ranks_outside(n);
    if (outside > 0) {
        s.low = values[outside - 1];
        s.high = values[n - outside];
    }
    return s;
}

bpt_verdict bpt_spread_judge(const bpt_spread *ratio, double noise) {
    if (ratio->high < 1.0 - noise) return BPT_FASTER;
    if (ratio->low > 1.0 + noise) return BPT_SLOWER;
    return BPT_WITHIN_NOISE;
}
