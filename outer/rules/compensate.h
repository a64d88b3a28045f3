/** @file outer/rules/compensate.h
 * Inside of outer/rules/: delay compensation of a delta, after DC-ASGD (Zheng et al. 2017; arXiv
 * 1609.08326, there of a gradient).
 *
 * A gradient g made at weights w_base is applied at w_now. To first order the gradient there is
 * g + H (w_now - w_base), with H the Hessian, for which the paper takes the diagonal lambda g*g:
 *
 *     W <- W - lr (g + lambda g*g*(w_now - w_base))
 *
 * Here a delta takes the place of -lr g: a sum of K steps, delta = - SUM_t lr_t g_t, all of which
 * the paper's rule would have corrected by the same w_now - w_base. With S = SUM_t lr_t, and the
 * mean gradient -delta / S in place of each g_t, that is
 *
 *     delta' = - S (-delta / S + lambda (delta / S)^2 (w_now - w_base))
 *            = delta - (lambda / S) delta*delta*(w_now - w_base)
 *
 * which with K = 1 is the paper's. SGD with momentum mu turns each gradient into 1 / (1 - mu) of it
 * in the long run, so that S is SUM_t lr_t / (1 - mu) then. Units: delta and w_now - w_base are
 * weights, S is weights^2 over loss, and lambda is 1 over loss, as in the paper.
 *
 * What it is not: the square of a mean of K gradients is less than the mean of their squares, up to
 * K times less where noise prevails, so a lambda belongs to a period; and steps made while the
 * answer was under way were made at older weights than w_base.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_RULES_COMPENSATE_H
#define BPT_OUTER_RULES_COMPENSATE_H

#include "outer/rules/update_rule.h"

/** Corrects elements [begin, begin + n) of the one submission of @p m, which has a base.
 * @param[out] delta shape [n] */
void bpt__compensate(const bpt_merge *m, size_t begin, float *delta, size_t n);

#endif
