/** @file inner/loops/vector_loops.h
 * Plain loops over vectors in memory. Pure; one pass.
 *
 * Threads: any, on ranges that do not overlap. */
#ifndef BPT_INNER_VECTOR_LOOPS_H
#define BPT_INNER_VECTOR_LOOPS_H

#include "inner/loops/value_type.h"

#include <stddef.h>
#include <stdint.h>

/** w = w - part * g: a running statistic follows the batch's. @param w,g shape [n], no overlap */
void bpt_running_update(float *restrict w, const float *restrict g, size_t n, float part);

/** sum = x + y, elementwise. @param sum,x,y shape [n], no overlap */
void bpt_sum_of(float *restrict sum, const float *restrict x, const float *restrict y, size_t n);

/** sum += x, elementwise. @param sum,x shape [n], no overlap */
void bpt_sum_add(float *restrict sum, const float *restrict x, size_t n);

/* Between bfloat16 and floats. @param sum,x,out shape [n], no overlap */

/** sum = x */
void bpt_widen(float *restrict sum, const bpt_bf16 *restrict x, size_t n);
/** sum += x */
void bpt_widen_add(float *restrict sum, const bpt_bf16 *restrict x, size_t n);
/** out = x, rounded */
void bpt_narrow(bpt_bf16 *restrict out, const float *restrict x, size_t n);

enum { BPT_MAX_SUM_LANES = 16 };

/** sums[l] += x[i][j][l] for all i and j: a row i is summed in float, which has enough digits for
 * so few values, and all of them in double.
 * @param x shape [rows][columns][lanes], rows @p stride values apart; @param lanes at most
 * BPT_MAX_SUM_LANES; @param sums shape [lanes] */
void bpt_sum_lanes(bpt_value_type type, const void *restrict x, int64_t rows, int64_t stride,
                   int64_t columns, int64_t lanes, double *restrict sums);

/** @return the sum of x[i]^2 in double precision, in an order that depends on n alone
 * @param x shape [n] */
double bpt_sum_of_squares(const float *x, size_t n);

#endif
