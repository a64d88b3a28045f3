#include "outer/rules/apply_change.h"
#include "outer/update_rule.h"

static void weigh(const bpt_update_inputs *in, double *gamma) {
    double sum = 0;
    for (uint32_t j = 0; j < in->n_workers; j++) sum += in->quality[j];
    for (uint32_t j = 0; j < in->n_workers; j++)
        gamma[j] = sum > 0 ? in->quality[j] / sum : 1.0 / in->n_workers;
}

/* In blocks that stay in cache; every element still sums in rank order. */
static void merge(const bpt_merge *m) {
    enum { BLOCK = 1024 };
    float change[BLOCK];
    for (size_t begin = m->begin; begin < m->end; begin += BLOCK) {
        const size_t width = m->end - begin < BLOCK ? m->end - begin : BLOCK;
        for (size_t i = 0; i < width; i++) change[i] = m->factors[0] * m->parts[0][begin + i];
        for (uint32_t j = 1; j < m->n_parts; j++)
            for (size_t i = 0; i < width; i++) change[i] += m->factors[j] * m->parts[j][begin + i];
        bpt__apply_change(m, begin, change, width);
    }
}

const bpt_update_rule bpt_rule_sgwu = {
    .name = "sgwu",
    .synchronous = true,
    .payload = BPT_PAYLOAD_DELTA,
    .weigh = weigh,
    .merge = merge,
};
