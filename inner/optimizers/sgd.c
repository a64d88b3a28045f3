#include "base/clones.h"
#include "inner/optimizers/optimizer.h"

static size_t n_states(const bpt_learning *l) {
    return l->momentum > 0.0 ? 1 : 0;
}

BPT_CLONES static void plain(float *restrict w, const float *restrict g, size_t n, float rate,
                             float scale, float decay) {
    for (size_t i = 0; i < n; i++) w[i] -= rate * (scale * g[i] + decay * w[i]);
}

BPT_CLONES static void momentum(float *restrict w, float *restrict v, const float *restrict g,
                                size_t n, float rate, float scale, float decay, float mu) {
    for (size_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + (scale * g[i] + decay * w[i]);
        w[i] -= rate * v[i];
    }
}

BPT_CLONES static void nesterov(float *restrict w, float *restrict v, const float *restrict g,
                                size_t n, float rate, float scale, float decay, float mu) {
    for (size_t i = 0; i < n; i++) {
        const float d = scale * g[i] + decay * w[i];
        v[i] = mu * v[i] + d;
        w[i] -= rate * (d + mu * v[i]);
    }
}

static void update(const bpt_learning *l, const bpt_update_range *r) {
    const float decay = r->decays ? (float)l->decay : 0.0f, mu = (float)l->momentum;
    if (!r->state[0])
        plain(r->w, r->g, r->n, r->rate, r->scale, decay);
    else if (l->nesterov)
        nesterov(r->w, r->state[0], r->g, r->n, r->rate, r->scale, decay, mu);
    else
        momentum(r->w, r->state[0], r->g, r->n, r->rate, r->scale, decay, mu);
}

const bpt_optimizer bpt_optimizer_sgd = {
    .id = BPT_OPTIMIZER_SGD,
    .name = "sgd",
    .state_name = {"momentum"},
    .n_states = n_states,
    .update = update,
};
