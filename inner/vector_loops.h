/** @file inner/sgd.h
 * Stochastic gradient descent with momentum. Pure; one pass over memory.
 *
 * Threads: any, on ranges that do not overlap. */
#ifndef BPT_INNER_SGD_H
#define BPT_INNER_SGD_H

#include <stddef.h>

/** v = momentum * v + g + decay * w;  w = w - rate * v
 * @param w,v,g shape [n], no overlap */
void bpt_sgd_update(float *restrict w, float *restrict v, const float *restrict g, size_t n,
                    float rate, float momentum, float decay);

/** w = w - part * g: a running statistic follows the batch's. @param w,g shape [n], no overlap */
void bpt_running_update(float *restrict w, const float *restrict g, size_t n, float part);

/** sum = x + y, elementwise. @param sum,x,y shape [n], no overlap */
void bpt_sum_of(float *restrict sum, const float *restrict x, const float *restrict y, size_t n);

/** sum += x, elementwise. @param sum,x shape [n], no overlap */
void bpt_sum_add(float *restrict sum, const float *restrict x, size_t n);

#endif
