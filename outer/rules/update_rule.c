#include "outer/rules/update_rule.h"

double bpt_quality_share(const bpt_update_inputs *in, uint32_t worker) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t j = 0; j < in->n_workers; j++) {
        if (!(in->quality[j] > 0)) continue;
        sum += in->quality[j];
        n++;
    }
    return n > 0 ? in->quality[worker] * n / sum : 0;
}
