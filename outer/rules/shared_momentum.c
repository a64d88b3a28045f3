#include "outer/rules/shared_momentum.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* Ranks that are worth less than so many equal ones are better off with their own momenta. */
static const double least_ranks = 1.5;

double bpt_shared_momentum_gain(const bpt_shared_momentum *s, double equal_ranks) {
    if (s->ranks == 0) return s->gain;
    return equal_ranks < least_ranks ? 0 : s->gain * sqrt(equal_ranks / s->ranks);
}

/* A: the part of its momentum at the start that is in the mean of n steps. */
static double kept(const bpt_shared_momentum *s, uint64_t steps) {
    const double beta = s->momentum, n = (double)steps;
    const double mean = beta * (1 - pow(beta, n)) / ((1 - beta) * n);
    return s->nesterov ? beta * mean : mean;
}

double bpt_shared_momentum_kappa(const bpt_shared_momentum *s, double gain, uint64_t steps) {
    assert(gain >= 1);
    const double a = kept(s, steps);
    const double kappa = (gain - 1 + a) / (gain * a);
    return kappa < gain ? kappa : gain;
}

double bpt_shared_momentum_scale(const bpt_shared_momentum *s, const bpt_movement *moved) {
    const double gain = bpt_shared_momentum_gain(s, moved->equal_ranks);
    if (gain == 0 || moved->steps == 0 || moved->samples == 0 || !(moved->rate > 0)) return 0;
    const double all_steps = (double)moved->samples / (double)s->step_samples;
    const double scale =
        bpt_shared_momentum_kappa(s, gain, moved->steps) / (moved->rate * all_steps);
    return scale <= FLT_MAX ? scale : 0; /* steps with next to no rate */
}

void bpt_shared_momentum_set(float *velocity, const float *before, const float *now, double scale,
                             size_t n) {
    const float factor = (float)scale;
    for (size_t i = 0; i < n; i++) velocity[i] = factor * (before[i] - now[i]);
}
