/** @file tools/train/exchange/carry_over.h
 * What a rank goes on training from when the answer to a push has come, which it may have trained
 * on meanwhile.
 *
 * With w its weights now, p those that it pushed and g the global ones that come back:
 *     deltas     w + (g - p)            what it learnt since the push is carried over, and belongs
 *                                       to the next one
 *     easgd      w - alpha / (1 - alpha) (p - g)      see bpt_rule_easgd
 *     meeting    g                      for every rank, whatever the rule
 *
 * Threads: pure. */
#ifndef BPT_TOOLS_CARRY_OVER_H
#define BPT_TOOLS_CARRY_OVER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bpt_carry {
    bool own;          /* the rank has trained since the push */
    bool met;          /* the answer is that of a meeting; then own is false */
    double elasticity; /* alpha of easgd; 0: deltas */
} bpt_carry;

/** @param[in,out] local w, shape [n]; only written where own is false: it is p then
 * @param pushed p, shape [n]
 * @param global g, shape [n] */
void bpt_carry_over(const bpt_carry *c, float *local, const float *pushed, const float *global,
                    size_t n);

#endif
