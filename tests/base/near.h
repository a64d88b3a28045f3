/** @file tests/base/near.h
 * Numbers that are to be near to others.
 *
 * Threads: one. */
#ifndef BPT_TESTS_BASE_NEAR_H
#define BPT_TESTS_BASE_NEAR_H

#include <math.h>

/** Fails unless @p x is within @p tolerance of @p expected, which NaN never is. In place of
 * cmocka's assert_float_equal(), which takes NaN and infinity for equal to any number, and rounds
 * to floats before it compares. */
#define assert_near(x, expected, tolerance)                                                        \
    do {                                                                                           \
        const double near_x = (double)(x), near_expected = (double)(expected);                     \
        if (!(fabs(near_x - near_expected) <= (tolerance)))                                        \
            fail_msg("%.17g, not %.17g", near_x, near_expected);                                   \
    } while (0)

#endif
