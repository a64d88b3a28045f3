#include "outer/rules/apply_change.h"

void bpt__apply_change(const bpt_merge *m, size_t begin, const float *change, size_t n) {
    float *const global = m->global + begin;
    if (!m->velocity) {
        for (size_t i = 0; i < n; i++) global[i] += change[i];
        return;
    }
    float *const velocity = m->velocity + begin;
    const float momentum = m->momentum;
    for (size_t i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + change[i];
        global[i] += velocity[i];
    }
}
