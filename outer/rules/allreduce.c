#include "outer/update_rule.h"

static void weigh(const bpt_update_inputs *in, double *gamma) {
    for (uint32_t j = 0; j < in->n_workers; j++) gamma[j] = 1;
}

/* In blocks that stay in cache; every element still sums in rank order. Factors are not looked at:
 * gradients are sums over samples, and every sample counts alike. */
static void merge(const bpt_merge *m) {
    enum { BLOCK = 1024 };
    float *const global = m->global;
    for (size_t begin = m->begin; begin < m->end; begin += BLOCK) {
        const size_t end = m->end - begin < BLOCK ? m->end : begin + BLOCK;
        for (size_t i = begin; i < end; i++) global[i] = m->parts[0][i];
        for (uint32_t j = 1; j < m->n_parts; j++)
            for (size_t i = begin; i < end; i++) global[i] += m->parts[j][i];
    }
}

const bpt_update_rule bpt_rule_allreduce = {
    .name = "allreduce",
    .synchronous = true,
    .payload = BPT_PAYLOAD_GRADIENT,
    .weigh = weigh,
    .merge = merge,
};
