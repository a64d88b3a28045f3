#include "inner/optimizer.h"

static const bpt_optimizer *const optimizers[] = {&bpt_optimizer_sgd, &bpt_optimizer_adamw,
                                                  &bpt_optimizer_lars};

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
