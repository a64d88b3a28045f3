#include "tools/train/options/train_rule.h"

#include "inner/optimizers/optimizer.h"

#include <assert.h>

bool bpt_update_merges(bpt_update_choice update) {
    return update == BPT_UPDATE_SGWU || bpt_update_is_async(update);
}

bool bpt_update_is_async(bpt_update_choice update) {
    return update == BPT_UPDATE_AGWU || update == BPT_UPDATE_EASGD;
}

const bpt_update_rule *bpt_train_rule(const bpt_train_options *o, bpt_update_choice update) {
    static const bpt_update_rule *const by_gamma[] = {
        [BPT_GAMMA_RECALLED] = &bpt_rule_agwu,
        [BPT_GAMMA_LAG] = &bpt_rule_agwu_lag,
        [BPT_GAMMA_NONE] = &bpt_rule_agwu_none,
    };
    if (update == BPT_UPDATE_SGWU) return &bpt_rule_sgwu;
    if (update == BPT_UPDATE_EASGD) return &bpt_rule_easgd;
    if (update == BPT_UPDATE_ALLREDUCE) return &bpt_rule_allreduce;
    assert(update == BPT_UPDATE_AGWU);
    return by_gamma[o->gamma];
}

/* What it corrects are sums of gradients, and the deltas of other optimisers than sgd are none. */
static double compensation(const bpt_train_options *o) {
    const bool sums = bpt_optimizer_at((size_t)o->optimizer) == &bpt_optimizer_sgd;
    return sums ? o->delay_compensation : 0;
}

bpt_update_terms bpt_train_terms(const bpt_train_options *o, bpt_update_choice update,
                                 uint32_t n_workers) {
    const bool deltas = update == BPT_UPDATE_AGWU || update == BPT_UPDATE_SGWU;
    const double elasticity = o->elasticity > 0 ? o->elasticity : 0.9 / n_workers;
    return (bpt_update_terms){
        .momentum = deltas ? o->server_momentum : 0,
        .compensation = update == BPT_UPDATE_AGWU ? compensation(o) : 0,
        .elasticity = update == BPT_UPDATE_EASGD ? elasticity : 0,
    };
}

double bpt_train_rates(const bpt_train_options *o, double rates) {
    return rates / (1 - o->momentum);
}
