#include "tools/train/job/chance.h"

#include <math.h>

double bpt_chance_loss(const uint64_t *per_class, uint32_t n_classes) {
    double n = 0, loss = 0;
    for (uint32_t k = 0; k < n_classes; k++) n += (double)per_class[k];
    for (uint32_t k = 0; k < n_classes; k++) {
        const double p = per_class[k] ? (double)per_class[k] / n : 1.0; /* p ln p is 0 at 0 */
        loss -= p * log(p);
    }
    return loss;
}
