#include "outer/rules/compensate.h"

#include <float.h>

float bpt_compensation(const bpt_update_terms *terms, double rates) {
    const double factor = rates > 0 ? terms->compensation / rates : 0;
    return factor <= (double)FLT_MAX ? (float)factor : 0; /* steps with next to no rate */
}

void bpt__compensate(const bpt_merge *m, size_t begin, float *delta, size_t n) {
    const float *const part = m->parts[0] + begin;
    const float *const now = m->global + begin;
    const float *const base = m->base + begin;
    const float factor = m->compensation;
    for (size_t i = 0; i < n; i++)
        delta[i] = part[i] - factor * (part[i] * part[i]) * (now[i] - base[i]);
}
