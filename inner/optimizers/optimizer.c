#include "inner/optimizers/optimizer.h"

static const bpt_optimizer *const optimizers[] = {
    [BPT_OPTIMIZER_SGD] = &bpt_optimizer_sgd,
    [BPT_OPTIMIZER_ADAMW] = &bpt_optimizer_adamw,
    [BPT_OPTIMIZER_LARS] = &bpt_optimizer_lars,
};

const bpt_optimizer *bpt_optimizer_at(size_t i) {
    return i < sizeof optimizers / sizeof *optimizers ? optimizers[i] : NULL;
}

const bpt_optimizer *bpt_learning_optimizer(const bpt_learning *l) {
    return l->optimizer ? l->optimizer : &bpt_optimizer_sgd;
}

float bpt_clip_scale(double clip_norm, double norm) {
    const double scale = clip_norm / (norm + 1e-6);
    return scale >= 1.0 ? 1.0f : (float)scale; /* no number stays none */
}

float bpt_step_scale(double limit, double rate, double weights, double gradient) {
    const double most = limit * weights, step = rate * gradient;
    return weights == 0.0 || step <= most ? 1.0f : (float)(most / step); /* no number stays none */
}

bool bpt_learning_wants_weight_norms(const bpt_learning *l) {
    return bpt_learning_optimizer(l)->trust || l->step_limit > 0.0;
}

bool bpt_learning_wants_norms(const bpt_learning *l) {
    return l->clip_norm > 0.0 || bpt_learning_wants_weight_norms(l);
}
