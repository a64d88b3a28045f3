#include "outer/rules/update_rule.h"

static void weigh(const bpt_update_inputs *in, double *gamma) {
    for (uint32_t j = 0; j < in->n_workers; j++) gamma[j] = in->elasticity;
}

static void merge(const bpt_merge *m) {
    float *const global = m->global;
    const float *const part = m->parts[0]; /* the only one: its sender is answered at once */
    const float factor = m->factors[0];
    for (size_t i = m->begin; i < m->end; i++) global[i] += factor * (part[i] - global[i]);
}

void bpt_easgd_pull(float *local, const float *pushed, const float *centre, double elasticity,
                    size_t n) {
    const float alpha = (float)elasticity, ratio = alpha / (1 - alpha);
    for (size_t i = 0; i < n; i++) local[i] -= ratio * (pushed[i] - centre[i]);
}

const bpt_update_rule bpt_rule_easgd = {
    .name = "easgd",
    .synchronous = false,
    .payload = BPT_PAYLOAD_WEIGHTS,
    .ignores_quality = true,
    .weigh = weigh,
    .merge = merge,
};
