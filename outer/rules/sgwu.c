#include "outer/rules/apply_change.h"
#include "outer/rules/update_rule.h"

static void weigh(const bpt_update_inputs *in, double *gamma) {
    double sum = 0;
    for (uint32_t j = 0; j < in->n_workers; j++) sum += in->quality[j];
    for (uint32_t j = 0; j < in->n_workers; j++)
        gamma[j] = sum > 0 ? in->quality[j] / sum : 1.0 / in->n_workers;
}

static void begin_sum(float *sum, const float *part, float factor, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] = factor * part[i];
}

static void add_to_sum(float *sum, const float *part, float factor, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * part[i];
}

/* In blocks that stay in cache; every element still sums in rank order. */
static void merge(const bpt_merge *m) {
    enum { BLOCK = 1024 };
    float change[BLOCK];
    for (size_t begin = m->begin; begin < m->end; begin += BLOCK) {
        const size_t n = m->end - begin < BLOCK ? m->end - begin : BLOCK;
        begin_sum(change, m->parts[0] + begin, m->factors[0], n);
        for (uint32_t j = 1; j < m->n_parts; j++)
            add_to_sum(change, m->parts[j] + begin, m->factors[j], n);
        bpt__apply_change(m, begin, change, n);
    }
}

const bpt_update_rule bpt_rule_sgwu = {
    .name = "sgwu",
    .synchronous = true,
    .payload = BPT_PAYLOAD_DELTA,
    .weigh = weigh,
    .merge = merge,
};
