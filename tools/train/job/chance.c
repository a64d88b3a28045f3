#include "tools/train/job/chance.h"

#include <math.h>

static double sum(const uint64_t *per_class, uint32_t n_classes) {
    double n = 0;
    for (uint32_t k = 0; k < n_classes; k++) n += (double)per_class[k];
    return n;
}

double bpt_chance_loss(const uint64_t *per_class, uint32_t n_classes) {
    const double n = sum(per_class, n_classes);
    double loss = 0;
    for (uint32_t k = 0; k < n_classes; k++) {
        const double p = per_class[k] ? (double)per_class[k] / n : 1.0; /* p ln p is 0 at 0 */
        loss -= p * log(p);
    }
    return loss;
}

bool bpt_chance_reaches(double accuracy, const uint64_t *per_class, uint32_t n_classes) {
    const double n = sum(per_class, n_classes);
    double most = 0;
    for (uint32_t k = 0; k < n_classes; k++) most = fmax(most, (double)per_class[k]);
    const double p = most / n;
    return accuracy <= p + 4 * sqrt(p * (1 - p) / n);
}
