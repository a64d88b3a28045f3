#include "outer/update_rule.h"

static void weigh(const bpt_update_inputs *in, double *gamma) {
    for (uint32_t j = 0; j < in->n_workers; j++) gamma[j] = 1;
}

static void merge(float *global, const float *const *parts, const float *factors, uint32_t n_parts,
                  size_t n) {
    (void)factors; /* a sum of gradients that are sums over samples: every sample counts alike */
    for (size_t i = 0; i < n; i++) {
        float sum = parts[0][i];
        for (uint32_t j = 1; j < n_parts; j++) sum += parts[j][i];
        global[i] = sum;
    }
}

const bpt_update_rule bpt_rule_allreduce = {
    .name = "allreduce",
    .summary = "synchronous: gradients summed every step, one SGD trajectory",
    .synchronous = true,
    .payload = BPT_PAYLOAD_GRADIENT,
    .weigh = weigh,
    .merge = merge,
};
