#include "outer/rules/merge_delta.h"

void bpt__merge_delta(const bpt_merge *m) {
    float *const global = m->global;
    const float *const part = m->parts[0]; /* the only one: its sender is answered at once */
    const float factor = m->factors[0];
    for (size_t i = m->begin; i < m->end; i++) global[i] += factor * part[i];
}
