#include "base/clones.h"
#include "inner/optimizers/optimizer.h"

#include <math.h>

static size_t n_states(const bpt_learning *l) {
    (void)l;
    return 2;
}

/* What the values of a range have in common, rounded once. */
typedef struct {
    float scale;
    float kept;                     /* what decay leaves of a weight */
    float rate;                     /* divided by the correction of the mean */
    float root;                     /* of the correction of the variance */
    float beta1, new1, beta2, new2; /* parts of the old and of the new */
    float eps;
} factors;

static factors factors_of(const bpt_learning *l, const bpt_update_range *r) {
    const double t = (double)r->update, rate = (double)r->rate;
    return (factors){
        .scale = r->scale,
        .kept = r->decays ? (float)(1.0 - rate * l->decay) : 1.0f,
        .rate = (float)(rate / (1.0 - pow(l->beta1, t))),
        .root = (float)sqrt(1.0 - pow(l->beta2, t)),
        .beta1 = (float)l->beta1,
        .new1 = (float)(1.0 - l->beta1),
        .beta2 = (float)l->beta2,
        .new2 = (float)(1.0 - l->beta2),
        .eps = (float)l->eps,
    };
}

BPT_CLONES static void update_values(float *restrict w, float *restrict mean,
                                     float *restrict variance, const float *restrict gradient,
                                     size_t n, factors f) {
    for (size_t i = 0; i < n; i++) {
        const float g = f.scale * gradient[i];
        mean[i] = f.beta1 * mean[i] + f.new1 * g;
        variance[i] = f.beta2 * variance[i] + f.new2 * (g * g);
        w[i] = f.kept * w[i] - f.rate * (mean[i] / (sqrtf(variance[i]) / f.root + f.eps));
    }
}

static void update(const bpt_learning *l, const bpt_update_range *r) {
    update_values(r->w, r->state[0], r->state[1], r->g, r->n, factors_of(l, r));
}

const bpt_optimizer bpt_optimizer_adamw = {
    .id = BPT_OPTIMIZER_ADAMW,
    .name = "adamw",
    .state_name = {"exp_avg", "exp_avg_sq"},
    .n_states = n_states,
    .update = update,
};
