#include "base/clones.h"
#include "inner/optimizers/optimizer.h"

static size_t n_states(const bpt_learning *l) {
    return l->momentum > 0.0 ? 1 : 0;
}

static float trust(const bpt_learning *l, double weights, double gradient) {
    if (weights == 0.0 || gradient == 0.0) return 1.0f;
    return (float)(l->eta * weights / (gradient + l->decay * weights));
}

BPT_CLONES static void plain(float *restrict w, const float *restrict g, size_t n, float rate,
                             float scale, float decay, float factor) {
    for (size_t i = 0; i < n; i++) w[i] -= rate * (factor * (scale * g[i] + decay * w[i]));
}

BPT_CLONES static void momentum(float *restrict w, float *restrict v, const float *restrict g,
                                size_t n, float rate, float scale, float decay, float factor,
                                float mu) {
    for (size_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + factor * (scale * g[i] + decay * w[i]);
        w[i] -= rate * v[i];
    }
}

static void update(const bpt_learning *l, const bpt_update_range *r) {
    const float decay = r->decays ? (float)l->decay : 0.0f;
    if (r->state[0])
        momentum(r->w, r->state[0], r->g, r->n, r->rate, r->scale, decay, r->trust,
                 (float)l->momentum);
    else
        plain(r->w, r->g, r->n, r->rate, r->scale, decay, r->trust);
}

const bpt_optimizer bpt_optimizer_lars = {
    .id = BPT_OPTIMIZER_LARS,
    .name = "lars",
    .state_name = {"momentum"},
    .n_states = n_states,
    .trust = trust,
    .update = update,
};
