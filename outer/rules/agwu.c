#include "outer/rules/merge_delta.h"
#include "outer/rules/update_rule.h"

#include <math.h>

static void weigh(const bpt_update_inputs *in, double *gamma) {
    const uint32_t m = in->n_workers;
    double sum = 0;
    for (uint32_t j = 0; j < m; j++) {
        /* At version 0 every base is 0 too: the ratio is taken as 0, so that gamma is 1/m. */
        const double age = in->version > 0 ? (double)in->base[j] / (double)in->version : 0;
        gamma[j] = exp(age);
        sum += gamma[j];
    }
    for (uint32_t j = 0; j < m; j++) gamma[j] /= sum;
}

const bpt_update_rule bpt_rule_agwu = {
    .name = "agwu",
    .synchronous = false,
    .payload = BPT_PAYLOAD_DELTA,
    .weigh = weigh,
    .merge = bpt__merge_delta,
};
