/** @file outer/rules/shared_momentum.h
 * Momentum of all: what a worker goes on with when fresh global weights have come.
 *
 * A worker that trains apart has the momentum of its own gradients, whose noise is that of its own
 * samples. How far the global weights came from one answer to the next tells it the momentum of
 * all. With SGD a step moves weights by rate * v, and of what a worker's steps do 1/m is added to
 * the global weights: for each step that all m make these move by rate times the mean of the v.
 * With S samples trained on by all meanwhile,
 *
 *     u = (W_before - W_now) / (rate * S / (m * batch)),    v <- kappa * u
 *
 * After FedCM (Xu, Wang, Wang, Yao 2021; arXiv 2106.10874), where a worker's steps go along the
 * last movement of all, and here its momentum begins with it.
 *
 * Kappa. With n steps from one answer to the next, the same gradient g in each of them and the
 * momentum beta, the next u is
 *
 *     u' = A v + (1 - A) g / (1 - beta)
 *     A = (beta + ... + beta^n) / n, with Nesterov's momentum beta times that
 *
 * In the long run, with v = kappa u, that is
 *
 *     u = gain * g / (1 - beta),    gain = (1 - A) / (1 - kappa * A)
 *
 * so that kappa = (gain - 1 + A) / (gain * A) makes a gradient count gain times what it counts by
 * momentum alone: what is known of m workers is less noisy by the root of m, and may be followed
 * farther; of unequal ones by the root of how many equal ones they are worth
 * (bpt_partition_equal_ranks()). Kappa grows with n, as A falls. It is at most gain, so that no
 * step is larger than gain times those before; from some n on the true gain is less (30 with a gain
 * of 2.83 and Nesterov's momentum of 0.9).
 *
 * What it is not: S is counted with the first shard, and another may hold a push more or less; what
 * is too much at one answer is too little at the next. The rate is the mean of those at both
 * answers, while what arrived in between was learnt at those of before: where the rate falls by
 * half from one to the next u comes out 4/3 times as large, of pushes that began earlier yet more,
 * and where it rises less. So the way of the weights goes on a little as it was, which is found to
 * help (docs/decisions.md, "Ranks share their momentum without sending it").
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_SHARED_MOMENTUM_H
#define BPT_OUTER_SHARED_MOMENTUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_shared_momentum {
    double gain;     /* >= 1; 0: each worker keeps its own momentum */
    double ranks;    /* the gain is that of so many equal ones, and follows what they are worth; 0:
                      * it stays as it is */
    double momentum; /* beta, in (0, 1) */
    bool nesterov;
    uint64_t step_samples; /* m * batch */
} bpt_shared_momentum;

/** What happened between two answers to a worker. */
typedef struct bpt_movement {
    uint64_t steps;     /* n, its own */
    uint64_t samples;   /* S, of all */
    double rate;        /* learning rate, mean of those at both answers */
    double equal_ranks; /* what the ranks are worth; read where the gain follows it */
} bpt_movement;

/** @return the gain of ranks that are worth so many equal ones; 0: too few for it, and each keeps
 * its own momentum */
double bpt_shared_momentum_gain(const bpt_shared_momentum *s, double equal_ranks);

/** @param s with a gain, which @p gain is of now
 * @param steps n, above 0
 * @return kappa, in [1, gain] */
double bpt_shared_momentum_kappa(const bpt_shared_momentum *s, double gain, uint64_t steps);

/** @return what W_before - W_now is to be multiplied by; 0 where it tells nothing, and the worker
 *          keeps its momentum: no steps, samples or rate (or next to none), or no gain */
double bpt_shared_momentum_scale(const bpt_shared_momentum *s, const bpt_movement *moved);

/** @param[out] velocity scale * (before - now), shape [n] as both
 * @param scale above 0 */
void bpt_shared_momentum_set(float *velocity, const float *before, const float *now, double scale,
                             size_t n);

#endif
