/** @file base/integers.h
 * What C lacks for sizes and counts.
 *
 * Threads: any; plain functions. */
#ifndef BPT_BASE_INTEGERS_H
#define BPT_BASE_INTEGERS_H

#include <stdint.h>

static inline int64_t bpt_smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t bpt_larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/** @param n at least 0
 *  @param by at least 1
 *  @return n / by, rounded up: the parts of at most @p by that n things make */
static inline int64_t bpt_quotient_up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

/** @param n at least 0
 *  @param to at least 1
 *  @return the least multiple of @p to that is not below n */
static inline int64_t bpt_rounded_up(int64_t n, int64_t to) {
    return bpt_quotient_up(n, to) * to;
}

#endif
