#include "outer/rules/merge_delta.h"
#include "outer/rules/update_rule.h"

static void weigh(const bpt_update_inputs *in, double *gamma) {
    const uint32_t m = in->n_workers;
    double sum = 0;
    for (uint32_t j = 0; j < m; j++) {
        gamma[j] = 1 / (1 + (double)(in->version - in->base[j]));
        sum += gamma[j];
    }
    for (uint32_t j = 0; j < m; j++) gamma[j] /= sum;
}

const bpt_update_rule bpt_rule_agwu_lag = {
    .name = "agwu-lag",
    .synchronous = false,
    .payload = BPT_PAYLOAD_DELTA,
    .weigh = weigh,
    .merge = bpt__merge_delta,
};
