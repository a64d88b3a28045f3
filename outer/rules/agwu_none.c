#include "outer/rules/merge_delta.h"
#include "outer/rules/update_rule.h"

static void weigh(const bpt_update_inputs *in, double *gamma) {
    for (uint32_t j = 0; j < in->n_workers; j++) gamma[j] = 1.0 / in->n_workers;
}

const bpt_update_rule bpt_rule_agwu_none = {
    .name = "agwu-none",
    .synchronous = false,
    .payload = BPT_PAYLOAD_DELTA,
    .weigh = weigh,
    .merge = bpt__merge_delta,
};
